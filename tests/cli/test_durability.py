"""`dbdyno prove-durability` as it is typed: words, exit status, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_app import run

from dbdyno.experiment import durability
from dbdyno.files import TEMPORARY_FOLDER
from dbdyno.measurement.parts import Kill, KilledServer
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.programs import places
from support.making import SETTINGS

ASKED = ["prove-durability", "mysql:8.0.15"]


def made(kept: int = 1000) -> KilledServer:
    one = Kill(
        acknowledged=1000,
        kept=kept,
        unanswered=2,
        load_s=1.5,
        recovery_s=0.8,
        counted=800,
        server_flushes=400.0,
        disk_flushes=420.0,
    )
    return KilledServer(
        system="mysql:8.0.15", version="8.0.15", settings=SETTINGS, connections=4, kills=(one,)
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What the command asks for; it gets what stands under `seen`, and hears what under `told`."""
    heard: dict[str, Any] = {"seen": made(), "told": "killing it"}

    def prove(spec: ServerSpec, folder: object, report: Any, **more: Any) -> KilledServer:
        heard.update(spec=spec, **more)
        report(heard["told"])
        seen = heard["seen"]
        assert isinstance(seen, KilledServer)
        return seen

    monkeypatch.setattr(durability, "prove", prove)
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    return heard


def test_a_durable_server_is_said_to_be_one(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(*ASKED, capsys=capsys)
    assert (status, err) == (0, "killing it\n")
    assert out.splitlines() == [
        "durable: mysql:8.0.15 kept all 1000 acknowledged commits through one kill -9",
        "  its settings promise durable commits (a commit is on disk: before it is acknowledged, "
        "the binary log: is not written, torn pages: are repaired)",
        "  flushes per commit: 0.500 of the log, counted by the server, and 0.525 counted by the "
        "disks; durable commits of 4 connections need at least 0.25",
        "  a kill -9 proves that acknowledged commits had left the server's memory. A power loss "
        "was not tested: whether commits survive it depends on the counted flushes, and on disks "
        "that really store data at a flush",
        "",
        "  kill 1: 1000 commits acknowledged in 1.5 s; found after recovery: 1000 of these, and 2 "
        "not yet acknowledged; server back after 0.8 s",
    ]
    assert (asked["kills"], asked["connections"]) == (3, 4)


def test_data_of_a_lab_that_was_killed_are_removed_by_the_next(
    asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = places.make_cache_folder() / f"{TEMPORARY_FOLDER}12345678" / "server"
    left.mkdir(parents=True)
    assert run(*ASKED, capsys=capsys)[0] == 0
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["durability.lock"]


def test_lost_commits_are_status_3(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    asked["seen"] = made(kept=990)
    typed = [*ASKED, "--set", "innodb_flush_log_at_trx_commit=0", "--kills", "1"]
    status, out, err = run(*typed, capsys=capsys)
    assert status == 3
    assert out.startswith(
        "lost: mysql:8.0.15 lost 10 of 1000 acknowledged commits after one kill -9\n"
    )
    assert "durable commits are not proved" in err
    assert asked["spec"].settings == {"innodb_flush_log_at_trx_commit": "0"}
    assert asked["kills"] == 1


def test_programs_get_json_and_pages_markdown(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(*ASKED, "--output", "json", capsys=capsys)
    printed = json.loads(out)
    assert printed["verdict"]["proof"] == "durable"
    assert printed["seen"]["kills"][0]["acknowledged"] == 1000
    assert "settings" not in printed["seen"]
    _, out, _ = run(*ASKED, "--output", "markdown", capsys=capsys)
    assert out.startswith("**durable: mysql:8.0.15 kept all")


def test_it_is_told_in_chinese(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(*ASKED, "--lang", "zh", capsys=capsys)
    assert status == 0
    assert out.splitlines()[0] == (
        "持久：mysql:8.0.15 经过一次 kill -9，1000 次已应答的提交全部保留"
    )
    assert "第 1 次 kill：1.5 秒内应答 1000 次提交" in out
    _, english, _ = run(*ASKED, "--lang", "zh", "--output", "json", capsys=capsys)
    assert json.loads(english)["verdict"]["sentence"].startswith("mysql:8.0.15 kept all")
