"""Which load a block rests on, which loads stay, and how much of the time loading may take."""

from __future__ import annotations

from collections import namedtuple
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pydantic import ValidationError
from tests.experiment.test_runner import created, interrupt_in, small, start

from dbdyno.errors import Interrupted, ServerError, StoreError
from dbdyno.experiment.data import disk, loads
from dbdyno.files import locked
from dbdyno.plan.plan import DatasetPlan, Plan, ProcedurePlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.store.store import Store
from support import making
from support.fakes import FakeInstance, Progress, World

A, B = making.A, making.B
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def room(monkeypatch):
    """Says for how many loads of two systems the disk has room; there is time for each block's."""
    monkeypatch.setattr(loads, "LOADS_SHARE", 1.0)

    def for_loads(count):
        each = 2 * (disk.EMPTY_BYTES + making.plan().dataset.bytes_about)
        free = int((count + 0.5) * each / disk.KEPT_SHARE)
        monkeypatch.setattr(disk.shutil, "disk_usage", lambda place: Usage(0, 0, free))

    for_loads(disk.LOADS_KEPT)
    return for_loads


def plan(blocks=3, **facts):
    return small(**{"blocks": blocks, "threads": (8,), "window_s": 1, "warmup_s": 0, **facts})


def rested_on(store, run, system=A):
    """The load of each of the run's blocks."""
    measured = store.measurements(run.run_id)
    return {m.trial.block: m.load for m in measured if m.trial.system == system}


def test_each_block_rests_on_a_load_of_its_own_of_each_system(store, room):
    world = World()
    run = start(store, plan(), world)
    of_a, of_b = rested_on(store, run), rested_on(store, run, B)
    assert len({*of_a.values(), *of_b.values()}) == 6
    assert world.calls.count(("snapshot", A)) == world.calls.count(("snapshot", B)) == 3
    assert len({m.dataset for m in store.measurements(run.run_id)}) == 1


def test_a_later_run_rests_on_one_load_of_the_run_before_and_on_new_ones(store, room):
    runs = [start(store, plan()) for _ in range(3)]
    first, second, third = (list(rested_on(store, run).values()) for run in runs)
    assert second[0] == first[0]
    assert not {*second[1:]} & {*first}
    assert third[0] in {*first, *second} - {first[0]}  # two runs rest on that
    assert not {*third[1:]} & {*first, *second}


def test_where_the_disk_has_room_for_one_load_each_replaces_the_one_before(store, room):
    room(1)
    world = World()
    run = start(store, plan(), world)
    assert len(set(rested_on(store, run).values())) == 3
    assert world.calls.count(("discard", A)) == 2
    assert {instance.folder.name for instance in world.instances} == {"1"}


def test_loads_that_most_runs_rest_on_are_replaced_first(store, room):
    room(2)
    first = start(store, plan(blocks=2))
    shared, other = rested_on(store, first).values()
    second = start(store, plan(blocks=2))
    assert rested_on(store, second)[0] == shared
    assert list(rested_on(store, start(store, plan(blocks=1))).values()) == [other]


def test_no_more_than_three_runs_rest_on_one_load(store, room):
    runs = [start(store, plan(blocks=1)) for _ in range(5)]
    names = [rested_on(store, run)[0] for run in runs]
    assert names == [names[0]] * 3 + [names[3]] * 2
    assert names[3] != names[0]


def test_a_plan_says_on_how_many_loads_the_blocks_rest_by_turns(store, room):
    run = start(store, plan(blocks=5, dataset=DatasetPlan(loads=2)))
    one, two, *rest = rested_on(store, run).values()
    assert one != two
    assert rest == [one, two, one]


def test_loading_takes_no_more_than_its_share_of_the_time(store, room, monkeypatch):
    monkeypatch.setattr(loads, "LOADS_SHARE", 0.0)
    run = start(store, plan())
    assert len(set(rested_on(store, run).values())) == 1
    monkeypatch.setattr(loads, "LOADS_SHARE", 1.0)
    start(store, plan(blocks=4))
    monkeypatch.setattr(loads, "LOADS_SHARE", 0.0)
    world = World()
    run = start(store, plan(blocks=6), world)
    first = rested_on(store, run)
    assert len({first[block] for block in range(4)}) == 4  # there is time for those that are there
    assert [first[4], first[5]] == [first[0], first[1]]
    assert ("snapshot", A) not in world.calls


def test_a_resumed_run_goes_on_with_the_load_of_its_block(store, room):
    asked = plan()
    stored = created(store, asked)
    with pytest.raises(Interrupted):
        start(store, asked, World(), interrupt_in(3), stored)
    start(store, asked, stored=stored)
    measured = [m for m in store.measurements(stored.run_id) if m.trial.block == 1]
    by_system = {(m.trial.system, m.load) for m in measured}
    assert len(measured) == 3  # one of them was interrupted
    assert len(by_system) == 2


