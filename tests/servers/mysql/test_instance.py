"""A MySQL's files: initialising, what a start may change, the SQL of system tables."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import ProvisionError, ServerError, UsageError
from dbdyno.servers import open, process
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.local import files as module
from dbdyno.servers.mysql import instance as mysql_instance
from dbdyno.servers.mysql import server as mysql_server
from dbdyno.servers.mysql.instance import pristine, system_tables_sql
from dbdyno.servers.programs import provision
from dbdyno.servers.reference import find
from support.idle_server import IdleServer

SPEC = ServerSpec("fast", "mysql:8.0.15", {"innodb_log_file_size": "48M"})


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """No download, no real server: pristine data of one file, servers only remembered."""
    source = tmp_path / "pristine"
    source.mkdir()
    (source / "ibdata1").write_text("pristine")
    monkeypatch.setattr(provision, "get", lambda entry, report: tmp_path / "home")
    monkeypatch.setattr(process, "server_user", lambda: None)
    monkeypatch.setattr(mysql_instance, "pristine", lambda *_: source)
    monkeypatch.setattr(mysql_server, "start", lambda site, port: IdleServer())
    return tmp_path / "instance"


def made(folder: Path, spec: ServerSpec = SPEC):
    return open.instance(spec, folder, lambda text: None)


def data(folder: Path) -> Path:
    return folder / "server" / "data" / "ibdata1"


def load_and_stop(instance, folder):
    server = instance.start()
    data(folder).write_text("loaded")
    server.stop()


def test_a_new_instance_begins_with_pristine_data(lab):
    instance = made(lab)
    assert instance.folder == lab
    assert data(lab).read_text() == "pristine"
    assert (lab / "server").stat().st_mode & 0o777 == 0o700


def test_a_snapshot_survives_and_restores(lab):
    instance = made(lab)
    load_and_stop(instance, lab)
    instance.snapshot()
    data(lab).write_text("changed by a trial")
    instance.restore()
    assert data(lab).read_text() == "loaded"
    instance.close()
    assert not (lab / "server").exists()
    again = made(lab)
    assert again.has_snapshot()
    assert again.start().alive()  # which brings the snapshot's data back first
    assert data(lab).read_text() == "loaded"


def test_a_restore_of_a_snapshot_that_was_changed_is_refused(lab):
    instance = made(lab)
    load_and_stop(instance, lab)
    instance.snapshot()
    (lab / "snapshot" / "data" / "ibdata1").write_text("loadex")
    with pytest.raises(ServerError, match="not those of the snapshot"):
        instance.restore()


def test_the_bytes_of_the_dataset_are_those_of_the_loads_tables(lab):
    instance = made(lab)
    with pytest.raises(ServerError, match="no snapshot to measure"):
        instance.data_bytes()
    load_and_stop(instance, lab)
    (lab / "server" / "data" / "sbtest").mkdir()
    (lab / "server" / "data" / "sbtest" / "sbtest1.ibd").write_bytes(b"x" * 16384)
    instance.snapshot()
    assert instance.data_bytes() >= 16384
    assert instance.data_bytes() < 40_000


def test_a_snapshot_without_its_marker_does_not_count(lab):
    instance = made(lab)
    load_and_stop(instance, lab)
    instance.snapshot()
    (lab / "snapshot" / module.MARKER).unlink()
    assert not instance.has_snapshot()
    with pytest.raises(ServerError, match="no snapshot to restore"):
        instance.restore()


@pytest.mark.parametrize(
    ("reference", "settings"),
    [("mysql:8.0.15", {"innodb_page_size": "8K"}), ("mysql:5.7.22", SPEC.settings)],
)
def test_a_snapshot_of_another_format_or_version_does_not_count(lab, reference, settings):
    instance = made(lab)
    load_and_stop(instance, lab)
    instance.snapshot()
    assert not made(lab, ServerSpec("fast", reference, settings)).has_snapshot()


def test_settings_that_leave_the_format_alone_share_the_snapshot(lab):
    instance = made(lab)
    load_and_stop(instance, lab)
    instance.snapshot()
    assert made(
        lab, ServerSpec("b", SPEC.reference, {**SPEC.settings, "sync_binlog": 0})
    ).has_snapshot()


def test_settings_of_one_start_are_laid_over_in_any_spelling(lab, monkeypatch):
    seen = []

    def start(site, port):
        seen.append(site.asked)
        return IdleServer()

    monkeypatch.setattr(mysql_server, "start", start)
    instance = made(lab)
    instance.start({"innodb-log-file-size": "1G", "sync_binlog": 0}).stop()
    instance.start().stop()
    assert [(asked["innodb_log_file_size"], asked["sync_binlog"]) for asked in seen] == [
        ("1G", "0"),
        ("48M", "1"),
    ]


def test_what_decides_a_data_directory_is_not_changed_by_a_start(lab):
    instance = made(lab)
    with pytest.raises(UsageError, match="cannot take other settings") as error:
        instance.start({"innodb_page_size": "8K"})
    assert "innodb_page_size = 8K" in str(error.value)


def test_a_short_disk_leaves_no_snapshot(lab, monkeypatch):
    instance = made(lab)
    load_and_stop(instance, lab)
    usage = shutil.disk_usage(lab)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
    with pytest.raises(ServerError, match="too full"):
        instance.snapshot()
    assert not instance.has_snapshot()


def test_a_setting_that_is_the_labs_own_is_refused_before_anything_is_made(lab):
    with pytest.raises(UsageError, match="datadir"):
        made(lab, ServerSpec("fast", SPEC.reference, {"datadir": "/x"}))
    assert not os.path.lexists(lab)


def test_what_the_file_system_refuses_is_told_and_half_a_snapshot_never_counts(lab, monkeypatch):
    instance = made(lab)
    load_and_stop(instance, lab)
    instance.snapshot()
    load_and_stop(instance, lab)

    def killed_or_full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "copy_tree", killed_or_full)
    with pytest.raises(ServerError, match="could not be copied aside") as caught:
        instance.snapshot()
    assert "No space left" in (caught.value.found or "")
    assert not instance.has_snapshot()
    with pytest.raises(ServerError, match="could not be laid out"):
        made(lab)


NEW = find("mysql:8.0.15")
MARIADB = replace(NEW, product="mariadb", version="10.2.11")
INITIALISES = """#!/bin/sh
folder=$(sed -n 's/^datadir=//p' "${1#--defaults-file=}")
mkdir -p "$folder/mysql"
echo made > "$folder/ibdata1"
echo mine > "$folder/auto.cnf"
echo "$2" > "$folder/option"
"""
BOOTSTRAPS = """#!/bin/sh
folder=$(sed -n 's/^datadir=//p' "${1#--defaults-file=}")
echo "$2" > "$folder/option"
cat > "$folder/mysql/fed"
"""
FAILS = "#!/bin/sh\necho '[ERROR] page size 3K is not possible'\nexit 1\n"


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    share = tmp_path / "home" / "share"
    for folder in (tmp_path / "home" / "bin", share / "charsets"):
        folder.mkdir(parents=True)
    (share / "charsets" / "Index.xml").touch()
    for part in ("mysql_system_tables", "mysql_system_tables_data"):
        (share / f"{part}.sql").write_text(f"-- {part}\n")

    def with_program(script):
        program = tmp_path / "home" / "bin" / "mysqld"
        program.write_text(script)
        program.chmod(0o755)
        return tmp_path / "home"

    return with_program


def test_a_data_directory_is_made_once_per_deciding_settings(home):
    said: list[str] = []
    programs = home(INITIALISES)
    first = pristine(NEW, programs, {"sync_binlog": "1"}, None, said.append)
    assert (first / "ibdata1").read_text() == "made\n"
    assert (first / "option").read_text() == "--initialize-insecure\n"
    assert pristine(NEW, programs, {"sync_binlog": "0"}, None, said.append) == first
    assert said == ["mysql:8.0.15: initialising a data directory"]
    assert pristine(NEW, programs, {"innodb_page_size": "8K"}, None, said.append) != first


def test_a_server_that_cannot_initialise_itself_is_fed_its_makers_sql(home):
    data = pristine(MARIADB, home(BOOTSTRAPS), {}, None, str)
    assert (data / "option").read_text() == "--bootstrap\n"
    assert "-- mysql_system_tables_data\n" in (data / "mysql" / "fed").read_text()


def test_it_is_closed_to_others_and_holds_no_identity_of_a_server(home):
    data = pristine(NEW, home(INITIALISES), {}, None, str)
    assert data.parent.stat().st_mode & 0o777 == 0o700
    assert not (data / "auto.cnf").exists()


def test_a_failing_initialisation_is_quoted_and_leaves_nothing(home, tmp_path):
    with pytest.raises(ServerError, match=r"could not initialise .*exit code 1") as caught:
        pristine(NEW, home(FAILS), {"innodb_page_size": "3K"}, None, str)
    assert caught.value.wanted == "innodb_page_size = 3K"
    assert caught.value.found == "[ERROR] page size 3K is not possible"
    left = [path.suffix for path in (tmp_path / "cache" / "pristine").iterdir()]
    assert left == [".lock"]


def parts(share, **texts):
    for name, text in texts.items():
        (share / f"{name}.sql").write_text(text + "\n")
    return system_tables_sql(share).splitlines()


def test_the_makers_sql_is_fed_in_its_order_and_strangers_go_last(tmp_path):
    lines = parts(
        tmp_path,
        mysql_system_tables_data="-- rows",
        mysql_system_tables="-- tables",
        mysql_performance_tables="-- performance",
        fill_help_tables="-- help",
    )
    told = [line for line in lines if line.startswith("--")]
    assert told == ["-- tables", "-- performance", "-- rows", "-- help"]
    assert lines[0] == "USE mysql;"
    assert lines[-3] == "DELETE FROM mysql.user WHERE Host <> 'localhost' OR User = '';"


def test_newer_versions_keep_accounts_elsewhere_and_name_files_anew(tmp_path):
    lines = parts(
        tmp_path,
        mariadb_system_tables="CREATE TABLE global_priv",
        mariadb_system_tables_data="-- rows",
        mariadb_sys_schema="-- sys",
    )
    assert "-- sys" in lines
    assert "DELETE FROM mysql.global_priv WHERE Host <> 'localhost' OR User = '';" in lines


def test_a_folder_without_the_sql_is_an_error(tmp_path):
    with pytest.raises(ProvisionError, match="lacks the SQL") as caught:
        parts(tmp_path, mysql_system_tables="-- tables")
    assert caught.value.found == "mysql_system_tables.sql"
