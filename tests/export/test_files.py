"""Tables are written whole, read back by polars, and say what the run saw."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import polars
import pytest

from dbdyno.errors import StoreError
from dbdyno.export import files, frames
from dbdyno.export.files import Format
from dbdyno.export.tables import TABLES
from dbdyno.judge.judgement import Judgement
from dbdyno.report.rows import Attempt, attempts
from support import making
from support.made_run import Run, whole
from support.source import ROOT

NOT_IN_THIS_RUN = {"event_kinds", "procedure", "replication", "thread_groups"}


@pytest.fixture(scope="module")
def made() -> Run:
    return whole()


@pytest.fixture(scope="module")
def listed(made: Run) -> tuple[Attempt, ...]:
    return attempts(made.measurements, made.judgement)


@pytest.fixture(scope="module")
def folder(
    made: Run, listed: tuple[Attempt, ...], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("export") / "tables"
    for kind in Format:
        files.write(folder, listed, made.judgement, kind)
    return folder


def table(folder: Path, name: str) -> polars.DataFrame:
    return polars.read_parquet(folder / f"{name}.parquet")


def test_every_table_is_there_with_every_column_and_type(folder: Path) -> None:
    assert len(list(folder.iterdir())) == 2 * len(TABLES)
    for definition in TABLES:
        frame = table(folder, definition.name)
        columns = (*definition.keys, *definition.columns)
        assert dict(frame.schema) == {c.name: frames.TYPES[c.kind] for c in columns}
        assert frame.height > 0 or definition.name in NOT_IN_THIS_RUN


def test_polars_finds_what_the_run_saw(folder: Path, made: Run) -> None:
    trials = table(folder, "trials")
    assert trials.height == len(made.measurements) == 21
    assert trials["state"].value_counts().sort("state").rows() == [
        ("failed", 1),
        ("valid", 19),
        ("void", 1),
    ]
    again = trials.filter(sequence=6).select("attempt", "state").rows()
    assert again == [(0, "failed"), (1, "valid")]
    intervals = table(folder, "intervals").filter(phase="measured")
    events = intervals.group_by("sequence", "attempt").agg(polars.col("events").sum())
    both = trials.join(events, on=["sequence", "attempt"], suffix="_of_seconds")
    assert both.height == 21
    assert both["events"].to_list() == both["events_of_seconds"].to_list()
    costs = table(folder, "costs").filter(cost="rows_read", state="valid")
    assert costs["per_event"].to_list() == pytest.approx([414.0] * 19)


def test_csv_holds_the_same_for_those_who_read_nothing_else(folder: Path) -> None:
    for definition in TABLES:
        frame = table(folder, definition.name)
        path = folder / f"{definition.name}.csv"
        assert path.read_text().splitlines()[0] == ",".join(frame.columns)
        read = polars.read_csv(path, schema=frame.schema)
        assert read.equals(frame.with_columns(polars.col(polars.String).replace("", None))), path


def test_csv_takes_no_polars_and_parquet_names_the_extra(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['polars'] = None;"
        "from pathlib import Path; from dbdyno.export import files;"
        "from dbdyno.errors import UsageError; from dbdyno.judge.judgement import Judgement\n"
        "EMPTY = Judgement(findings=(), values=(), estimates=(), verdicts=())\n"
        "for kind in files.Format:\n"
        "    try: print(len(files.write(Path(sys.argv[1]), (), EMPTY, kind)))\n"
        "    except UsageError as error: print(error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    said, count = done.stdout.splitlines()
    assert said.startswith("pip install 'dbdyno[export]'")
    assert int(count) == len(TABLES) == len(list(tmp_path.iterdir()))


def test_what_the_docs_show_can_be_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    page = (ROOT / "docs" / "reference" / "export.md").read_text()
    for code in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(code, {})
        said = capsys.readouterr().out
        assert making.A in said
        assert "shape: (0, " not in said


def test_a_run_without_trials_has_tables_without_rows(tmp_path: Path) -> None:
    empty = Judgement(findings=(), values=(), estimates=(), verdicts=())
    for path in files.write(tmp_path, (), empty, Format.PARQUET):
        assert polars.read_parquet(path).height == 0
    assert len(list(tmp_path.iterdir())) == len(TABLES)


def test_a_folder_that_cannot_be_written_is_explained_and_left_as_it_was(
    tmp_path: Path, made: Run, listed: tuple[Attempt, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written") as caught:
        files.write(blocked, listed, made.judgement, Format.CSV)
    assert caught.value.hint is not None

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(polars.DataFrame, "write_parquet", full)
    monkeypatch.setattr(files, "write_csv", full)
    for kind in Format:
        with pytest.raises(StoreError, match="No space left"):
            files.write(tmp_path, listed, made.judgement, kind)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
