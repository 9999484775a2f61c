"""Which load a block rests on, who shares loads, and which ones are removed."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pydantic import ValidationError
from tests.experiment.test_runner import created, interrupt_in, small, start

from dbdyno.errors import ServerError, StoreError
from dbdyno.experiment.data import disk, loads
from dbdyno.files import locked
from dbdyno.plan.plan import DatasetPlan, Plan, ProcedurePlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.store.store import Store
from support import making
from support.fakes import Progress
from support.world import FakeInstance, World

A, B = making.A, making.B


def plan(blocks=3, **facts):
    return small(**{"blocks": blocks, "threads": (8,), "window_s": 1, "warmup_s": 0, **facts})


def rested_on(store, run, system=A):
    """The load of each of the run's blocks."""
    measured = store.measurements(run.run_id)
    return [m.load for m in measured if m.trial.system == system]


def test_all_blocks_and_later_runs_rest_on_one_load_of_each_system(store):
    world = World()
    run = start(store, plan(), world)
    of_a, of_b = rested_on(store, run), rested_on(store, run, B)
    assert [len(set(of_a)), len(set(of_b)), len({*of_a, *of_b})] == [1, 1, 2]
    assert world.calls.count(("snapshot", A)) == world.calls.count(("snapshot", B)) == 1
    assert len({m.dataset for m in store.measurements(run.run_id)}) == 1
    later = World()
    assert rested_on(store, start(store, plan(), later)) == of_a
    assert ("snapshot", A) not in later.calls
    asked = [one["do"] for one in world.requests]
    assert asked == ["cleanup", "prepare"] * 2 + ["run"] * 6
    assert {one["do"] for one in later.requests} == {"run"}


def test_a_plan_says_on_how_many_loads_the_blocks_rest_in_turn(store):
    run = start(store, plan(blocks=5, dataset=DatasetPlan(loads=2)))
    one, two, *rest = rested_on(store, run)
    assert one != two
    assert rest == [one, two, one]


@pytest.mark.parametrize("sequence", [1, 3])
def test_a_resumed_run_goes_on_with_the_loads_of_its_blocks(store, sequence):
    """Interrupted in the first block, where one of three loads is there, or in the second."""
    asked = plan(blocks=4, dataset=DatasetPlan(loads=3))
    stored = created(store, asked)
    with pytest.raises(KeyboardInterrupt):
        start(store, asked, World(), interrupt_in(sequence), stored)
    start(store, asked, stored=stored)
    by_block = {(m.trial.block, m.trial.system): m.load for m in store.measurements(stored.run_id)}
    of_a = [by_block[block, A] for block in range(4)]
    assert len(set(of_a)) == 3
    assert of_a[3] == of_a[0]
    every = {(m.trial.block, m.trial.system, m.load) for m in store.measurements(stored.run_id)}
    assert len(every) == 8


def test_data_that_are_kept_from_trial_to_trial_are_of_one_load(store):
    world = World()
    run = start(store, plan(procedure={"fresh_data": "once"}), world)
    assert len(set(rested_on(store, run))) == 1
    assert world.calls.count(("restore", A)) == 1
    asked = plan(procedure=ProcedurePlan(fresh_data="once"), dataset=DatasetPlan(loads=2))
    with pytest.raises(ValidationError, match="are of one load"):
        Plan.model_validate(asked.model_dump())


def test_what_is_removed_by_half_counts_no_more(tmp_path, monkeypatch):
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    (snapshot / "snapshot.json").touch()

    def refuse(folder):
        raise OSError("busy")

    with monkeypatch.context() as patch:
        patch.setattr(loads.shutil, "rmtree", refuse)
        with pytest.raises(OSError, match="busy"):
            loads.remove(tmp_path)
    assert list(tmp_path.rglob("*")) == [snapshot]
    loads.remove(tmp_path)
    assert not tmp_path.exists()


# Loads that workspaces share.


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("DBDYNO_CACHE", str(folder))
    return folder


@pytest.fixture
def workspaces(tmp_path, cache):
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


def test_a_run_in_another_workspace_rests_on_the_same_loads(workspaces):
    one, other = workspaces
    first = start(one, plan(), sharing())
    world = sharing()
    second = start(other, plan(), world)
    assert names_of(other, second) == names_of(one, first)
    assert world.calls[0][0] == "restore"
    assert not (other.path.parent / "systems").exists()


def test_labs_that_work_at_once_share_no_load_and_leave_theirs_to_later_ones(workspaces, cache):
    one, other = workspaces
    progress, runs = beside(other, plan(blocks=1))
    first = start(one, plan(blocks=1, design=ANY), sharing(), progress)
    (second,) = runs
    assert len(names_of(one, first) | names_of(other, second)) == 4
    assert [load.name for load in loads_in(cache)] == ["1", "2"] * 2
    assert names_of(other, start(other, plan(blocks=1), sharing())) == names_of(one, first)
    two = start(other, plan(blocks=2, dataset=DatasetPlan(loads=2)), sharing())
    assert names_of(other, two) == names_of(one, first) | names_of(other, second)


