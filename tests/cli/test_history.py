from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno import __main__
from support import making
from support.stored_run import store_made


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for ratio in (0.95, 0.90, 0.80):
        store_made(folder, (ratio, ratio + 0.001, ratio - 0.001))
    store_made(folder, (), plan=making.plan(systems=(making.A,)), planned=3)
    return folder


def history(workspace: Path, *arguments: str) -> int:
    return __main__.main(["history", *arguments, "--workspace", str(workspace)])


def test_the_newest_comes_first(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history(workspace, making.B, "--output", "json") == 0
    ratios = [
        entry["verdict"]["estimate"]["ratio"]
        for entry in json.loads(capsys.readouterr().out)["verdicts"]
    ]
    assert ratios == pytest.approx([0.8, 0.9, 0.95], rel=1e-3)


def test_all_labels_and_the_newest_only(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert history(workspace, "--last", "2") == 0
    said = capsys.readouterr()
    assert said.out.count(" worse ") == 2
    assert "differ: " in said.out
    assert said.err == "2 of 3 runs; for more: --last 3\n"
    assert history(workspace, "--output", "markdown") == 0
    assert capsys.readouterr().out.count("| worse |") == 3


def test_a_label_that_was_never_compared_is_told(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert history(workspace, making.A) == 2
    said = capsys.readouterr().err
    assert "no run here compares mysql:5.7.22 with a baseline" in said
    assert "wanted: mysql:8.0.15" in said
    assert history(tmp_path) == 1


def test_a_history_can_be_chinese(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history(workspace, making.B, "--lang", "zh") == 0
    caption, heads, *rows = capsys.readouterr().out.splitlines()
    assert caption == "mysql:8.0.15 相对 mysql:5.7.22：oltp_read_write，8 线程"
    assert heads.split() == [
        *("时间", "测试", "版本", "判定", "变化", "[95", "%]", "区组", "与上次测试相比")
    ]
    assert [row.count("更差") for row in rows] == [1, 1, 1]
    assert "不同：" in rows[0]
