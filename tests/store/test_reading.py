"""A row that cannot be read is refused by name, and never the end of the workspace's other runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dbdyno import __version__
from dbdyno.__main__ import main
from dbdyno.cli import flow
from dbdyno.cli.flow import ReportOptions
from dbdyno.errors import StoreError
from dbdyno.experiment import runner
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.plan import Plan
from dbdyno.report.formats.stdout import Output
from dbdyno.serve.pages import application
from dbdyno.store import evidence
from dbdyno.store.reading import StoredRun, UnreadableRun
from dbdyno.store.store import FILE_NAME, Store
from support import blank_charts, making
from support.asked import ask
from support.made_workspace import runs_of
from support.stored_run import store_made, store_trials

BAD = "20990101-000000-0bad"
Change = Callable[[sqlite3.Connection], object]


def endless() -> Plan:
    """The plan of `compare --window inf`, as dbdyno once took it."""
    return making.plan(trial={"window_s": float("inf")})


def change(workspace: Path, made: Change) -> None:
    """Does to the store what no dbdyno does, past its triggers."""
    with sqlite3.connect(workspace / FILE_NAME) as other:
        triggers = other.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            other.execute(f"DROP TRIGGER {name}")
        made(other)
    other.close()


@pytest.fixture(autouse=True)
def _blank_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    blank_charts.patch(monkeypatch)


@pytest.fixture
def good(tmp_path: Path) -> StoredRun:
    return store_made(tmp_path, (0.8, 0.801, 0.799))


@pytest.fixture
def bricked(tmp_path: Path, good: StoredRun) -> Path:
    """A workspace whose newest run has the row that dbdyno stored for `--window inf`."""
    asked = endless().model_dump_json()
    assert '"window_s":null' in asked
    row = f"'{BAD}', created_at, NULL, plan_hash, ?, command, dbdyno_version, environment, 10"
    change(
        tmp_path, lambda other: other.execute(f"INSERT INTO runs SELECT {row} FROM runs", [asked])
    )
    return tmp_path


def test_the_other_runs_of_a_bricked_workspace_are_served(
    bricked: Path,
    good: StoredRun,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(runner, "run", lambda *given, **more: None)
    run, here = good.run_id, ["--workspace", str(bricked)]
    assert main(["report", run, *here]) == 0
    assert main(["resume", run, *here]) == 0
    assert main(["gate", run, "--fail-if-slower", "50%", *here]) == 0
    assert main(["bundle", run, "--out", str(bricked / "b.zip"), *here]) == 0
    assert main(["export", run, "--csv", str(bricked / "csv"), *here]) == 0
    capsys.readouterr()
    assert main(["history", *here]) == 0
    said = capsys.readouterr()
    assert run in said.out
    assert BAD not in said.out
    assert f"run {BAD} is left out, as it cannot be read: trial.window_s: " in said.err


def test_pages_have_a_row_for_a_run_that_cannot_be_read(bricked: Path, good: StoredRun) -> None:
    pages = application(runs_of(bricked))
    home = ask(pages, "/")
    assert (home.status, f'href="/runs/{good.run_id}"' in home.text) == (200, True)
    assert BAD in home.text
    assert "This run cannot be read: trial.window_s: Input should be a valid number" in home.text
    assert f"{BAD}/" not in home.text
    assert ask(pages, f"/runs/{good.run_id}").status == 200
    assert ask(pages, f"/runs/{BAD}").status == 404


def test_a_run_that_cannot_be_read_is_named_with_its_reason(
    bricked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (BAD, "latest"):
        assert main(["report", name, "--workspace", str(bricked)]) == 1
        message = capsys.readouterr().err
        assert f"run {BAD} cannot be read" in message
        assert "trial.window_s" in message
        assert "other runs can be read" in message
    with Store.open(bricked) as store:
        first, second = store.listed()
        assert isinstance(first, UnreadableRun)
        assert store.runs() == [second]


def test_one_run_is_looked_up_without_reading_the_others(
    bricked: Path, good: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    plain = Plan.model_validate_json

    def counted(text: str) -> Plan:
        read.append(text)
        return plain(text)

    monkeypatch.setattr(Plan, "model_validate_json", counted)
    with Store.open(bricked) as store:
        assert store.run(good.run_id) == good
    assert len(read) == 1


def test_what_could_not_be_read_again_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the run's plan is not stored") as caught:
        flow.begin(endless(), tmp_path, "dbdyno compare", ReportOptions(Output.PLAIN))
    assert "trial.window_s" in str(caught.value)
    with Store.open(tmp_path) as store:
        assert store.listed() == []
        run = store.create_run(making.plan(), "dbdyno compare a b", {}, 10)
        made = making.with_trial(making.measurement(window_s=3, warmup_s=1), run_id=run.run_id)
        odd = made.model_copy(update={"window_s": float("nan")})
        with pytest.raises(StoreError, match=f"trial {odd.trial.key} of run .* is not stored"):
            store.append(odd)
        assert store.measurements(run.run_id) == []


def test_a_field_of_a_newer_dbdyno_is_refused_with_both_versions(
    tmp_path: Path, good: StoredRun
) -> None:
    newer = "UPDATE runs SET dbdyno_version = '1.7.0';"
    newer += "UPDATE measurements SET measurement = json_insert(measurement, '$.newer', 1)"
    change(tmp_path, lambda file: file.executescript(newer))
    with Store.open(tmp_path) as store, pytest.raises(StoreError) as caught:
        store.block(good.run_id, 0)
    assert caught.value.found == f"newer: dbdyno {__version__} does not know this field"
    assert "read it with dbdyno 1.7.0, which began it" in str(caught.value)


DAMAGED: list[tuple[str, str, str]] = [
    ("runs", "plan = '{'", "run {run} cannot be read"),
    ("runs", "environment = '{'", "run {run} cannot be read"),
    ("runs", "environment = '[1]'", "run {run} cannot be read"),
    ("measurements", "measurement = '{'", "trial {trial} of run {run} cannot be read"),
    ("histograms", "hdr_v2 = x'00'", "trial {trial} of run {run} cannot be read"),
    ("histograms", "hdr_v2 = 7", "trial {trial} of run {run} cannot be read"),
    (
        "histograms",
        "hdr_v2 = CAST(substr(hdr_v2, 1, 20) || x'ff' || substr(hdr_v2, 22) AS BLOB)",
        "trial {trial} of run {run} cannot be read",
    ),
    ("histograms", "interval = interval + 100", "trial {trial} of run {run} cannot be read"),
]


@pytest.mark.parametrize(("table", "damage", "message"), DAMAGED)
def test_damage_is_reported_with_run_and_trial(
    tmp_path: Path,
    good: StoredRun,
    table: str,
    damage: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = store_made(tmp_path, (0.9, 0.901, 0.899))
    with Store.open(tmp_path) as store:
        trial = store.measurements(good.run_id)[0].trial.key
    which = {
        "runs": f"run_id = '{good.run_id}'",
        "measurements": f"run_id = '{good.run_id}'",
        "histograms": "measurement_id = 1",
    }
    change(tmp_path, lambda file: file.execute(f"UPDATE {table} SET {damage} WHERE {which[table]}"))
    if table != "runs":
        with (  # blocks of a run that goes on are read without its chain of digests
            Store.open(tmp_path) as store,
            pytest.raises(StoreError, match=message.format(run=good.run_id, trial=trial)),
        ):
            store.block(good.run_id, 0)
        message = "run {run} is not as it was stored\n  wanted: what was measured, unchanged\n"
        message += "  found: changed: trial {trial}\n"
    assert main(["report", good.run_id, "--workspace", str(tmp_path)]) == 1
    assert message.format(run=good.run_id, trial=trial) in capsys.readouterr().err
    assert main(["report", other.run_id, "--workspace", str(tmp_path)]) == 0
    assert main(["history", "--workspace", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert f"run {good.run_id} is left out" in said.err
    assert other.run_id in said.out
    with Store.open(tmp_path) as store:
        assert store.measurements(other.run_id)[0].value(BY_NAME["latency_ms_p50"]) is not None
    pages = application(runs_of(tmp_path))
    assert ask(pages, "/").status == 200
    assert ask(pages, f"/runs/{good.run_id}").status == 404


def test_a_damaged_run_that_has_not_ended_is_a_row_of_the_pages(
    tmp_path: Path, good: StoredRun
) -> None:
    trials = making.pairs((0.9, 0.9))
    plan = making.plan(blocks=2, design={"disturbance_max": 0.1})
    begun = store_trials(tmp_path, plan, trials, planned=len(trials))
    change(
        tmp_path,
        lambda file: file.execute(
            "UPDATE measurements SET measurement = '{' WHERE run_id = ?", [begun.run_id]
        ),
    )
    home = ask(application(runs_of(tmp_path)), "/")
    assert (home.status, f'href="/runs/{good.run_id}"' in home.text) == (200, True)
    assert "This run cannot be read: changed: trial " in home.text


COLUMNS = {
    "runs": (
        *("created_at", "finished_at", "plan_hash", "plan", "command", "dbdyno_version"),
        *("environment", "trials_planned"),
    ),
    "measurements": (
        *("run_id", "trial_key", "attempt", "sequence", "block", "system", "cell"),
        *("started_at", "failure", "measurement"),
    ),
    "histograms": ("interval", "name", "hdr_v2"),
}
ODD = ("x'ff'", "CAST(x'ff' AS TEXT)", "-9e999", "'x'")


def test_any_value_in_any_column_is_read_or_refused(tmp_path: Path, good: StoredRun) -> None:
    """What no dbdyno stores: SQLite keeps any value in any column, and a stranger may have."""
    other = store_made(tmp_path, (0.9,))
    whole = (tmp_path / FILE_NAME).read_bytes()
    every = [(table, one, odd) for table in COLUMNS for one in COLUMNS[table] for odd in ODD]
    for table, column, odd in every:
        (tmp_path / FILE_NAME).write_bytes(whole)
        of_good = "measurement_id = 1" if table == "histograms" else f"run_id = '{good.run_id}'"
        statement = f"UPDATE OR IGNORE {table} SET {column} = {odd} WHERE {of_good}"
        change(tmp_path, lambda file, do=statement: file.execute(do))
        with Store.open(tmp_path) as store:
            listed = {run.run_id: run for run in store.listed()}
            assert listed.keys() == {good.run_id, other.run_id}, statement
            assert isinstance(listed[other.run_id], StoredRun), statement
            assert len(store.measurements(other.run_id)) == 2, statement
            with suppress(StoreError):
                evidence.completion(store, good.run_id)
            with suppress(StoreError):
                store.block(good.run_id, 0)
