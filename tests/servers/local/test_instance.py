"""An instance's folders, when which of its files may be used, and what a start may change."""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.servers import open, process
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.local import files as module
from dbdyno.servers.local import pristine
from dbdyno.servers.local.files import InstanceFiles
from dbdyno.servers.mysql import server as mysql_server
from dbdyno.servers.postgres import instance as postgres_instance
from dbdyno.servers.postgres import server as postgres_server
from dbdyno.servers.programs import provision
from support.idle_server import IdleServer


@pytest.fixture
def files(tmp_path):
    source = tmp_path / "pristine"
    source.mkdir()
    (source / "rows").write_text("pristine")
    (tmp_path / module.ZEROS).write_text("{}")
    made = InstanceFiles("pg", tmp_path, None, {"reference": "postgres:18.6"})
    made.lay(source)
    return made


def test_a_snapshot_counts_only_whole_and_only_for_what_it_was_made_of(files, tmp_path):
    assert not files.has_snapshot()
    with pytest.raises(ServerError, match="pg: there is no snapshot to restore"):
        files.restore()
    files.snapshot()
    other = InstanceFiles("pg", tmp_path, None, {"reference": "postgres:17.11"})
    assert files.has_snapshot()
    assert not other.has_snapshot()
    for name in (module.ZEROS, module.MARKER):
        files.snapshot()
        (tmp_path / "snapshot" / name).write_text("half of i")
        assert not files.has_snapshot()


def test_zeros_that_a_snapshot_leaves_out_are_restored(files, tmp_path):
    (files.data / "redo").write_bytes(bytes(1_000_000))
    files.snapshot()
    assert (tmp_path / "snapshot" / "data" / "redo").stat().st_blocks * 512 < 100_000
    assert files.laid_bytes("") >= 1_000_000
    files.restore()
    assert (files.data / "redo").read_bytes() == bytes(1_000_000)
    assert (files.data / "redo").stat().st_blocks * 512 >= 1_000_000


def test_a_copy_that_fails_half_way_never_counts(files, monkeypatch):
    files.snapshot()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "keep", full)
    with pytest.raises(ServerError, match="could not be copied aside") as caught:
        files.snapshot()
    assert "No space left" in (caught.value.found or "")
    assert not files.has_snapshot()


@pytest.mark.parametrize("damaged", ["data/rows", "checksums.json"])
def test_a_snapshot_that_is_damaged_is_an_error_and_never_used_nor_tried_again(files, damaged):
    files.snapshot()
    (files.folder / "snapshot" / damaged).write_text("spoilt  ")  # by a disk, after its checksum
    with pytest.raises(ServerError, match="not those of the snapshot") as caught:
        files.restore()
    assert caught.value.found == "rows"
    assert not files.data.exists()  # or the next start would be on it
    assert not files.has_snapshot()  # or every later run would end so


def test_folders_beside_the_data_are_there_and_a_snapshot_may_be_anothers(files, tmp_path):
    files.snapshot()
    (tmp_path / "replica").mkdir()
    begins_with = tmp_path / "snapshot"
    replica = InstanceFiles(
        "r", tmp_path / "replica", None, files.identity, beside=("tmp",), copy=begins_with
    )
    replica.restore()
    assert (replica.data / "rows").read_text() == "pristine"
    assert (replica.work / "tmp").is_dir()
    assert not (tmp_path / "replica" / "snapshot").exists()


class Product(NamedTuple):
    """An instance of a product whose pristine data is one file; servers are only remembered."""

    spec: ServerSpec
    folder: Path
    tables: str
    starts: list
    removals: list

    def made(self, settings=None, reference=None):
        asked = self.spec.settings if settings is None else settings
        spec = ServerSpec("fast", reference or self.spec.reference, asked)
        return open.instance(spec, self.folder, lambda text: None)

    @property
    def rows(self):
        return self.folder / "server" / "data" / "rows"

    def load_and_stop(self, instance):
        server = instance.start()
        self.rows.write_text("loaded")
        (self.rows.parent / self.tables).mkdir(parents=True)
        (self.rows.parent / self.tables / "table").write_bytes(b"x" * 16384)
        server.stop()


