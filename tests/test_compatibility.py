"""Runs stored by commit 4540e97 are read, judged, exported and bundled as that commit did.

tests/golden/commit_4540e97 was made by that commit alone. `measured.sqlite.xz` is the store of two
runs on real servers (mysql:5.7.22 and mysql:8.0.15, three blocks: a closed loop, then a rate that a
pilot found, with `--slo p99=20ms`). `made.sqlite.xz` holds a made run of its tests with all that a
report can show: six load levels, controls, replicas, dips, void and failed trials. RUN.tar.xz is
what the commit wrote of each run with `dbdyno report` (stdout, report.md, report.json; both
languages), `dbdyno export --csv` and, of `dbdyno bundle`, SHA256SUMS; one bundle is there whole.

Stores, bundles and exports (but for columns that came later) are compared byte for byte, and so is
what was estimated. Reports are compared with tests/golden/stored_runs, which holds what they say
today:

    DBDYNO_RENEW_GOLDEN=1 python -m pytest tests/test_compatibility.py

writes them anew, for a change of the report that is meant; `git diff` shows what it changed. Charts
are not drawn here: their bytes depend on the fonts of a machine.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import re
import shutil
import sqlite3
import tarfile
import zipfile
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

import pytest

from dbdyno import __main__
from dbdyno.experiment.order import trials_of
from dbdyno.measurement.measurement import RATES
from dbdyno.plan.controls import as_begun
from dbdyno.store.store import Store
from support import blank_charts

OLD: Final = Path(__file__).parent / "golden" / "commit_4540e97"
RUNS: Final = {
    "20261122-040801-b3a6": "measured",
    "20261122-040849-dca9": "measured",
    "20261122-041336-c4fa": "made",
}
BUNDLED: Final = "20261122-040801-b3a6"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The old commit's workspaces, and a folder for each run with what it wrote of it."""
    folder = tmp_path_factory.mktemp("old")
    for name in set(RUNS.values()):
        (folder / name).mkdir()
        content = lzma.decompress((OLD / f"{name}.sqlite.xz").read_bytes())
        (folder / name / "dbdyno.sqlite").write_bytes(content)
    for run in RUNS:
        with tarfile.open(OLD / f"{run}.tar.xz") as archive:
            for member in filter(tarfile.TarInfo.isfile, archive):  # 3.11.2 has no data filter
                target = folder / run / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.extractfile(member).read())
    return folder