def test_a_run_that_is_resumed_between_two_blocks_has_as_many_loads_as_its_plan_names(store, room):
    class Pressing(Progress):
        def end(self, trial, measurement, seconds_left):
            super().end(trial, measurement, seconds_left)
            if trial.sequence == 1:  # the last of its block
                raise KeyboardInterrupt

    asked = plan(blocks=4, dataset=DatasetPlan(loads=3))
    stored = created(store, asked)
    with pytest.raises(Interrupted):
        start(store, asked, World(), Pressing(), stored)
    start(store, asked, stored=stored)
    one, *others, again = rested_on(store, stored).values()
    assert len({one, *others}) == 3
    assert again == one


def test_data_that_are_kept_from_trial_to_trial_are_of_one_load(store, room):
    start(store, plan())
    world = World()
    run = start(store, plan(procedure={"fresh_data": "once"}), world)
    assert len(set(rested_on(store, run).values())) == 1
    assert world.calls.count(("restore", A)) == 1
    asked = plan(procedure=ProcedurePlan(fresh_data="once"), dataset=DatasetPlan(loads=2))
    with pytest.raises(ValidationError, match="are of one load"):
        Plan.model_validate(asked.model_dump())


def test_a_record_that_cannot_be_read_is_no_load(tmp_path):
    (tmp_path / loads.RECORD).write_text("{")
    assert loads.Load.recorded(tmp_path).name == ""


# Loads that workspaces share.


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("DBDYNO_CACHE", str(folder))
    return folder


@pytest.fixture
def workspaces(tmp_path, cache, room):
    """The stores of two workspaces on the disk of the cache."""
    with Store.open(tmp_path / "one") as one, Store.open(tmp_path / "other") as other:
        yield one, other


def sharing():
    world = World()
    world.makers = replace(world.makers, shares_loads=True)
    return world


def loads_in(cache):
    return sorted(cache.glob("systems/*/*"))


def names_of(store, run):
    return {m.load for m in store.measurements(run.run_id)}


ANY = {"disturbance_max": 1.0}
"""Of a design: what runs beside its trials makes none of them void."""


def beside(store, asked):
    """Progress in whose first trial another lab carries out a run, which is given at the end."""
    runs = []

    def begin(trial, interval):
        if not runs:
            runs.append(start(store, asked, sharing()))

    return Progress(begin), runs


def test_a_run_begins_on_a_load_of_another_workspace_and_makes_its_own_after_it(workspaces):
    one, other = workspaces
    first = start(one, plan(), sharing())
    world = sharing()
    second = start(other, plan(), world)
    (begun, *further) = rested_on(other, second).values()
    assert begun == rested_on(one, first)[0]
    assert not {*further} & names_of(one, first)
    assert len({*further}) == 2
    assert world.calls[0][0] == "restore"
    assert world.calls.count(("snapshot", A)) == 2
    assert not (other.path.parent / "systems").exists()


def test_no_more_than_three_runs_of_all_workspaces_rest_on_one_load(workspaces):
    stores = (*workspaces, *workspaces)
    runs = [start(store, plan(blocks=1), sharing()) for store in stores]
    first, *others, last = (rested_on(*one)[0] for one in zip(stores, runs, strict=True))
    assert others == [first, first]
    assert last != first


def test_labs_that_work_at_once_share_no_load(workspaces):
    one, other = workspaces
    progress, runs = beside(other, plan(blocks=1))
    first = start(one, plan(blocks=2, design=ANY), sharing(), progress)
    of_both = names_of(one, first) | names_of(other, runs[0])
    assert len(of_both) == 2 * 2 + 2
    assert names_of(other, start(other, plan(blocks=1), sharing())) <= of_both


def test_a_lab_waits_for_another_that_chooses_but_not_without_end(workspaces, cache, monkeypatch):
    monkeypatch.setattr("dbdyno.files.WAIT_S_MAX", 0.01)
    progress = Progress()
    with (
        locked(loads.lock_of(cache), "x"),
        pytest.raises(StoreError, match=r"another dbdyno holds systems\.lock for more than"),
    ):
        start(workspaces[0], plan(), sharing(), progress)
    assert "waiting for another dbdyno that holds systems.lock" in progress.stages


