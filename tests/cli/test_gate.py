"""`dbdyno gate` as a job in CI types it: exit status, what is said, and the two files."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_of

from dbdyno import __main__
from dbdyno.cli.gate import share
from dbdyno.errors import UsageError
from support import making
from support.stored_run import store_made, store_trials


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    store_made(folder, (0.95, 0.951, 0.949))
    return folder


def gate(workspace: Path, *arguments: str) -> int:
    return __main__.main(["gate", "latest", "--workspace", str(workspace), *arguments])


def test_a_slower_system_ends_with_status_3(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(workspace, "--fail-if-slower", "3%") == 3
    said = capsys.readouterr()
    assert "✗ oltp_read_write, 8 threads: mysql:8.0.15 is slower" in said.out
    assert said.err.startswith("dbdyno: gate does not hold at 3 % slower: 1 slower")
    command = f"dbdyno report latest --workspace {workspace}"
    assert said.err.endswith(f"hint: the whole report: {command}\n")


def test_a_system_within_the_limit_passes(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(workspace, "--fail-if-slower", "8%", "--strict") == 0
    assert "gate holds at 8 % slower: 1 held" in capsys.readouterr().out


def test_a_run_with_a_latency_limit_alone_is_held_to_the_rates_within_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {making.A: [1000.0] * 3, making.B: [900.0] * 3}
    store_trials(tmp_path, plan_of(3), trials_of(limits))
    assert gate(tmp_path, "--fail-if-slower", "3%") == 3
    assert "1 slower" in capsys.readouterr().err
    assert gate(tmp_path, "--fail-if-slower", "15%", "--strict") == 0


def test_without_a_limit_the_plans_margin_is_one(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(workspace) == 3
    assert "does not hold at 2 % slower" in capsys.readouterr().out


def test_undecided_passes_and_is_said_unless_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_made(tmp_path, (0.9, 1.0, 1.1), plan=making.plan(blocks=3))
    assert gate(tmp_path, "--fail-if-slower", "3%") == 3  # nothing at all is decided
    assert "nothing is decided" in capsys.readouterr().out


def test_the_junit_file_is_written_whatever_comes_out(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "new" / "gate.xml"
    typed = ("--fail-if-slower", "3%", "--junit", str(junit), "--output", "json")
    assert gate(workspace, *typed) == 3
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert json.loads(capsys.readouterr().out)["holds"] is False
    assert gate(workspace, "--junit", str(tmp_path)) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_shares_are_read_as_people_write_them() -> None:
    assert [share(text) for text in ("3%", "3 %", "0.03", "0", "2.5%")] == [
        0.03,
        0.03,
        0.03,
        0.0,
        0.025,
    ]
    for text in ("3", "-1%", "100%", "three", "", "nan", "3%%", "inf"):
        with pytest.raises(UsageError, match="is no share"):
            share(text)


def test_words_can_be_chinese_and_json_stays_english(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = ("--fail-if-slower", "3%", "--lang", "zh")
    assert gate(workspace, *typed) == 3
    said = capsys.readouterr().out
    assert "门禁未通过，允许慢 3 %：1 项偏慢，0 项达标，0 项尚无定论，0 项无效" in said
    assert "✗ oltp_read_write，8 线程：mysql:8.0.15 比 mysql:5.7.22 慢 3 % 以上：TPS −5.0 %" in said
    assert gate(workspace, *typed, "--output", "markdown") == 3
    said = capsys.readouterr().out
    assert "| 门禁 | 单元 | 系统 | 相对于 | 变化 [95 %] | 判定 |" in said
    assert "| ✗ 偏慢 | oltp_read_write，8 线程 |" in said
    assert gate(workspace, *typed, "--output", "json") == 3
    assert json.loads(capsys.readouterr().out)["text"].startswith("gate does not hold")
