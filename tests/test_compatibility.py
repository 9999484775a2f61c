"""Runs stored by commit 4540e97 are read, reported, exported and bundled as that commit did.

tests/golden/commit_4540e97 was made by that commit alone. `measured.sqlite.xz` is the store of two
runs on real servers (mysql:5.7.22 and mysql:8.0.15, three blocks: a closed loop, then a rate that a
pilot found, with `--slo p99=20ms`). `made.sqlite.xz` holds a made run of its tests with all that a
report can show: six load levels, controls, replicas, dips, void and failed trials. RUN.tar.xz is
what the commit wrote of each run with `dbdyno report` (stdout, report.md, report.json; both
languages), `dbdyno export --csv` and, of `dbdyno bundle`, SHA256SUMS; one bundle is there whole.

What differs on purpose stands in the tables below, each entry with its reason. Everything else is
compared byte for byte, and an entry that no longer changes anything fails too. Charts are not drawn
here: their bytes depend on the fonts of a machine.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import re
import shutil
import sqlite3
import tarfile
import zipfile
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from dbdyno import __main__
from dbdyno.experiment.order import trials_of
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


class Change(NamedTuple):
    """Text that differs on purpose: what the old commit wrote, and what stands there now."""

    reason: str
    old: str
    new: str


MOVED = "the page moved to a shelf of docs"
NO_FIT = "below five load levels scalability is not spoken of"
NO_RHYTHM = "jitter, ρ1 and rhythm are no longer computed"
NO_SIGN_FLIP = "evenness is counted, not tested: no ratios of jitter, no p"
NO_NOISE = "the noise within windows and the best window are no longer computed"
SINGULAR = "one is told in the singular"

# Regular expressions; applied in this order.
CHANGES: Final = (
    Change(SINGULAR, r"\b1 events were begun again", "1 event had to begin again"),
    Change(SINGULAR, r"\bevents were begun again", "events had to begin again"),
    Change(MOVED, r"docs/costs\.md", "docs/reference/costs.md"),
    Change(NO_FIT, r"## Scalability\n\nNo scalability law is fitted: .*\n\n", ""),
    Change(NO_FIT, r"## 可扩展性\n\n没有拟合可扩展性模型：.*\n\n", ""),
    Change(
        NO_RHYTHM,
        r"- Jitter: .*\n(- Slow seconds: .*)\.\n",
        r"\1; the median of the runs, as is p99 / p50.\n",
    ),
    Change(
        NO_RHYTHM, r"- 抖动：.*\n(- 慢秒：.*)。\n", r"\1；取各次试验的中位数，p99 / p50 亦然。\n"
    ),
    Change(NO_RHYTHM, r"- ρ1: .*\n", ""),
    Change(NO_RHYTHM, r"- ρ1：.*\n", ""),
    Change(
        NO_SIGN_FLIP,
        r"Changes are of ratios .*\n",
        "Counts are the system's against the baseline's, in the blocks that both have."
        " They are no verdicts.\n",
    ),
    Change(
        NO_SIGN_FLIP,
        r"变化取自区组内比值，.*\n",
        "计数为该系统对基线，取双方都有的区组；不是判定。\n",
    ),
    Change(NO_SIGN_FLIP, r"Evenness compared within blocks", "Stalls and dips of two systems"),
    Change(NO_SIGN_FLIP, r"区组内的平稳程度比较", "两个系统的停顿与骤降"),
    Change(NO_SIGN_FLIP, r"(\d) \(p = [\d.]+\)(?= \|)", r"\1"),
    Change(NO_SIGN_FLIP, r"(\d)（p = [\d.]+）(?= \|)", r"\1"),
    Change(NO_NOISE, r"## Outlying runs and noise", "## Outlying runs"),
    Change(NO_NOISE, r"## 离群试验与噪声", "## 离群试验"),
    Change(NO_NOISE, r"The table is for planning; .*\n\n\*\*Noise .*\n\n(\|.*\n)+\n", ""),
    Change(NO_NOISE, r"此表用于规划；.*\n\n\*\*窗口内与重启间的噪声\*\*\n\n(\|.*\n)+\n", ""),
)
# Columns of tables of report.md that are gone.
COLUMNS: Final = {
    "Jitter": NO_RHYTHM,
    "抖动": NO_RHYTHM,
    "ρ1": NO_RHYTHM,
    "Rhythm, s": NO_RHYTHM,
    "周期，s": NO_RHYTHM,
    "Jitter [95 %]": NO_SIGN_FLIP,
    "抖动 [95 %]": NO_SIGN_FLIP,
    "p99 / p50 [95 %]": NO_SIGN_FLIP,
}
# Keys of report.json that are gone: at the top, and of each entry of a list.
KEYS: Final = {
    ("candidates",): "the exploratory list is gone",
    ("within_runs",): NO_NOISE,
    ("stability_ratios",): NO_SIGN_FLIP,
    ("stability", "jitter"): NO_RHYTHM,
    ("stability", "rho1"): NO_RHYTHM,
    ("stability", "period_s"): NO_RHYTHM,
    ("stability_counts", "p"): NO_SIGN_FLIP,
}
# Keys of report.json that are new, each after the one that was last; null in these runs.
NEW_KEYS: Final = {
    "seconds_needed": "steady_after_s",  # of verdicts: when rates that had not settled would have
}
# Entries of its list `scalability` that are gone, by their `refusal` (see NO_FIT).
FEW_LEVELS: Final = "few levels"
FORMAT: Final = (1, 2)  # of report.json, since keys are gone
ON_PURPOSE: Final = {*CHANGES, *COLUMNS, *KEYS, FEW_LEVELS}


def expected(name: str, old: str, used: set[object]) -> str:
    """What has to be written today, by what the old commit wrote; notes which entries it took."""
    if name.endswith(".json"):
        return _document(json.loads(old), used)
    return _without_columns(_changed(old, used), used)


def _changed(text: str, used: set[object]) -> str:
    for change in CHANGES:
        text, count = re.subn(change.old, change.new, text)
        if count:
            used.add(change)
    return text


def _without_columns(text: str, used: set[object]) -> str:
    lines: list[str] = []
    gone: list[int] = []
    table = False
    for line in text.splitlines(keepends=True):
        cells = line.split(" | ")
        if line.startswith("| ") and not table:
            names = [cell.strip(" |\n") for cell in cells]
            gone = [at for at, name in enumerate(names) if name in COLUMNS]
            used.update(names[at] for at in gone)
        table = line.startswith("| ")
        if table and gone:
            end = " |\n"
            kept = [c.removesuffix(end) for at, c in enumerate(cells) if at not in gone]
            line = " | ".join(kept) + end  # noqa: PLW2901 - the line as it is kept
        lines.append(line)
    return "".join(lines)


def _document(value: dict[str, Any], used: set[object]) -> str:
    assert value["format"] == FORMAT[0]
    value["format"] = FORMAT[1]
    for key, *inner in KEYS:
        for entry in value[key] if inner else [value]:
            del entry[inner[0] if inner else key]
            used.add((key, *inner))
    _with_new_keys(value)
    fitted = [entry for entry in value["scalability"] if entry["refusal"] != FEW_LEVELS]
    if fitted != value["scalability"]:
        used.add(FEW_LEVELS)
    value["scalability"] = fitted
    return _changed(json.dumps(value, indent=1, ensure_ascii=False) + "\n", used)


def _with_new_keys(value: Any) -> None:
    inner = list(value.values() if isinstance(value, dict) else value)
    if isinstance(value, dict):
        value.update({new: None for last, new in NEW_KEYS.items() if last in value})
    for one in inner:
        if isinstance(one, dict | list):
            _with_new_keys(one)


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
    (folder / "stdout.zh.txt").write_text(_said("report", run, *ws, "--lang", "zh"))
    shutil.copy(report / "report.md", folder / "report.zh.md")
    (folder / "stdout.md").write_text(_said("report", run, *ws, "--output", "markdown"))
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


TEXTS: Final = (
    "stdout.txt",
    "stdout.zh.txt",
    "stdout.md",
    "report.md",
    "report.zh.md",
    "report.json",
)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("run", RUNS)
def test_reports_are_the_old_ones_but_for_what_is_listed(
    old: Path, written: Path, run: str, name: str
) -> None:
    before = (old / run / name).read_text()
    assert (written / run / name).read_text() == expected(name, before, set())


def test_every_listed_difference_is_one(old: Path) -> None:
    used: set[object] = set()
    for run in RUNS:
        for name in TEXTS:
            expected(name, (old / run / name).read_text(), used)
    assert ON_PURPOSE - used == set()


@pytest.mark.parametrize("run", RUNS)
def test_exports_are_the_old_ones(old: Path, written: Path, run: str) -> None:
    tables = sorted(path.name for path in (old / run / "export").iterdir())
    assert sorted(path.name for path in (written / run / "export").iterdir()) == tables
    for table in tables:
        before = (old / run / "export" / table).read_bytes()
        assert (written / run / "export" / table).read_bytes() == before, table


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
        assert _rows(tmp_path, table) == _rows(old / workspace, table), table


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