def test_loads_of_other_plans_make_room_unless_a_lab_uses_them(workspaces, cache, monkeypatch):
    one, other = workspaces
    start(one, plan(blocks=1, dataset=DatasetPlan(tables=9)), sharing())
    unused = loads_in(cache)
    for load in unused:
        (load / "ballast").write_bytes(b"x" * 10_000)
    monkeypatch.setattr(disk, "KEPT_SHARE", 0.0)
    progress, runs = beside(other, plan(blocks=1, dataset=DatasetPlan(tables=7)))
    used = start(one, plan(blocks=1, design=ANY), sharing(), progress)
    assert [m.failure for m in one.measurements(used.run_id)] == [None] * 2
    assert [m.failure for m in other.measurements(runs[0].run_id)] == [None] * 2
    assert len(unused) == 2
    assert len(loads_in(cache)) == 4
    assert not {*unused} & {*loads_in(cache)}


def test_a_copy_that_is_not_whole_is_loaded_again_and_is_another_load(workspaces, cache):
    one, other = workspaces
    first = start(one, plan(blocks=1), sharing())
    for load in loads_in(cache):
        (load / "snapshot").unlink()
    world = sharing()
    second = start(other, plan(blocks=1), world)
    assert not names_of(one, first) & names_of(other, second)
    assert world.calls[:2] == [("start", A), ("snapshot", A)]
    assert {load.name for load in loads_in(cache)} == {"1"}


def test_a_damaged_copy_ends_one_run_and_is_loaded_again_by_the_next(workspaces, monkeypatch):
    one, other = workspaces
    first, asked = start(one, plan(blocks=1), sharing()), plan(blocks=1)
    stored = created(other, asked)

    def damaged(instance):  # as `InstanceFiles.restore`
        (instance.folder / "snapshot").unlink()
        raise ServerError("the restored files are not those of the snapshot")

    with monkeypatch.context() as patch:
        patch.setattr(FakeInstance, "restore", damaged)
        with pytest.raises(ServerError, match="not those of the snapshot"):
            start(other, asked, sharing(), stored=stored)
    start(other, asked, sharing(), stored=stored)
    assert [m.failure for m in other.measurements(stored.run_id)] == [None] * 2
    assert len(names_of(one, first) & names_of(other, stored)) == 1  # of the system that was not


def test_a_lab_that_dies_in_place_of_a_damaged_load_leaves_none_of_its_name(
    workspaces, cache, monkeypatch
):
    one, other = workspaces
    first = start(one, plan(blocks=1), sharing())
    for load in loads_in(cache):
        (load / "snapshot").unlink()

    def die(folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loads.dataset, "read_digest", die)  # its copy is whole by then
        with pytest.raises(Interrupted):
            start(other, plan(blocks=1), sharing())
    second = start(other, plan(blocks=1), sharing())
    assert not names_of(one, first) & names_of(other, second)


def test_a_load_that_becomes_free_meanwhile_is_not_taken_for_a_new_one(
    workspaces, cache, monkeypatch
):
    one, other = workspaces
    first, world = start(one, plan(blocks=1), sharing()), sharing()
    with ExitStack() as held:
        for load in loads_in(cache):
            held.enter_context(locked(loads.lock_of(cache, *load.parts[-2:]), "another lab's"))
        monkeypatch.setattr(loads, "_make_room", lambda home, own: held.close())
        second = start(other, plan(blocks=1), world)
    assert [instance.folder.name for instance in world.instances] == ["2", "1"]
    assert rested_on(one, first) != rested_on(other, second)
    assert rested_on(one, first, B) == rested_on(other, second, B)


def test_what_a_lab_that_died_has_left_is_cleared_unless_another_holds_it(workspaces, cache):
    one, other = workspaces
    start(one, plan(blocks=2), sharing())
    held, left = (load / loads.OPEN for load in loads_in(cache) if load.name == "2")
    held.touch()
    left.touch()
    with locked(loads.lock_of(cache, *held.parts[-3:-1]), "x"):
        start(other, plan(blocks=1), sharing())
    assert held.exists()
    assert not left.exists()


def test_a_workspace_on_another_disk_has_loads_of_its_own(workspaces, monkeypatch):
    one, _ = workspaces
    elsewhere = SimpleNamespace(stat=lambda: SimpleNamespace(st_dev=-1))
    monkeypatch.setattr(loads.places, "make_cache_folder", lambda kind: elsewhere)
    start(one, plan(blocks=1), sharing())
    assert len(loads_in(one.path.parent)) == 2


def test_only_servers_that_the_lab_starts_as_processes_share_loads(tmp_path, cache):
    context = SimpleNamespace(folder=tmp_path, makers=SimpleNamespace(shares_loads=True))
    image = f"container:mysql@sha256:{64 * '0'}"
    homes = [
        loads.home_of(context, SystemPlan(label="x", reference=reference))
        for reference in (A, "mysql://bench@10.0.0.1/sbtest", image)
    ]
    assert homes == [cache, tmp_path, tmp_path]