MYSQL = ServerSpec("fast", "mysql:8.0.15", {"innodb_log_file_size": "48M"})
POSTGRES = ServerSpec("fast", "postgres:18.6", {"work_mem": "8MB"})


@pytest.fixture
def product(request, monkeypatch, tmp_path):
    """A product without download and real servers; MySQL where a test names none."""
    spec = getattr(request, "param", MYSQL)
    source, starts, removals = tmp_path / "pristine", [], []
    (source / "base" / "1").mkdir(parents=True)
    (source / "rows").write_text("pristine")
    (source / "base" / "1" / "template").write_bytes(b"x" * 8192)
    (tmp_path / module.ZEROS).write_text("{}")

    def start(site, port, kind=None):
        starts.append(site.requested)
        return IdleServer()

    monkeypatch.setattr(provision, "get", lambda entry, report: tmp_path / "home")
    monkeypatch.setattr(process, "server_user", lambda: None)
    monkeypatch.setattr(pristine, "kept", lambda *_: source)
    monkeypatch.setattr(mysql_server, "start", start)
    monkeypatch.setattr(postgres_server, "start", start)
    monkeypatch.setattr(postgres_instance, "free", lambda data: removals.append(data.is_dir()))
    tables = "sbtest" if spec is MYSQL else "base/16384"
    return Product(spec, tmp_path / "instance", tables, starts, removals)


both = pytest.mark.parametrize("product", [MYSQL, POSTGRES], indirect=True, ids=["mysql", "pg"])


@both
def test_a_snapshot_survives_restores_and_is_measured_without_the_servers_own(product):
    instance = product.made()
    assert instance.folder == product.folder
    assert product.rows.read_text() == "pristine"
    assert (product.folder / "server").stat().st_mode & 0o777 == 0o700
    with pytest.raises(ServerError, match="no snapshot to measure"):
        instance.data_bytes()
    product.load_and_stop(instance)
    instance.snapshot()
    assert 16384 <= instance.data_bytes() < 24576
    product.rows.write_text("changed by a trial")
    (product.folder / "server" / "left").touch()
    instance.restore()
    assert product.rows.read_text() == "loaded"
    assert not (product.folder / "server" / "left").exists()
    instance.close()
    assert not (product.folder / "server").exists()
    again = product.made()
    assert again.has_snapshot()
    assert again.start().alive()  # which brings the snapshot's data back first
    assert product.rows.read_text() == "loaded"


@pytest.mark.parametrize(
    ("product", "reference", "keys"),
    [
        (MYSQL, None, {"innodb_log_file_size": 49 * 1024**2}),
        (MYSQL, "mysql:8.0.33", {}),  # which takes rows without its redo log
        (POSTGRES, None, {}),
    ],
    indirect=["product"],
)
def test_a_load_has_a_redo_log_of_another_size_than_later_starts(product, reference, keys):
    assert product.made(reference=reference).loading_keys() == keys


def test_tables_that_share_one_file_have_no_size_of_their_own(product):
    instance = product.made({"innodb_file_per_table": False})
    product.load_and_stop(instance)
    instance.snapshot()
    with pytest.raises(ServerError, match="how large the loaded tables are is not known") as caught:
        instance.data_bytes()
    assert "buffer_pool in bytes" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("product", "reference", "settings", "same"),
    [
        (MYSQL, None, {**MYSQL.settings, "sync_binlog": 0}, True),
        (MYSQL, None, {"innodb_page_size": "8K"}, False),
        (MYSQL, "mysql:5.7.22", None, False),
        (POSTGRES, None, {"work_mem": "4MB"}, True),
        (POSTGRES, None, {"data_checksums": "off"}, False),
        (POSTGRES, "postgres:17.11", None, False),
    ],
    indirect=["product"],
)
def test_a_snapshot_counts_for_its_format_and_version_alone(product, reference, settings, same):
    instance = product.made()
    product.load_and_stop(instance)
    instance.snapshot()
    assert product.made(settings, reference).has_snapshot() == same


