import shutil

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.local import files as module
from dbdyno.servers.local.files import InstanceFiles


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
