"""A MySQL's data directory: initialising, the SQL of system tables, an id of each copy's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.errors import ProvisionError, ServerError
from dbdyno.servers.local.pristine import kept
from dbdyno.servers.local.server import Site
from dbdyno.servers.mysql.instance import making, system_tables_sql
from dbdyno.servers.reference import find
from support.archives import program

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
    (share / "charsets").mkdir(parents=True)
    (share / "charsets" / "Index.xml").touch()
    for part in ("mysql_system_tables", "mysql_system_tables_data"):
        (share / f"{part}.sql").write_text(f"-- {part}\n")

    def with_program(script):
        program(tmp_path / "home" / "bin" / "mysqld", script)
        return tmp_path / "home"

    return with_program


def made(home, entry=NEW, **asked):
    site = Site("fast", entry, home, home / "work", None, asked)
    return kept(entry, making(site), None, lambda text: None)


def test_a_data_directory_is_initialised_for_its_deciding_settings_without_an_id(home):
    programs = home(INITIALISES)
    first = made(programs, sync_binlog="1")
    assert (first / "option").read_text() == "--initialize-insecure\n"
    assert not (first / "auto.cnf").exists()
    assert made(programs, sync_binlog="0") == first
    assert made(programs, innodb_page_size="8K") != first


def test_a_server_that_cannot_initialise_itself_is_fed_its_makers_sql(home):
    data = made(home(BOOTSTRAPS), MARIADB)
    assert (data / "option").read_text() == "--bootstrap\n"
    assert "-- mysql_system_tables_data\n" in (data / "mysql" / "fed").read_text()


def test_a_failing_initialisation_is_quoted(home):
    with pytest.raises(ServerError, match=r"could not initialise .*exit code 1") as caught:
        made(home(FAILS), innodb_page_size="3K")
    assert caught.value.wanted == "innodb_page_size = 3K"
    assert caught.value.found == "[ERROR] page size 3K is not possible"


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
    fed = [line for line in lines if line.startswith("--")]
    assert fed == ["-- tables", "-- performance", "-- rows", "-- help"]
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