@pytest.mark.parametrize(
    ("product", "more", "names", "texts"),
    [
        (
            *(MYSQL, {"innodb-log-file-size": "1G", "sync_binlog": 0}),
            *(("innodb_log_file_size", "sync_binlog"), [("1G", "0"), ("48M", "1")]),
        ),
        (
            *(POSTGRES, {"Work-Mem": "64MB", "fsync": False}),
            *(("work_mem", "fsync"), [("64MB", "off"), ("8MB", "on")]),
        ),
    ],
    indirect=["product"],
)
def test_settings_of_one_start_are_laid_over_in_any_spelling(product, more, names, texts):
    instance = product.made()
    instance.start(more).stop()
    instance.start().stop()
    assert [tuple(asked[name] for name in names) for asked in product.starts] == texts


@pytest.mark.parametrize(
    ("product", "more", "wanted", "found"),
    [
        (MYSQL, {"innodb_page_size": "8K"}, "innodb_page_size = 8K", None),
        (
            *(MYSQL, {"innodb-default-row-format": "compact"}),
            *("innodb_default_row_format = compact", None),
        ),
        (MYSQL, {"character_set_server": "latin1"}, "character_set_server = latin1", None),
        (POSTGRES, {"data_checksums": "off"}, "--no-data-checksums", "--data-checksums"),
    ],
    indirect=["product"],
)
def test_what_decides_a_data_directory_or_its_tables_is_not_changed_by_a_start(
    product, more, wanted, found
):
    with pytest.raises(UsageError, match="cannot take other settings") as caught:
        product.made().start(more)
    assert (caught.value.wanted, caught.value.found) == (wanted, found)


@pytest.mark.parametrize(
    ("product", "key"), [(MYSQL, "datadir"), (POSTGRES, "data_directory")], indirect=["product"]
)
def test_a_setting_that_is_the_labs_own_is_refused_before_anything_is_made(product, key):
    with pytest.raises(UsageError, match=key):
        product.made({key: "/x"})
    assert not os.path.lexists(product.folder)


def test_a_running_server_is_neither_copied_restored_nor_started_again(product):
    instance = product.made()
    instance.start()
    for action in (instance.snapshot, instance.restore, instance.start):
        with pytest.raises(ServerError, match="fast: a running server cannot be") as caught:
            action()
        assert caught.value.found == "pid 4242"


def test_a_server_that_crashed_or_did_not_come_up_gives_no_snapshot(product, monkeypatch):
    def fail(site, port):
        raise ServerError("did not start")

    instance = product.made()
    instance.start().running = False
    with pytest.raises(ServerError, match="did not stop cleanly"):
        instance.snapshot()
    monkeypatch.setattr(mysql_server, "start", fail)
    with pytest.raises(ServerError, match="did not start"):
        instance.start()
    with pytest.raises(ServerError, match="did not stop cleanly"):
        instance.snapshot()


def test_untouched_data_may_be_kept_and_closing_kills(product):
    instance = product.made()
    instance.snapshot()
    server = instance.start()
    instance.close()
    assert (server.kills, server.stopped_cleanly) == (1, False)
    assert not (product.folder / "server").exists()


@pytest.mark.parametrize("product", [POSTGRES], indirect=True)
def test_what_a_server_holds_is_given_back_while_its_data_are_there(product):
    instance = product.made()
    product.load_and_stop(instance)
    instance.close()
    assert product.removals[-1]


def test_data_left_by_a_lab_that_died_is_not_used(product):
    product.made()
    product.rows.write_text("half a trial")
    product.made()
    assert product.rows.read_text() == "pristine"


def test_data_that_cannot_be_laid_out_are_a_servers_error(product, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "copy_tree", full)
    with pytest.raises(ServerError, match="could not be laid out"):
        product.made()
