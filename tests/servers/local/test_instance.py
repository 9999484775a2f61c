"""An instance's folders, and when which of its files may be used."""

import shutil
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.local import files as module
from dbdyno.servers.local.files import InstanceFiles
from dbdyno.servers.local.server import Site, StartedInstance
from dbdyno.servers.reference import find
from support.idle_server import IdleServer


@pytest.fixture
def files(tmp_path):
    source = tmp_path / "pristine"
    source.mkdir()
    (source / "rows").write_text("pristine")
    made = InstanceFiles("pg", tmp_path, None, {"reference": "postgres:18.6"})
    made.lay(source)
    return made


def test_data_is_laid_out_for_the_server_alone(files):
    assert (files.data / "rows").read_text() == "pristine"
    assert files.work.stat().st_mode & 0o777 == 0o700


def test_a_snapshot_brings_everything_back_and_survives_clearing(files):
    files.snapshot()
    (files.data / "rows").write_text("changed")
    (files.work / "left").touch()
    files.restore()
    assert (files.data / "rows").read_text() == "pristine"
    assert not (files.work / "left").exists()
    files.clear()
    assert not files.work.exists()
    assert files.has_snapshot()


def test_a_snapshot_counts_only_whole_and_only_for_what_it_was_made_of(files, tmp_path):
    assert not files.has_snapshot()
    with pytest.raises(ServerError, match="pg: there is no snapshot to restore"):
        files.restore()
    files.snapshot()
    other = InstanceFiles("pg", tmp_path, None, {"reference": "postgres:17.11"})
    assert files.has_snapshot()
    assert not other.has_snapshot()
    (tmp_path / "snapshot" / module.MARKER).write_text("half of i")
    assert not files.has_snapshot()


def test_a_copy_that_fails_half_way_never_counts(files, monkeypatch):
    files.snapshot()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "copy_tree", full)
    with pytest.raises(ServerError, match="could not be copied aside") as caught:
        files.snapshot()
    assert "No space left" in (caught.value.found or "")
    assert not files.has_snapshot()


def test_a_short_disk_is_told(files, monkeypatch, tmp_path):
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
    with pytest.raises(ServerError, match="too full"):
        files.snapshot()
    assert not files.has_snapshot()


def test_a_restored_file_that_differs_from_the_snapshots_is_an_error(files):
    files.snapshot()
    (files.kept / "rows").write_text("spoilt  ")  # by a disk, after its checksum was taken
    with pytest.raises(ServerError, match="not those of the snapshot") as caught:
        files.restore()
    assert caught.value.found == "rows"


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


SPEC = ServerSpec("fast", "mysql:8.0.15")


class Product(StartedInstance):
    """An instance whose pristine data is one file."""

    def __init__(self, folder: Path):
        self.removals: list[bool] = []
        files = InstanceFiles("fast", folder, None, {"reference": SPEC.reference})
        site = Site("fast", find(SPEC.reference), Path("/home-of-it"), files.work, None, {})
        super().__init__(SPEC, site, files, lambda text: None)

    def start(self, begin=lambda site, port: IdleServer()):
        self._must_be_stopped("started")
        return self._start(self._site, begin)

    def _pristine(self):
        return self.folder.parent / "pristine"

    def _before_removal(self):
        self.removals.append(self._files.data.is_dir())


@pytest.fixture
def lab(tmp_path):
    (tmp_path / "pristine").mkdir()
    (tmp_path / "pristine" / "rows").write_text("pristine")
    (tmp_path / "instance").mkdir()
    return tmp_path / "instance"


def rows(folder: Path) -> Path:
    return folder / "server" / "data" / "rows"


def test_a_running_server_is_neither_copied_restored_nor_started_again(lab):
    instance = Product(lab)
    instance.start()
    for action in (instance.snapshot, instance.restore, instance.start):
        with pytest.raises(ServerError, match="fast: a running server cannot be") as caught:
            action()
        assert caught.value.found == "pid 4242"


def test_a_server_that_crashed_or_did_not_come_up_gives_no_snapshot(lab):
    def fail(site, port):
        raise ServerError("did not start")

    instance = Product(lab)
    instance.start().running = False
    with pytest.raises(ServerError, match="did not stop cleanly"):
        instance.snapshot()
    with pytest.raises(ServerError, match="did not start"):
        instance.start(fail)
    with pytest.raises(ServerError, match="did not stop cleanly"):
        instance.snapshot()


def test_untouched_data_and_that_of_a_clean_stop_may_be_kept(lab):
    instance = Product(lab)
    instance.snapshot()
    server = instance.start()
    rows(lab).write_text("loaded")
    server.stop()
    instance.snapshot()
    rows(lab).write_text("changed")
    instance.restore()
    assert rows(lab).read_text() == "loaded"
    assert instance.removals[-1]  # the product could give back what it held before


def test_closing_ends_the_server_and_a_start_brings_the_snapshot_back(lab):
    instance = Product(lab)
    rows(lab).write_text("loaded")
    instance.snapshot()
    server = instance.start()
    instance.close()
    assert (server.kills, server.stopped_cleanly) == (1, False)
    assert not (lab / "server").exists()
    Product(lab).start()
    assert rows(lab).read_text() == "loaded"


def test_data_left_by_a_lab_that_died_is_not_used(lab):
    Product(lab)
    rows(lab).write_text("half a trial")
    Product(lab)
    assert rows(lab).read_text() == "pristine"
