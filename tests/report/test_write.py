from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.errors import StoreError
from dbdyno.report.charts import drawing
from dbdyno.report.formats import html
from dbdyno.report.write import write
from support import making
from support.made_run import run


def test_an_empty_run_gives_all_files_and_leaves_no_others(tmp_path: Path) -> None:
    empty = run(making.plan(), [], complete=False)
    written = write(tmp_path, empty.plan, [], empty.judgement, empty.facts)
    assert written.charts == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "report.html",
        "report.json",
        "report.md",
    ]
    assert "Nothing has been measured yet" in written.markdown.read_text()
    assert json.loads(written.json.read_text())["trials"] == []


def test_charts_lie_beside_the_page_that_shows_them(tmp_path: Path) -> None:
    alone = run(making.plan(systems=(making.A,)), [making.measurement()])
    for _ in range(2):  # a report is written again over the old one
        written = write(tmp_path, alone.plan, alone.measurements, alone.judgement, alone.facts)
    pictures = [path for path in written.charts if path.suffix == ".png"]
    assert len(pictures) == 6
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"(charts/{path.name})" in written.markdown.read_text()
        assert path.with_suffix(".svg").read_text().startswith("<svg")
    assert len(list((tmp_path / "charts").iterdir())) == 12
    assert written.html.read_text().count('class="chart"') == 6


def test_a_run_whose_trials_are_all_void_is_reported(tmp_path: Path) -> None:
    trials = [making.measurement(system, failure="died") for system in (making.A, making.B)]
    void = run(making.plan(), trials)
    trials = [trial.model_copy(update={"intervals": ()}) for trial in trials]
    written = write(tmp_path, void.plan, trials, void.judgement, void.facts)
    text = written.markdown.read_text()
    assert "No trial is valid" in text
    assert "failed: died" in text


def test_a_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    empty = run(making.plan(), [])
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written") as caught:
        write(blocked, empty.plan, [], empty.judgement, empty.facts)
    assert caught.value.hint is not None


def test_without_vl_convert_only_the_page_in_a_browser_has_charts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "can_draw", lambda: False)
    monkeypatch.setattr(html, "program", lambda: "program")
    alone = run(making.plan(systems=(making.A,)), [making.measurement()])
    written = write(tmp_path, alone.plan, alone.measurements, alone.judgement, alone.facts)
    assert written.charts == ()
    assert not (tmp_path / "charts").exists()
    assert written.html.read_text().count("<figure ") == 6
    text = written.markdown.read_text()
    assert text.count("pip install 'dbdyno[charts]'") == 1
    assert "![" not in text
