"""`dbdyno bundle` and `dbdyno replay` as they are typed, in a world without servers."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from dbdyno import __main__
from dbdyno.cli import flow, machines, transfer
from dbdyno.cli.flow import ReportOptions
from dbdyno.errors import Interrupted
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.report.formats.stdout import Output
from dbdyno.store import database
from dbdyno.store.store import Store
from support import making
from support.stored_run import store_made
from support.world import World

PLAIN = ReportOptions(Output.PLAIN)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: World) -> Path:
    monkeypatch.chdir(tmp_path)
    store_made(tmp_path / "runs", (0.7, 0.701, 0.699))
    return tmp_path / "runs"


def dbdyno(*arguments: object) -> int:
    return __main__.main([str(argument) for argument in arguments])


def test_a_run_is_packed_told_gated_and_run_again(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dbdyno("bundle", "latest", "--workspace", workspace) == 0
    name = capsys.readouterr().out.strip()
    assert (tmp_path / name).is_file()
    there = ("--workspace", tmp_path / "elsewhere")
    assert dbdyno("report", name, *there) == 0
    said = capsys.readouterr().out
    assert "mysql:8.0.15 is slower" in said
    assert "elsewhere/bundles/" in said
    assert dbdyno("gate", name, *there) == 3
    capsys.readouterr()
    assert dbdyno("replay", name, *there) == 0
    said = capsys.readouterr()
    assert "the same verdict in 1 of 1 comparisons" in said.out
    assert "kernel" in said.out
    assert said.err.count("mysql:8.0.15 is slower") == 1
    with Store.open(tmp_path / "elsewhere") as store:
        (run,) = store.runs()
        assert run.command == f"dbdyno replay {name}"


def test_json_is_all_of_stdout(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("replay", "latest", "--workspace", workspace, "--output", "json")
    assert dbdyno(*arguments) == 0
    read = json.loads(capsys.readouterr().out)
    assert [len(read["agreements"]), read["agreements"][0]["same_word"]] == [1, True]


def test_a_replay_speaks_the_language_that_was_asked_for(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dbdyno("replay", "latest", "--workspace", workspace, "--lang", "zh") == 0
    said = capsys.readouterr()
    assert "慢于" in said.err
    assert "is slower than" not in said.err
    with Store.open(workspace) as store:
        page = workspace / store.run_ids()[0] / "report.html"
    assert '<html lang="zh-Hans">' in page.read_text()


def test_a_replay_that_ends_early_says_how_to_compare_later(
    workspace: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.open(workspace) as store:
        (first,) = store.run_ids()
    world.at["run", 2] = KeyboardInterrupt()
    assert dbdyno("replay", "latest", "--workspace", workspace) == 1
    said = capsys.readouterr()
    assert said.out == ""
    (told,) = [one for one in said.err.splitlines() if one.startswith("when the run is complete: ")]
    command = f"dbdyno replay {first} --with latest --workspace {workspace}"
    assert told.removeprefix("when the run is complete: ") == command
    assert dbdyno("resume", "latest", "--workspace", workspace) == 0
    capsys.readouterr()
    assert dbdyno(*command.split()[1:]) == 0
    out = capsys.readouterr().out
    assert "the same verdict in 1 of 1 comparisons" in out
    assert "nothing was repeated" not in out


def test_a_run_of_a_fleet_is_run_again_on_another(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = making.plan(blocks=3).model_copy(update={"fleet": FleetPlan(spread="blocks")})
    store_made(workspace, (0.7, 0.701, 0.699), plan=plan)
    typed = ("replay", "latest", "--workspace", workspace)
    assert dbdyno(*typed) == 2
    said = capsys.readouterr().err
    assert "found: no --fleet" in said
    assert "when the run is complete" not in said
    assert dbdyno(*typed, "--fleet", "auto", "--with", "latest") == 2
    assert "--fleet is for a run that is made again" in capsys.readouterr().err
    assert dbdyno(*typed, "--trust", "--with", "latest") == 2
    assert "--trust is for a run that is made again" in capsys.readouterr().err
    asked = []

    def cluster(plan, address):
        asked.append((plan.fleet.spread, address))
        return nullcontext(machines.HERE._replace(address=address))

    monkeypatch.setattr(transfer, "machines_of", cluster)
    assert dbdyno(*typed, "--fleet", "10.0.0.9:6379") == 0
    assert asked == [("blocks", "10.0.0.9:6379")]
    assert "the same verdict in 1 of 1 comparisons" in capsys.readouterr().out
    with Store.open(workspace) as store:
        assert store.runs()[0].command == "dbdyno replay latest --fleet 10.0.0.9:6379"


def plan_of_risk() -> Plan:
    systems = (
        SystemPlan(label=making.A, reference="mysql:5.7.22"),
        SystemPlan(
            label=making.B,
            reference="mysql:8.0.15",
            settings={"init_file": "/tmp/x", "innodb_buffer_pool_size": "64G"},
            after_start=("SELECT '\x1bx'",),
        ),
    )
    return making.plan(blocks=3).model_copy(update={"systems": systems})


def test_a_strangers_plan_is_run_only_when_trusted(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_made(workspace, (0.7, 0.7, 0.7), plan=plan_of_risk())
    assert dbdyno("bundle", "latest", "--out", "b.zip", "--workspace", workspace) == 0
    there = ("--workspace", tmp_path / "elsewhere")
    assert dbdyno("replay", "b.zip", *there) == 2
    said = capsys.readouterr().err
    assert f"the plan asks for this: systems: {making.B}: init_file=/tmp/x (may re" in said
    assert f"{making.B}: innodb_buffer_pool_size=64G\n" in said
    assert re.search(r"^data +\d+ tables? of [\d ]+ rows, about", said, re.MULTILINE)
    assert re.search(r"^time +about .*\ndisk +about [\d.]+ GB", said, re.MULTILINE)
    assert "\x1b" not in said
    assert "add --trust" in said
    assert not (tmp_path / "elsewhere").exists()
    assert dbdyno("replay", "b.zip", "--with", "latest", "--workspace", workspace) == 0
    assert dbdyno("replay", "b.zip", "--trust", *there) == 0


@pytest.mark.parametrize("command", ["resume", "replay"])
def test_a_strangers_workspace_is_run_only_when_trusted(
    workspace: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store_made(workspace, (0.7, 0.7), plan=plan_of_risk(), planned=6)
    typed = (command, "latest", "--workspace", workspace)
    assert dbdyno(*typed) == 2
    said = capsys.readouterr().err
    assert f"the plan asks for this: systems: {making.B}: init_file=/tmp/x (may re" in said
    assert "add --trust" in said
    assert dbdyno(*typed, "--trust") == 0
    assert dbdyno(*typed) == 0  # as is the user's own


def test_ones_own_plan_needs_no_leave(workspace: Path, world: World) -> None:
    world.at["run", 2] = KeyboardInterrupt()
    with pytest.raises(Interrupted):
        flow.begin(plan_of_risk(), workspace, "dbdyno run plan.yaml", PLAIN, machines.HERE)
    assert dbdyno("resume", "latest", "--workspace", workspace) == 0
    assert dbdyno("replay", "latest", "--workspace", workspace) == 0


def test_a_workspace_on_a_read_only_medium_is_read(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database.os, "access", lambda path, mode: mode != os.W_OK)
    before = {path: path.stat().st_mtime_ns for path in [workspace, *workspace.iterdir()]}
    there = ("latest", "--workspace", workspace)
    for words in (
        ("report", "--out", "page"),
        ("bundle", "--out", "b.zip"),
        ("bundle", "--verify"),
        ("export", "--csv", "tables"),
        ("gate", "--fail-if-slower", "90%"),
        ("runs", "show"),
    ):
        assert dbdyno(*words, *there) == 0
    assert {path: path.stat().st_mtime_ns for path in [workspace, *workspace.iterdir()]} == before
    assert (tmp_path / "page" / "report.html").is_file()
    assert (tmp_path / "b.zip").is_file()


def test_paths_steer_no_terminal(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = workspace.rename(tmp_path / "ru\x1b]0;ns\u202e")
    for words in (("report",), ("bundle", "--out", odd / "b.zip"), ("runs", "show")):
        assert dbdyno(*words, "latest", "--workspace", odd) == 0
    said = "".join(capsys.readouterr())
    assert "ru ]0;ns " in said
    assert not {"\x1b", "\u202e"} & {*said}


def test_a_damaged_bundle_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.zip").write_bytes(b"PK nothing")
    for command in ("report", "gate", "replay"):
        assert dbdyno(command, tmp_path / "b.zip", "--workspace", tmp_path) == 1
        assert "b.zip is no evidence bundle" in capsys.readouterr().err


def test_a_run_and_its_bundle_are_verified(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dbdyno("bundle", "latest", "--verify", "--workspace", workspace) == 0
    said = capsys.readouterr().out
    assert ": 6 measurements as stored; last digest of its chain: " in said
    assert dbdyno("bundle", "latest", "--workspace", workspace) == 0
    name = capsys.readouterr().out.strip()
    assert dbdyno("bundle", name, "--verify", "--workspace", workspace) == 0
    assert (
        f"{name}: 6 measurements as its sums say; SHA-256 of the sums: " in capsys.readouterr().out
    )
    verified = ("bundle", "latest", "--verify", "--workspace", workspace)
    assert dbdyno(*verified, "--out", tmp_path / "b.zip") == 2
    with closing(sqlite3.connect(workspace / "dbdyno.sqlite")) as file:
        file.execute("DROP TRIGGER measurements_stay_as_they_are")
        file.execute("UPDATE measurements SET measurement = replace(measurement, ':1', ':2')")
        file.commit()
    assert dbdyno("bundle", "latest", "--verify", "--workspace", workspace) == 1
    assert "is not as it was stored" in capsys.readouterr().err