def test_a_lab_takes_a_load_that_is_there_before_it_makes_one(workspaces, cache):
    one, other = workspaces
    progress, runs = beside(other, plan(blocks=1))
    start(one, plan(blocks=1, design=ANY), sharing(), progress)
    for load in loads_in(cache):
        if load.name == "1":
            loads.remove(load)
    assert names_of(one, start(one, plan(), sharing())) == names_of(other, runs[0])


def test_a_lab_waits_for_another_that_chooses_but_not_without_end(workspaces, cache, monkeypatch):
    monkeypatch.setattr("dbdyno.files.WAIT_S_MAX", 0.01)
    progress = Progress()
    with (
        locked(loads.lock_of(cache), "x"),
        pytest.raises(StoreError, match=r"another dbdyno holds systems\.lock for more than"),
    ):
        start(workspaces[0], plan(), sharing(), progress)
    assert "waiting for another dbdyno that holds systems.lock" in progress.stages


def test_the_load_that_was_unused_longest_makes_room_and_that_is_told(
    workspaces, cache, monkeypatch
):
    one, other = workspaces
    for tables, used_at in ((9, 200), (8, 100)):
        before = loads_in(cache)
        start(one, plan(blocks=1, dataset=DatasetPlan(tables=tables)), sharing())
        for load in (made for made in loads_in(cache) if made not in before):
            (load / "ballast").write_bytes(b"x" * 3_000_000)
            os.utime(load, (used_at, used_at))
    older = [load for load in loads_in(cache) if load.stat().st_mtime == 100]
    newer = [load for load in loads_in(cache) if load.stat().st_mtime == 200]
    monkeypatch.setattr(disk, "kept_most", lambda home, taken: 7_000_000)
    progress = Progress()
    start(one, plan(blocks=1, dataset=DatasetPlan(tables=9)), sharing(), progress)
    assert len(loads_in(cache)) == 4, "nothing is loaded, so nothing is removed"
    start(other, plan(blocks=1, dataset=DatasetPlan(tables=7)), sharing(), progress)
    assert not {*older} & {*loads_in(cache)}
    assert {*newer} <= {*loads_in(cache)}
    assert {text for text in progress.stages if text.startswith("removed")} == {
        f"removed the unused load {load.parent.name}/1, 3 MB:"
        f" loads in {cache / 'systems'} may take 7 MB"
        for load in older
    }


def test_the_limit_of_the_cache_is_held_at_the_end_of_a_run_and_that_is_told(
    workspaces, cache, monkeypatch
):
    one, other = workspaces
    start(one, plan(blocks=1), sharing())
    for load in loads_in(cache):
        (load / "ballast").write_bytes(b"x" * 3_000_000)
    monkeypatch.setenv("DBDYNO_CACHE_GB_MAX", "0.004")
    progress = Progress()
    start(other, plan(blocks=1), sharing(), progress)
    assert len(loads_in(cache)) == 1
    assert [text for text in progress.stages if text.startswith("removed the unused load")]
    assert not [text for text in progress.stages if "allows" in text]
    programs = [cache / "servers" / "mysql-5.7.22", cache / "pristine" / "mysql-5.7.22-1"]
    for folder in programs:
        folder.mkdir(parents=True)
        (folder / "ballast").write_bytes(b"x" * 3_000_000)
    (cache / "pristine" / "held").write_bytes(b"x" * 5_000_000)
    start(other, plan(blocks=1), sharing(), progress)
    assert loads_in(cache) == []
    assert not [folder for folder in programs if folder.exists()]
    assert sum(text.startswith("removed pristine/mysql") for text in progress.stages) == 1
    assert "more than DBDYNO_CACHE_GB_MAX allows" in progress.stages[-1]


def test_loads_that_a_lab_uses_are_not_removed(workspaces, cache, monkeypatch):
    one, other = workspaces
    monkeypatch.setattr(disk, "KEPT_SHARE", 0.0)
    progress, runs = beside(other, plan(blocks=1, dataset=DatasetPlan(tables=7)))
    used = start(one, plan(blocks=1, design=ANY), sharing(), progress)
    assert [m.failure for m in one.measurements(used.run_id)] == [None] * 2
    assert [m.failure for m in other.measurements(runs[0].run_id)] == [None] * 2
    assert len(loads_in(cache)) == 4


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


def test_what_a_lab_that_died_has_left_is_cleared_unless_another_holds_it(workspaces, cache):
    one, other = workspaces
    start(one, plan(blocks=1), sharing())
    held, left = (load / loads.OPEN for load in loads_in(cache))
    for load in (held.parent, left.parent):
        (load / loads.OPEN).touch()
        (load / "server").mkdir()
    with locked(loads.lock_of(cache, *held.parts[-3:-1]), "x"):
        start(other, plan(blocks=1, dataset=DatasetPlan(tables=7)), sharing())
    assert held.exists()
    assert not left.exists()
    assert (held.parent / "server").exists()
    assert sorted(path.name for path in left.parent.iterdir()) == ["dataset.json", "snapshot"]


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