@pytest.fixture(scope="module")
def written(old: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each run with what today's code writes of it, from a copy of its workspace."""
    folder = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        blank_charts.patch(patch)
        for run, name in RUNS.items():
            shutil.copytree(old / name, folder / "ws", dirs_exist_ok=True)
            _write(run, folder / run)
            shutil.rmtree(folder / "ws")
    return folder


def _write(run: str, folder: Path) -> None:
    """What the old commit was asked for when the fixture was made, in the same order."""
    report, ws = Path("ws") / run, ("--workspace", "ws")
    folder.mkdir()
    (folder / "stdout.txt").write_text(_said("report", run, *ws))
    shutil.copy(report / "report.md", folder / "report.md")
    shutil.copy(report / "report.json", folder / "report.json")
    _said("report", run, *ws, "--lang", "zh")
    shutil.copy(report / "report.md", folder / "report.zh.md")
    _said("export", run, *ws, "--csv", str(folder / "export"))
    _said("bundle", run, *ws, "--out", str(folder / "bundle.zip"))
    with zipfile.ZipFile(folder / "bundle.zip") as bundle:
        (folder / "SHA256SUMS").write_bytes(bundle.read("SHA256SUMS"))


def _said(*arguments: str) -> str:
    """Stdout of one command, which must succeed."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        status = __main__.main(list(arguments))
    assert status == 0, arguments
    return out.getvalue()


REPORTS: Final = Path(__file__).parent / "golden" / "stored_runs"
TEXTS: Final = ("stdout.txt", "report.md", "report.zh.md")


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("run", RUNS)
def test_reports_of_stored_runs_are_as_agreed(written: Path, run: str, name: str) -> None:
    golden = REPORTS / f"{run}-{name}"
    if os.environ.get("DBDYNO_RENEW_GOLDEN"):
        golden.write_text((written / run / name).read_text())
    assert (written / run / name).read_text() == golden.read_text()


@pytest.mark.parametrize("run", RUNS)
def test_what_was_estimated_is_estimated_again(old: Path, written: Path, run: str) -> None:
    """Reports may say it otherwise; ratios and intervals of each metric are what they were.

    But for throughput where controls ran: their trials count for the baseline today.
    """
    then, now = (json.loads((place / run / "report.json").read_text()) for place in (old, written))
    surer = [(metric, control["cell"]) for control in now["controls"] for metric in RATES]

    def same(report: dict[str, Any]) -> list[Any]:
        return [one for one in report["estimates"] if (one["metric"], one["cell"]) not in surer]

    assert same(now) == same(then)
    assert len(then["estimates"]) - len(same(then)) == (
        len(RATES) if run == "20261122-041336-c4fa" else 0
    )
    assert now["values"] == then["values"]


LATER: Final = {"trials.csv": (b"machine", b"counted_from_s")}
"""A table's columns that came later: they are the last ones."""
LATER_TABLES: Final = {"event_kinds.csv"}
"""They came later, and are empty in these runs."""
RECOUNTED: Final = re.compile(rb"(?<=,disk_flushes,flushes,)[^,]+")
"""Samples weigh by their length today: in these runs that is 10 %, for few flushes."""


@pytest.mark.parametrize("run", RUNS)
def test_exports_are_the_old_ones(old: Path, written: Path, run: str) -> None:
    tables = sorted(path.name for path in (old / run / "export").iterdir())
    now = {path.name for path in (written / run / "export").iterdir()}
    assert now == {*tables, *LATER_TABLES}
    for table in LATER_TABLES:
        assert (written / run / "export" / table).read_bytes().count(b"\n") == 1
    for table in tables:
        before = (old / run / "export" / table).read_bytes()
        after = (written / run / "export" / table).read_bytes()
        if later := LATER.get(table):
            header, *rows = (row.rsplit(b",", len(later)) for row in after.splitlines())
            assert tuple(header[1:]) == later
            after = b"".join(row[0] + b"\n" for row in (header, *rows))
        before_values, values = (
            [float(n) for n in RECOUNTED.findall(rows)] for rows in (before, after)
        )
        assert values == pytest.approx(before_values, rel=0.12)
        assert RECOUNTED.sub(b"", after) == RECOUNTED.sub(b"", before), table


@pytest.mark.parametrize("run", RUNS)
def test_bundles_have_the_old_members(old: Path, written: Path, run: str) -> None:
    """The sums name every other member with its SHA-256."""
    sums = (old / run / "SHA256SUMS").read_text()
    assert (written / run / "SHA256SUMS").read_text() == sums
    with zipfile.ZipFile(written / run / "bundle.zip") as bundle:
        for line in sums.splitlines():
            digest, name = line.split(maxsplit=1)
            assert hashlib.sha256(bundle.read(name)).hexdigest() == digest, name


def test_an_old_bundle_is_read_and_holds_what_a_new_one_does(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = OLD / f"{BUNDLED}.dbdyno.zip"
    assert _members(written / BUNDLED / "bundle.zip") == _members(before)
    monkeypatch.chdir(tmp_path)
    blank_charts.patch(monkeypatch)
    said = _said("report", str(before), "--workspace", "elsewhere")
    told = (written / BUNDLED / "stdout.txt").read_text()
    assert said.partition("\nreport: ")[0] == told.partition("\nreport: ")[0]


def _members(path: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as bundle:
        return [(name, bundle.read(name)) for name in bundle.namelist()]


@pytest.mark.parametrize("workspace", sorted(set(RUNS.values())))
def test_a_store_written_today_is_the_old_one_row_by_row(
    old: Path, tmp_path: Path, workspace: str
) -> None:
    """So the old commit reads what is stored today."""
    with Store.open(old / workspace) as before, Store.open(tmp_path) as now:
        begun = _rows(old / workspace, "runs")
        with closing(sqlite3.connect(now.path)) as plain, plain:
            marks = ", ".join("?" * len(begun[0]))
            plain.executemany(f"INSERT INTO runs VALUES ({marks})", begun)
        for run in reversed(before.runs()):
            for measurement in before.measurements(run.run_id):
                now.append(measurement)
        now.note_controls(begun[0][0], before.controls())
    for table in ("sqlite_master", "measurements", "histograms", "controls"):
        # These tables are new, and come last in a store that had none.
        rows, known = (
            [row for row in _rows(place, table) if not {"designs", "chain"} & {*row}]
            for place in (tmp_path, old / workspace)
        )
        assert rows == known, table


def test_a_run_is_begun_as_it_was(old: Path, tmp_path: Path) -> None:
    """The same plan has the same text, hash, trials, order and seeds."""
    columns = "run_id, plan, plan_hash, command, dbdyno_version, environment, trials_planned"
    for workspace in sorted(set(RUNS.values())):
        for row in _rows(old / workspace, "runs", columns):
            run_id, plan, _, command, _, environment, planned = row
            with Store.open(tmp_path / run_id) as store:
                store.create_run(as_begun(plan), command, json.loads(environment), planned)
            ((_, *now),) = _rows(tmp_path / run_id, "runs", columns)
            assert now == list(row[1:])
    with Store.open(old / "measured") as store:
        for run in store.runs():
            stored = [m.trial for m in store.measurements(run.run_id) if m.trial.block >= 0]
            assert trials_of(run.plan, run.run_id) == stored


def _rows(workspace: Path, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    where = "type, name, tbl_name, sql" if table == "sqlite_master" else columns
    with closing(sqlite3.connect(workspace / "dbdyno.sqlite")) as connection:
        return connection.execute(f"SELECT {where} FROM {table}").fetchall()
