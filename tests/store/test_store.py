"""The store keeps everything, refuses what would falsify it, and survives its writer."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno.errors import StoreError
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.plan import ChosenDesign
from dbdyno.store import database
from dbdyno.store.store import LATEST, Store, find, opened
from support import making
from support.stored_run import store_made

CHOSEN = ChosenDesign(
    warmup_s=2, window_s=10, blocks=4, start_noise=0.02, second_noise=0.1, block_s=30
)
ROOT = Path(__file__).resolve().parents[2]


def new_run(store):
    plan = making.plan()
    return store.create_run(plan, "dbdyno compare a b", {"cpu": "two cores"}, 10)


def measurement(run, **facts):
    return making.with_trial(making.measurement(window_s=3, warmup_s=1, **facts), run_id=run.run_id)


def test_a_run_comes_back_as_it_was_asked_for(store):
    run = new_run(store)
    assert store.run(run.run_id) == run
    assert run.plan == making.plan()
    assert run.finished_at is None
    store.finish(run.run_id)
    assert store.run(run.run_id).finished_at is not None


def test_an_unknown_run_is_refused_with_those_known(store):
    known = new_run(store).run_id
    with pytest.raises(StoreError, match="no run nonsense") as caught:
        store.run("nonsense")
    assert known in str(caught.value)


def test_a_measurement_comes_back_whole_with_its_histograms(store):
    run = new_run(store)
    measured = measurement(run)
    store.append(measured)
    (back,) = store.measurements(run.run_id)
    assert back == measured
    assert back.value(BY_NAME["latency_ms_p50"]) == measured.value(BY_NAME["latency_ms_p50"])
    assert [i.histograms for i in back.intervals] == [i.histograms for i in measured.intervals]


def test_a_second_complete_measurement_of_a_trial_is_refused(store):
    run = new_run(store)
    store.append(measurement(run))
    with pytest.raises(StoreError, match="stored already"):
        store.append(measurement(run))
    assert len(store.measurements(run.run_id)) == 1


def test_failed_attempts_are_kept_and_may_be_repeated(store):
    run = new_run(store)
    for failure in ("the server died", "the server died again", None):
        assert store.done(run.run_id) == set()
        store.append(measurement(run, failure=failure))
    stored = store.measurements(run.run_id)
    assert [m.failure for m in stored] == ["the server died", "the server died again", None]
    assert store.done(run.run_id) == {stored[0].trial.key}
    with closing(sqlite3.connect(store.path)) as plain:
        rows = plain.execute("SELECT attempt FROM measurements").fetchall()
    assert rows == [(0,), (1,), (2,)]


def test_a_repeat_of_a_block_is_another_attempt_and_alone_is_done(store):
    run = new_run(store)
    first = measurement(run, block=1)
    again = making.with_trial(first, repeat=1)
    store.append(first)
    store.append(again)
    with pytest.raises(StoreError):
        store.append(again)
    assert store.done(run.run_id) == {f"{first.trial.key}/again=1"}
    assert store.repeats(run.run_id) == {(1, "oltp_read_write/threads=8"): 1}
    assert store.block(run.run_id, 1) == [first, again]
    with closing(sqlite3.connect(store.path)) as plain:
        rows = plain.execute("SELECT sequence, attempt FROM measurements").fetchall()
    assert rows == [(1, 0), (1, 1)]


def test_a_measurement_of_no_run_is_refused(store):
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.append(making.measurement(window_s=1, warmup_s=0))
    assert store.runs() == []


def test_a_killed_writer_leaves_all_it_had_appended(tmp_path):
    script = """
        import sys
        from pathlib import Path
        from dbdyno.store.store import Store
        from support import making
        with Store.open(Path(sys.argv[1])) as store:
            run = store.create_run(making.plan(), "command", {}, 1000)
            for block in range(1000):
                made = making.measurement(block=block, window_s=2, warmup_s=0)
                store.append(making.with_trial(made, run_id=run.run_id))
                print(block, flush=True)
    """
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=ROOT / "tests",
        text=True,
    )
    for _ in range(5):
        appended = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    with Store.open(tmp_path) as store:
        (run,) = store.runs()
        blocks = [m.trial.block for m in store.measurements(run.run_id)]
    assert blocks == list(range(len(blocks)))
    assert len(blocks) > appended


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made"):
        Store.open(tmp_path / "file" / "workspace")


def append_many(store, run):
    for block in range(1, 50):
        store.append(measurement(run, block=block))


def test_a_full_disk_keeps_what_was_stored(store):
    run = new_run(store)
    store.append(measurement(run))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="full") as caught:
        append_many(store, run)
    assert "free space" in caught.value.hint
    assert store.measurements(run.run_id)[0].failure is None


class Full(database.StoreConnection):
    """A file that cannot be copied to a smaller one."""

    def execute(self, sql, *values):
        if sql == "VACUUM":
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *values)


def test_a_run_is_removed_on_a_full_disk_too(store):
    run = new_run(store)
    store.append(measurement(run))
    with Store(Full(store.path, "mode=rw"), store.path) as full:
        full.remove(run.run_id)
    assert store.run_ids() == []


def test_blocks_are_begun_up_to_the_last_of_which_a_trial_is_stored(store):
    run = new_run(store)
    assert store.blocks_begun(run.run_id) == 0
    store.append(measurement(run, block=2, failure="it died"))
    assert store.blocks_begun(run.run_id) == 3


def test_latest_is_the_newest_and_an_id_is_itself(tmp_path: Path) -> None:
    first = store_made(tmp_path, (0.9,))
    second = store_made(tmp_path, (0.8,))
    with opened(tmp_path) as store:
        assert find(store, LATEST) == second
        assert find(store, first.run_id) == first


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no run yet"):
        opened(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
    with Store.open(tmp_path) as store, pytest.raises(StoreError, match="no run yet"):
        find(store, LATEST)


# The chain of digests: what the file's own triggers do not keep somebody from doing.


def by_hand(store, *statements):
    """Edits as somebody makes them who knows SQL: triggers taken away first."""
    with closing(sqlite3.connect(store.path)) as file:
        triggers = file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for statement in [*(f"DROP TRIGGER {name}" for (name,) in triggers), *statements]:
            file.execute(statement)
        file.commit()


FASTER = (
    "UPDATE measurements SET measurement = json_set(measurement, '$.intervals[2].events',"
    " CAST(1.08 * json_extract(measurement, '$.intervals[2].events') AS INTEGER))"
)


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        ([f"{FASTER} WHERE id = 2"], "trial 1/"),
        (
            ["UPDATE histograms SET hdr_v2 = x'00' WHERE measurement_id = 3 AND interval = 1"],
            "trial 2/",
        ),
        (["DELETE FROM histograms WHERE measurement_id = 1"], "trial 0/"),
        (["UPDATE measurements SET failure = 'slow' WHERE id = 1"], "trial 0/"),
        (
            [
                "DELETE FROM chain WHERE measurement_id = 3",
                "DELETE FROM histograms WHERE measurement_id = 2",
                "DELETE FROM measurements WHERE id = 2",
            ],
            "trial 2/",
        ),
        (
            [
                "DELETE FROM histograms WHERE measurement_id = 3",
                "DELETE FROM measurements WHERE id = 3",
            ],
            "a trial is gone",
        ),
        (["DELETE FROM chain"], "its chain of digests is gone"),
        (["UPDATE runs SET environment = '{}'"], "its plan, command or environment"),
        (["UPDATE runs SET command = 'dbdyno compare b a'"], "its plan, command or environment"),
    ],
)
def test_a_change_by_hand_is_found_when_it_is_read(store, statements, named):
    run = new_run(store)
    for block in range(3):
        store.append(measurement(run, block=block))
    digest = store.verified(run.run_id)
    assert len(digest) == 64
    assert len(store.measurements(run.run_id)) == 3
    by_hand(store, *statements)
    with pytest.raises(StoreError, match="is not as it was stored") as caught:
        store.measurements(run.run_id)
    assert named in str(caught.value)


LAST_TRIAL = [
    "DELETE FROM chain WHERE place > 2",
    "DELETE FROM histograms WHERE measurement_id = 3",
    "DELETE FROM measurements WHERE id = 3",
]


@pytest.mark.parametrize("statements", [LAST_TRIAL, ["UPDATE runs SET finished_at = NULL"]])
def test_a_finished_run_without_its_last_trial_or_its_end_is_found(store, statements):
    run = new_run(store)
    for block in range(3):
        store.append(measurement(run, block=block))
    store.finish(run.run_id)
    store.verified(run.run_id)
    by_hand(store, *statements)
    with pytest.raises(StoreError, match="changed: its end, or what was stored last"):
        store.measurements(run.run_id)


def test_a_run_ends_again_when_something_was_added(store):
    run = new_run(store)
    seen = []
    for added in (
        lambda: store.append(measurement(run)),
        lambda: None,
        lambda: store.choose(run.run_id, CHOSEN),
    ):
        added()
        seen.append(store.verified(run.run_id))
        store.finish(run.run_id)
        seen.append(store.verified(run.run_id))
    assert len({*seen}) == 4
    assert seen[1] == seen[2] == seen[3]


def test_a_run_of_an_older_version_has_no_end_and_is_read(store):
    run = new_run(store)
    with closing(sqlite3.connect(store.path)) as file:
        begun = database._digest("", database._request(file, run.run_id))
    by_hand(
        store,
        f"UPDATE chain SET digest = '{begun}'",
        "UPDATE runs SET finished_at = '2026-11-01T00:00:00+00:00'",
    )
    assert store.verified(run.run_id) == begun
    store.append(measurement(run))
    store.finish(run.run_id)
    assert len(store.measurements(run.run_id)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE designs SET design = json_set(design, '$.blocks', 3) WHERE additions = 1",
        "DELETE FROM designs WHERE additions = 1",
        "DELETE FROM designs",
        "INSERT INTO designs SELECT run_id, 2, noted_at, design FROM designs WHERE additions = 1",
    ],
)
def test_a_design_that_was_changed_by_hand_is_found(store, statement):
    run = new_run(store)
    seen = [store.verified(run.run_id)]
    for additions in range(2):
        store.append(measurement(run, block=additions))
        seen.append(store.verified(run.run_id))
        store.choose(run.run_id, CHOSEN.model_copy(update={"additions": additions}))
        seen.append(store.verified(run.run_id))
    assert len({*seen}) == 5
    assert len(store.measurements(run.run_id)) == 2
    by_hand(store, statement)
    with pytest.raises(StoreError, match="changed: the design that it chose"):
        store.measurements(run.run_id)


def test_each_measurement_changes_the_digest_and_reading_does_not(store):
    run = new_run(store)
    seen = [store.verified(run.run_id)]
    for block in range(2):
        store.append(measurement(run, block=block))
        store.finish(run.run_id)
        seen += [store.verified(run.run_id)] * 2
    assert [len({*seen[: n + 1]}) for n in range(len(seen))] == [1, 2, 2, 3, 3]


def test_a_workspace_that_others_can_change_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(StoreError, match="can be changed by others") as caught:
        Store.open(tmp_path)
    assert f"chmod -R go-w {tmp_path}" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_a_store_whose_files_others_can_change_is_refused(store, ending):
    file = store.path.with_name(f"{store.path.name}{ending}")
    file.touch()
    file.chmod(0o666)
    with pytest.raises(StoreError, match=f"the store {file} can be changed by others"):
        opened(store.path.parent)


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_the_store_is_not_written_through_a_link(tmp_path, ending):
    folder, precious = tmp_path / "runs", tmp_path / "precious"
    folder.mkdir()
    precious.touch()
    (folder / f"dbdyno.sqlite{ending}").symlink_to(precious)
    with pytest.raises(StoreError, match="is a link") as caught:
        Store.open(folder)
    assert caught.value.found == f"a link to {precious}"
    assert precious.read_bytes() == b""


def test_a_workspace_is_closed_to_others_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        with Store.open(tmp_path / "a" / "b"):
            places = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
            modes = {place.name: place.stat().st_mode for place in places}
    finally:
        os.umask(before)
    assert {"a", "b", "dbdyno.sqlite", "dbdyno.sqlite-wal"} <= modes.keys()
    assert [name for name, mode in modes.items() if mode & 0o022] == []


@pytest.mark.parametrize("way", ["exchanged", "removed"])
def test_a_store_exchanged_in_use_is_noticed_and_nothing_is_lost(store, way):
    run, path = new_run(store), store.path
    with closing(sqlite3.connect(path)) as file, closing(sqlite3.connect(f"{path}.old")) as older:
        file.backup(older)
    store.append(measurement(run, block=0))
    path.unlink()
    if way == "exchanged":
        Path(f"{path}.old").rename(path)
    with pytest.raises(StoreError, match=f"was {way} while it was in use") as caught:
        store.append(measurement(run, block=1))
    folder = store.path.parent
    assert caught.value.hint == f"go on there, with --workspace {folder}"
    with opened(folder) as kept:
        assert [m.trial.block for m in kept.measurements(run.run_id)] == [0, 1]
    assert not path.with_name(f"{path.name}-wal").exists()  # the new file would be read with it
    if way == "exchanged":
        with opened(path.parent) as other:
            assert other.measurements(run.run_id) == []


def test_a_store_on_a_read_only_medium_is_read_and_nothing_made(store, monkeypatch):
    run = new_run(store)
    store.append(measurement(run))
    folder = store.path.parent
    monkeypatch.setattr(database.os, "access", lambda path, mode: False)
    with opened(folder) as reading:  # while it is written, its log is read as well
        assert len(reading.measurements(run.run_id)) == 1
    store.close()
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
    with opened(folder) as reading:
        assert len(reading.measurements(run.run_id)) == 1
        with pytest.raises(StoreError, match="readonly") as caught:
            reading.finish(run.run_id)
    assert caught.value.hint == "make the file and its folder writable for you"
    assert {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]} == before
