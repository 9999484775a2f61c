"""A plan that cannot fit is refused before its first row; a disk that fills up stops the run."""

import shutil
from collections import namedtuple

import pytest

from dbdyno.errors import LoadError
from dbdyno.experiment.data import disk
from dbdyno.plan.plan import ROW_BYTES, DatasetPlan
from dbdyno.plan.systems import SystemPlan, TopologyPlan
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.local.files import keep
from support import making

Usage = namedtuple("Usage", "total used free")
PLAN = making.plan(dataset=DatasetPlan(tables=4, rows=100_000))
ROWS = 4 * 100_000 * ROW_BYTES


class Instance:
    def __init__(self, folder, loaded=False, reference="mysql:8.0.15"):
        self.folder, self.loaded = folder, loaded
        self.spec = ServerSpec("a", reference)

    def has_snapshot(self):
        return self.loaded


@pytest.fixture
def free(monkeypatch):
    def set_to(count):
        monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(0, 0, int(count)))

    return set_to


def test_a_plan_takes_its_data_at_work_and_as_a_copy_for_each_system_which_stays():
    at_work, kept = disk.EMPTY_BYTES + 1.1 * ROWS, disk.KEPT_BYTES + ROWS
    assert disk.bytes_expected(PLAN) == 2 * (at_work + kept)
    assert disk.bytes_kept(PLAN) == 2 * kept
    assert disk.need(PLAN) == "about 2.3 GB on the workspace's disk, of which 0.4 GB stay"


def test_loads_that_a_plan_names_take_room_each():
    thrice = PLAN.model_copy(update={"dataset": DatasetPlan(tables=4, rows=100_000, loads=3)})
    more = disk.bytes_expected(thrice) - disk.bytes_expected(PLAN)
    assert more == 2 * 2 * (disk.KEPT_BYTES + ROWS)


def test_replicas_need_as_much_at_work_as_their_primary_and_endpoints_nothing_here():
    replicated = SystemPlan(label="r", reference="mysql:8.0.33", topology=TopologyPlan(replicas=2))
    elsewhere = SystemPlan(label="e", reference="mysql://me@127.0.0.1/db")
    plan = PLAN.model_copy(update={"systems": (replicated, elsewhere)})
    kept = disk.KEPT_BYTES + ROWS
    at_work = 3 * (disk.EMPTY_BYTES + 1.1 * ROWS)
    assert disk.bytes_expected(plan) == pytest.approx(at_work + kept, abs=3)
    alone = plan.model_copy(update={"systems": (elsewhere,)})
    assert (disk.bytes_expected(alone), disk.need(alone)) == (0, "")


def test_instances_on_one_disk_share_its_room(free, tmp_path):
    instances = [Instance(tmp_path / name) for name in "ab"]
    enough = disk.FLOOR_BYTES + 2 * 2.1 * ROWS
    free(enough + 1)
    disk.check_before(PLAN.dataset, instances)
    free(enough - 1e6)
    with pytest.raises(LoadError, match="too small for this plan") as caught:
        disk.check_before(PLAN.dataset, instances)
    assert caught.value.wanted == f"554 MB free at {tmp_path}"
    assert caught.value.found == "553 MB free"
    assert "--workspace" in caught.value.hint


def test_a_loaded_instance_needs_one_copy_of_what_it_has(free, tmp_path):
    (tmp_path / "data").write_bytes(b"x" * 10_000_000)
    free(disk.FLOOR_BYTES + 10_000_000 + 0.1 * ROWS + 1e5)
    disk.check_before(PLAN.dataset, [Instance(tmp_path, loaded=True)])
    with pytest.raises(LoadError):
        disk.check_before(PLAN.dataset, [Instance(tmp_path)])


def test_a_loaded_instance_needs_room_for_the_zeros_left_out_of_its_copy(free, tmp_path):
    source, snapshot = tmp_path / "source", tmp_path / "a" / "snapshot"
    source.mkdir()
    (source / "redo").write_bytes(bytes(10_000_000))
    snapshot.mkdir(parents=True)
    keep(source, snapshot)
    enough = disk.FLOOR_BYTES + 10_000_000 + 0.1 * ROWS
    free(enough + 1e5)
    disk.check_before(PLAN.dataset, [Instance(snapshot.parent, loaded=True)])
    free(enough - 1e6)
    with pytest.raises(LoadError):
        disk.check_before(PLAN.dataset, [Instance(snapshot.parent, loaded=True)])


def test_unused_loads_may_take_a_quarter_of_what_is_free_without_them(free, tmp_path):
    free(600)
    assert disk.kept_most(tmp_path / "not" / "yet", 200) == 200
    assert disk.kept_most(tmp_path, 1000) == 400


def test_a_disk_that_is_nearly_full_is_reported_with_its_place(free, tmp_path):
    free(disk.FLOOR_BYTES)
    disk.check_during([tmp_path, tmp_path / "not" / "yet"])
    free(disk.FLOOR_BYTES - 1)
    with pytest.raises(LoadError, match="nearly full") as caught:
        disk.check_during([tmp_path / "not" / "yet"])
    assert str(tmp_path) in caught.value.wanted
    assert "resume" in caught.value.hint


def test_without_a_folder_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: pytest.fail("asked"))
    disk.check_during([])
    disk.check_before(PLAN.dataset, [])


def test_an_endpoints_rows_need_no_room_here(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: pytest.fail("asked"))
    disk.check_before(PLAN.dataset, [Instance(tmp_path, reference="mysql://u@h:1/d")])
