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
from dbdyno.measurement.measurement import Measurement
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
    assert said.err.startswith("dbdyno: gate fails with a limit of 3 %: 1 slower")
    command = f"dbdyno report latest --workspace {workspace}"
    assert said.err.endswith(f"hint: the whole report: {command}\n")


def test_a_system_within_the_limit_passes(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(workspace, "--fail-if-slower", "8%", "--strict") == 0
    assert "gate passes with a limit of 8 %: 1 held" in capsys.readouterr().out


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
    assert "fails with a limit of 2 %" in capsys.readouterr().out


def test_undecided_passes_and_is_said_unless_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_made(tmp_path, (0.9, 1.0, 1.1), plan=making.plan(blocks=3))
    assert gate(tmp_path, "--fail-if-slower", "3%") == 3  # nothing at all is decided
    assert "no comparison has enough data" in capsys.readouterr().out


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
    assert "门禁未通过，允许慢 3 %：1 项更慢，0 项达标，0 项数据不足，0 项无效" in said
    assert "✗ oltp_read_write，8 线程：mysql:8.0.15 比 mysql:5.7.22 慢 3 % 以上：TPS −5.0 %" in said
    assert gate(workspace, *typed, "--output", "markdown") == 3
    said = capsys.readouterr().out
    assert "| 门禁 | 单元 | 系统 | 相对于 | 变化 [95 %] | 判定 |" in said
    assert "| ✗ 更慢 | oltp_read_write，8 线程 |" in said
    assert gate(workspace, *typed, "--output", "json") == 3
    assert json.loads(capsys.readouterr().out)["text"].startswith("gate fails")


def trials(ratios: tuple[float, ...], void: tuple[int, ...], threads: int = 8) -> list[Measurement]:
    """Pairs of one cell; those of some blocks have a generator at its limit."""
    pairs = making.pairs(ratios, threads=threads)
    busy = {"cpu_share_max": 0.99}
    return [
        making.changed(m, engine=m.engine.model_copy(update=busy)) if m.trial.block in void else m
        for m in pairs
    ]


EVEN, WIDE = (0.95, 0.951, 0.949), (0.9, 1.0, 1.1)
ALL, NONE = (0, 1, 2), ()


@pytest.mark.parametrize(
    ("ratios", "void", "strict", "status"),
    [
        (EVEN, ALL, (), 4),
        (EVEN, ALL, ("--strict",), 4),
        (EVEN, NONE, (), 3),
        (WIDE, NONE, (), 3),
        ((1.0, 1.0, 1.0), NONE, (), 0),
    ],
)
def test_a_gate_tells_void_apart_from_slower_and_undecided(
    tmp_path: Path,
    ratios: tuple[float, ...],
    void: tuple[int, ...],
    strict: tuple[str, ...],
    status: int,
) -> None:
    store_trials(tmp_path, making.plan(blocks=3), trials(ratios, void))
    assert gate(tmp_path, "--fail-if-slower", "3%", *strict) == status


@pytest.mark.parametrize(
    ("cells", "status", "said"),
    [
        ([trials(EVEN, NONE)], 0, ""),
        ([trials(EVEN, ALL)], 4, "every cell is void: nothing can be said of any system"),
        ([trials(WIDE, NONE)], 3, "verdicts without enough data: 1 of 1"),
        ([trials(EVEN, NONE), trials(EVEN, ALL, 1)], 4, "void verdicts: 1 of 2"),
        ([trials(EVEN, NONE), trials(WIDE, NONE, 1)], 3, "verdicts without enough data: 1 of 2"),
    ],
)
def test_a_report_ends_with_a_status_of_its_verdicts_if_asked(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    cells: list[list[Measurement]],
    status: int,
    said: str,
) -> None:
    threads = tuple(cell[0].trial.cell.threads for cell in cells)
    store_trials(
        tmp_path, making.plan(blocks=3, threads=threads), [m for cell in cells for m in cell]
    )
    report = ["report", "latest", "--workspace", str(tmp_path)]
    assert __main__.main(report) == 0
    assert __main__.main([*report, "--exit-code"]) == status
    assert said in capsys.readouterr().err


def test_a_void_verdict_names_the_reason_of_most_trials_and_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_trials(tmp_path, making.plan(blocks=3), trials(EVEN, ALL))
    assert __main__.main(["report", "latest", "--exit-code", "--workspace", str(tmp_path)]) == 4
    *_, found, hint = capsys.readouterr().err.splitlines()
    assert found.startswith("  found: client-bound in 6 of 6 trials, such as: the busiest thread")
    assert hint.startswith("  hint: ")
    assert hint.endswith("; then measure in a new run")


def test_a_run_is_held_against_the_bundle_of_an_earlier_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted = store_made(tmp_path, (1.1, 1.101, 1.099)).run_id
    bundle = tmp_path / "accepted.dbdyno.zip"
    place = ("--workspace", str(tmp_path))
    assert __main__.main(["bundle", accepted, "--out", str(bundle), *place]) == 0
    run_id = store_made(tmp_path, (1.02, 1.021, 1.019)).run_id

    def typed(*arguments: str, run: str = run_id) -> int:
        return __main__.main(["gate", run, "--fail-if-slower", "3%", *arguments, *place])

    assert typed() == 0, "it is still faster than the baseline"
    capsys.readouterr()
    junit = tmp_path / "gate.xml"
    against = ("--against", str(bundle))
    assert typed(*against, "--junit", str(junit)) == 3
    said = capsys.readouterr()
    assert said.out.startswith(f"run {run_id} against run {accepted}: gate fails with a limit of")
    assert "mysql:8.0.15 has become slower by more than 3 %, compared with mysql:5.7.22" in said.out
    assert "TPS −7.3 % [" in said.out
    assert f"dbdyno replay {bundle} --with {run_id} --workspace {tmp_path}\n" in said.err
    assert f'name="against" value="{accepted}"' in junit.read_text()
    assert typed(*against, "--output", "markdown") == 3
    assert f"Compared with run {accepted}." in capsys.readouterr().out
    assert typed(*against, "--lang", "zh") == 3
    assert "与 mysql:5.7.22 相比，mysql:8.0.15 变慢 3 % 以上" in capsys.readouterr().out
    later = store_made(tmp_path, (1.098, 1.101, 1.1)).run_id
    assert typed(*against, "--strict", run=later) == 0
    assert typed(*against, run=accepted) == 2
    assert "cannot be held against itself" in capsys.readouterr().err


def test_what_is_not_the_same_in_an_earlier_run_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted = store_made(tmp_path, EVEN).run_id

    def typed(run: str, *arguments: str) -> int:
        place = ("--against", accepted, "--workspace", str(tmp_path))
        return __main__.main(["gate", run, "--fail-if-slower", "3%", *place, *arguments])

    newer = [
        making.changed(one, server=one.server.model_copy(update={"version": "8.0.16"}))
        if one.trial.system == making.B
        else one
        for one in making.pairs(EVEN)
    ]
    upgraded = store_trials(tmp_path, making.plan(blocks=3), newer).run_id
    assert typed(upgraded, "--strict") == 0
    version = "mysql:8.0.15: version was 8.0.15 in the earlier run and is 8.0.16 in this run\n"
    assert version in capsys.readouterr().out
    assert typed(upgraded, "--output", "json") == 0
    (difference,) = json.loads(capsys.readouterr().out)["differences"]
    assert difference == {"what": "mysql:8.0.15: version", "first": "8.0.15", "second": "8.0.16"}

    plan = making.plan(blocks=3, dataset={"rows": 200})
    smaller = store_made(tmp_path, EVEN, plan=plan).run_id
    junit = tmp_path / "gate.xml"
    rows = "dataset.rows was 100000 in the earlier run and is 200 in this run"
    assert typed(smaller, "--junit", str(junit)) == 4
    said = capsys.readouterr()
    whole = f"mysql:8.0.15 and mysql:5.7.22 cannot be compared with the earlier run: {rows}\n"
    assert f"? oltp_read_write, 8 threads: {whole}" in said.out
    assert f"  found: {whole}" in said.err
    assert rows in junit.read_text()
    assert typed(smaller, "--output", "markdown") == 4
    assert f"the earlier run: {rows}\n" in capsys.readouterr().out
    assert typed(smaller, "--output", "json") == 4
    (passage,) = json.loads(capsys.readouterr().out)["gate"]["passages"]
    assert passage["reasons"][0]["text"] == rows
    assert typed(smaller, "--lang", "zh") == 4
    rows = "dataset.rows 在较早的测试中为 100000，在本次测试中为 200"
    assert f"mysql:5.7.22 无法与较早的测试对比：{rows}\n" in capsys.readouterr().out
