"""`--server NAME` of compare and workload try: a server that stays up, and its password."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.test_app import run
from tests.cli.test_servers import STATE, server

from dbdyno.cli import flow
from dbdyno.cli.kept import lend_passwords
from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.plan import Plan
from dbdyno.servers import open, reference
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.kept import kept
from dbdyno.servers.kept.kept import KeptServer
from dbdyno.servers.reference import EndpointReference, credentials, parse
from support.source import ROOT

SECRET = "secret-4711"
DSN = "mysql://dbdyno@127.0.0.1:3307/sbtest"
QUEUE = str(ROOT / "workloads" / "queue.yaml")


@pytest.fixture(autouse=True)
def running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> KeptServer:
    """The only server of every workspace."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "password").write_text(SECRET)
    one = server(tmp_path, "one")
    monkeypatch.setattr(kept, "all_of", lambda workspace: [one])
    monkeypatch.setattr(reference, "_lent", {})
    return one


def password_of(address: str, variable: str) -> str:
    endpoint = parse(address)
    assert isinstance(endpoint, EndpointReference)
    return credentials(endpoint, variable).password


def compared(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan of a comparison with the server."""
    plans: list[Plan] = []
    monkeypatch.setattr(flow, "begin", lambda plan, *about: plans.append(plan))
    status, _, err = run("compare", "mysql:8.0.15", "--server", "one", capsys=capsys)
    assert (status, err) == (0, "")
    return plans[0]


def test_a_kept_server_is_compared_as_an_endpoint_whose_password_no_child_inherits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = compared(capsys, monkeypatch)
    (_, system) = plan.systems
    assert (system.label, system.reference) == ("one", DSN)
    assert password_of(system.reference, system.password_env) == SECRET
    assert SECRET not in plan.model_dump_json()
    assert SECRET not in os.environ.values()


def test_a_run_that_goes_on_finds_the_password_while_the_server_runs(
    running: KeptServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = compared(capsys, monkeypatch)
    variable = plan.systems[1].password_env
    ended = KeptServer(running.name, running.folder, False, STATE)
    for servers in ([], [ended]):
        monkeypatch.setattr(reference, "_lent", {})
        monkeypatch.setattr(kept, "all_of", lambda workspace, servers=servers: servers)
        lend_passwords(Path("runs"), plan)
        with pytest.raises(UsageError, match="the password of dbdyno is not there"):
            password_of(DSN, variable)
    monkeypatch.setattr(kept, "all_of", lambda workspace: [running])
    lend_passwords(Path("runs"), plan)
    assert password_of(DSN, variable) == SECRET


def test_a_template_is_tried_on_a_kept_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    specs: list[ServerSpec] = []

    def instance(spec: ServerSpec, *about: object) -> None:
        specs.append(spec)
        raise ServerError("seen")

    monkeypatch.setattr(open, "instance", instance)
    status, _, err = run("workload", "try", QUEUE, "--server", "one", capsys=capsys)
    assert (status, err.splitlines()[-1]) == (1, "dbdyno: seen")
    (spec,) = specs
    assert (spec.label, spec.reference, spec.has_scripts) == ("one", DSN, True)
    assert password_of(spec.reference, spec.password_env) == SECRET


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["compare", "mysql:8.0.15", "--server", "two"], "no server is called two"),
        (["workload", "try", QUEUE, "--server", "two"], "no server is called two"),
        (["workload", "try", QUEUE], "found: neither"),
        (["workload", "try", QUEUE, "mysql:8.0.15", "--server", "one"], "found: both"),
    ],
)
def test_a_mistake_is_named(
    typed: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(*typed, capsys=capsys)
    assert (status, out) == (2, "")
    assert message in err
