"""`dbdyno audit` as it is typed: pages, a run of one's own, and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno import __main__
from support.source import ROOT
from support.stored_run import store_made

EXAMPLE = str(ROOT / "examples" / "published" / "greatsql-vs-mysql-2022.yaml")


def test_a_publication_gives_a_ledger_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "audit.html"
    assert __main__.main(["audit", EXAMPLE, "--html", str(page)]) == 0
    said = capsys.readouterr().out
    assert "60 cells looked at: contradiction 1, over-claim 5" in said
    assert f"report: {page}" in said
    text = page.read_text()
    assert "Audit of GreatSQL against MySQL over buffer pools" in text
    assert text.index("contradiction") < text.index("over-claim") < text.index("as they were read")
    assert "1699.19" in text


def test_json_has_the_publication_as_it_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["audit", EXAMPLE, "--output", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {one["severity"] for one in document["entries"]} >= {"contradiction", "over-claim"}
    assert document["publication"]["tables"][0]["values"]["tps"][0]["text"] == "969.16"


def test_a_run_of_ones_own_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_made(tmp_path, (0.95, 0.951, 0.949))
    assert __main__.main(["audit", "--self", "latest", "--workspace", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "2 cells looked at" in said
    assert "contradiction" not in said
    assert "unsafe design" not in said


def test_publications_are_audited_one_by_one_and_against_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [tmp_path / "first.md", tmp_path / "second.md"]
    for page, system in zip(pages, ("A", "B"), strict=True):
        head = f"| threads | MySQL TPS | {system} TPS |\n| --- | --- | --- |\n"
        page.write_text(f"{head}| 8 | 512.33 | 600.{len(system)}1 |\n| 16 | 498.01 | 702.13 |\n")
    asked = [*map(str, pages), "--html", str(tmp_path / "audit.html")]
    assert __main__.main(["audit", *asked]) == 0
    said = capsys.readouterr().out
    assert said.index("first.md\n4 cells") < said.index("second.md\n4 cells")
    assert "Between these publications\n8 cells looked at: contradiction 1, note 1" in said
    assert "Audit of first.md, second.md" in (tmp_path / "audit.html").read_text()
    assert __main__.main(["audit", *map(str, pages), "--output", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["title"] for one in document["audited"]] == ["first.md", "second.md"]
    assert len(document["between"]["entries"]) == 2


@pytest.mark.parametrize("arguments", [[], [EXAMPLE, "--self", "latest"]])
def test_one_thing_is_audited(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["audit", *arguments]) == 2
    assert "what is to be audited?" in capsys.readouterr().err


def test_a_run_of_ones_own_takes_no_mapping(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["audit", "--self", "latest", "--mapping", "columns.yaml"]) == 2
    assert "found: also --self, which reads a run" in capsys.readouterr().err


def test_what_was_read_is_saved_and_audited_from_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, saved = tmp_path / "page.md", tmp_path / "saved.yaml"
    page.write_text("| threads | A TPS | B TPS |\n| --- | --- | --- |\n| 8 | 512.33 | 600.21 |\n")
    assert __main__.main(["audit", str(page), "--save", str(saved)]) == 0
    said, written = capsys.readouterr().out, f"\npublication: {saved}\n"
    assert said.endswith(written)
    assert __main__.main(["audit", str(saved)]) == 0
    assert capsys.readouterr().out == said.removesuffix(written)
    assert __main__.main(["audit", str(page), "--save", str(saved)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_contradictions_have_an_exit_status_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["audit", EXAMPLE, "--exit-code"]) == 3
    outcome = capsys.readouterr()
    assert "60 cells looked at" in outcome.out
    assert "the audit fails: contradiction 1, over-claim 5" in outcome.err
    page = tmp_path / "page.csv"
    page.write_text("threads,A TPS\n8,512.33\n")
    assert __main__.main(["audit", str(page), "--exit-code"]) == 0
