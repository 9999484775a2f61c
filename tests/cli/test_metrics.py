"""Live metrics: the page, a scrape of a trial on a server of known speed, and who is answered."""

from __future__ import annotations

import json
import os
import re
import socket
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from validation import known_servers

from dbdyno import __main__
from dbdyno._engine import Histogram
from dbdyno.cli import flow, machines
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.metrics import (
    FAMILIES,
    LATENCY,
    LiveMetrics,
    MetricsServer,
    Scrape,
    served,
    with_records,
)
from dbdyno.errors import UsageError
from dbdyno.experiment.context import Makers
from dbdyno.experiment.engine.process import EngineProcess
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.experiment.trial import run_trial
from dbdyno.measurement.measurement import Measurement, merge_histograms
from dbdyno.report.formats.stdout import Output
from support import making
from support.fakes import SideBySide
from support.openmetrics import Samples, buckets, read, total
from support.source import ROOT
from support.world import FakeServer, World

CELL = 'run="run-1",system="mysql:8.0.15",workload="oltp_read_write",threads="8",settings="default"'


def port_of(address: str) -> int:
    matched = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/metrics", address)
    assert matched
    return int(matched[1])


def asked(port: int, path: str = "/metrics", host: str = "") -> tuple[int, str, str]:
    """Status, kind and text of an answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


def interval(latencies_ms: Sequence[float], **changed: Any) -> dict[str, Any]:
    """A second of load with its record, as a trial tells it."""
    histogram = Histogram()
    for latency_ms in latencies_ms:
        histogram.record(round(latency_ms * 1e6))
    histograms = {"event": b64encode(histogram.encode()).decode()} if latencies_ms else {}
    return {
        "phase": "measured",
        **{"events": len(latencies_ms), "queries": 20 * len(latencies_ms), "errors": 2},
        **{"reconnects": 1, "in_flight": 8, "backlog": 0, "host": None, "status": {}},
        "record": {
            "latency_ns_sum": round(sum(latencies_ms) * 1e6),
            "histograms": histograms,
        },
        **changed,
    }


# The page.


def test_the_page_has_the_numbers_of_the_run_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.process_time", lambda: 1.5)
    live, made = LiveMetrics(), making.measurement(making.B)
    live.begin(made.trial, 4, 12, 70.0)
    live.interval(made.trial, interval([1.5, 7.0]), 61.0)
    live.interval(made.trial, interval([15.0], in_flight=7), 60.5)
    page = live.page()
    lines = [line for line in page.splitlines() if line[0] != "#" and "_bucket{" not in line]
    assert lines == [
        f'dbdyno_transactions_total{{{CELL},phase="measured"}} 3',
        f'{LATENCY}_sum{{{CELL},phase="measured"}} 0.0235',
        f'{LATENCY}_count{{{CELL},phase="measured"}} 3',
        f'dbdyno_statements_total{{{CELL},phase="measured"}} 60',
        f'dbdyno_errors_total{{{CELL},phase="measured"}} 4',
        f'dbdyno_reconnects_total{{{CELL},phase="measured"}} 2',
        f"dbdyno_transactions_in_flight{{{CELL}}} 7",
        f"dbdyno_transactions_backlog{{{CELL}}} 0",
        f'dbdyno_trial_number{{{CELL},block="1"}} 4',
        'dbdyno_run_trials{run="run-1"} 12',
        'dbdyno_run_remaining_seconds{run="run-1"} 60.5',
        "dbdyno_lab_cpu_seconds_total 1.5",
    ]
    assert page.startswith("# TYPE dbdyno_transactions counter\n# HELP dbdyno_transactions ")
    (labels,) = (of for name, of in read(page) if name == f"{LATENCY}_count")
    counts = buckets(read(page), LATENCY, labels)
    ends = (0.00125, 0.0016, 0.0063, 0.008, 0.0125, 0.016, 100)
    assert [counts[end] for end in ends] == [0, 1, 1, 2, 2, 3, 3]


def test_after_a_trial_its_counts_stay_and_its_readings_go() -> None:
    live, made = LiveMetrics(), making.measurement(making.B)
    live.begin(made.trial, 1, 2, 70.0)
    live.interval(made.trial, interval([1.5], status={"Threads_running": 3.0}), 61.0)
    assert total(read(live.page()), "dbdyno_server_status", name="Threads_running") == 3
    live.end(made.trial, made, 30.0)
    live.end(made.trial, making.changed(made, failure="it died"), 30.0)
    left = read(live.page())
    assert total(left, "dbdyno_trials_total", outcome="completed") == 1
    assert total(left, "dbdyno_trials_total", outcome="failed") == 1
    assert total(left, "dbdyno_transactions_total") == 1
    gone = {"dbdyno_server_status", "dbdyno_trial_number", "dbdyno_transactions_in_flight"}
    assert not gone & {name for name, _ in left}


def test_any_label_is_written_as_prometheus_reads_it() -> None:
    strange = 'a"b\\c\nd{e}=é,'
    made = making.with_trial(making.measurement(), system=strange, rate_per_s=250.0)
    live = LiveMetrics()
    live.interval(made.trial, interval([]), 1.0)
    (labels,) = (dict(of) for name, of in read(live.page()) if name == "dbdyno_errors_total")
    assert (labels["system"], labels["rate"]) == (strange, "250")


# A real trial, on a server of known speed that is this process.


class SeenServer(known_servers.KnownServer):
    """A reference server with a process that can be watched."""

    pid = os.getpid()


class Watched(NamedTuple):
    """A trial, and the page after each of its seconds and at its end."""

    measured: Measurement
    pages: list[str]
    password: str


@pytest.fixture(scope="module")
def watched() -> Watched:
    plan = known_servers.plan_of(seed=1, blocks=1, window_s=2)
    trial, live, pages = trials_of(plan, "run-1")[0], LiveMetrics(), []
    server = SeenServer(trial.system, 0.002)
    with served(live, 0) as address:

        def on_interval(second: Mapping[str, Any]) -> None:
            live.interval(trial, second, 1.0)
            pages.append(asked(port_of(address))[2])

        live.begin(trial, 1, 2, 5.0)
        engine_of = with_records(EngineProcess)
        measured = run_trial(plan, trial, server, on_interval, engine_of=engine_of)
    return Watched(measured, [*pages, live.page()], server.credentials.password)


def test_a_scrape_counts_what_the_record_of_the_trial_counts(watched: Watched) -> None:
    samples = read(watched.pages[-1])
    intervals = watched.measured.intervals
    assert {one.phase for one in intervals} >= {"warmup", "measured"}
    for phase in {str(one.phase) for one in intervals}:
        of_phase = [one for one in intervals if one.phase == phase]
        events = sum(one.events for one in of_phase)
        assert total(samples, "dbdyno_transactions_total", phase=phase) == events
        assert total(samples, f"{LATENCY}_count", phase=phase) == events
        latency_s = sum(one.latency_ns_sum for one in of_phase) / 1e9
        assert total(samples, f"{LATENCY}_sum", phase=phase) == pytest.approx(latency_s)
    (labels,) = (
        of for name, of in samples if name == f"{LATENCY}_count" and ("phase", "measured") in of
    )
    counts = buckets(samples, LATENCY, labels)
    whole = merge_histograms(one.histograms["event"] for one in watched.measured.measured)
    median_s = whole.quantile(0.5) / 1e9
    assert counts[max(end for end in counts if end < median_s * 0.99)] <= whole.count() / 2
    assert counts[min(end for end in counts if end > median_s * 1.01)] >= whole.count() / 2


def test_every_family_is_served_and_no_password(watched: Watched) -> None:
    samples = read(watched.pages[0])
    families = {line.split()[2] for line in watched.pages[0].splitlines() if "# TYPE" in line}
    of_some = ("dbdyno_host_disk_", "dbdyno_host_pressure_")  # not on every machine
    lacking = {family for family in FAMILIES.keys() - families if not family.startswith(of_some)}
    assert lacking == {"dbdyno_trials"}, "no trial has ended yet"
    assert total(samples, "dbdyno_server_resident_memory_bytes") > 1e6
    assert watched.password not in "".join(watched.pages)


DASHBOARD = ROOT / "examples" / "grafana" / "dashboard.json"


def queries(dashboard: Mapping[str, Any]) -> Iterator[str]:
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]


def test_the_dashboard_asks_for_metrics_and_labels_of_a_real_page(watched: Watched) -> None:
    samples = read(watched.pages[0])
    names = {name for name, _ in samples}
    keys = {key for _, labels in samples for key, _ in labels}
    asked_for = list(queries(json.loads(DASHBOARD.read_text())))
    assert len(asked_for) >= 8
    for query in asked_for:
        metrics = set(re.findall(r"\bdbdyno_\w+", query))
        assert metrics, query
        assert metrics <= names, query
        grouped = re.findall(r"\bby ?\(([^)]*)\)", query)
        labels = {key.strip() for group in grouped for key in group.split(",")}
        labels |= set(re.findall(r"(\w+)=~?\"", query))
        assert labels <= keys, query


def test_the_docs_list_every_metric() -> None:
    page = (ROOT / "docs" / "how-to" / "metrics.md").read_text()
    rows = "".join(line for line in page.splitlines() if line.startswith("| `"))
    listed = {name.removesuffix("_total") for name in re.findall(r"`(dbdyno_\w+)`", rows)}
    assert listed == FAMILIES.keys()


# Over HTTP: this machine only, whatever it is asked.


def test_it_listens_on_loopback_and_answers_to_names_of_it_alone() -> None:
    with MetricsServer(LiveMetrics(), 0) as server:
        assert server.server_address[0] == "127.0.0.1"
    with served(LiveMetrics(), 0) as address:
        port = port_of(address)
        status, kind, page = asked(port)
        assert (status, kind.split(";")[0]) == (200, "application/openmetrics-text")
        assert page.endswith("# EOF\n")
        assert asked(port, host=f"localhost:{port}")[0] == 200
        assert asked(port, host="rebound.example")[0] == 421
        status, _, text = asked(port, path="/")
        assert (status, text) == (404, "The metrics are at /metrics\n")
    with pytest.raises(ConnectionRefusedError):
        asked(port)


def test_a_client_that_says_nothing_holds_nobody_up_for_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Scrape, "timeout", 0.2)
    with served(LiveMetrics(), 0) as address:
        with socket.create_connection(("127.0.0.1", port_of(address))):
            assert asked(port_of(address))[0] == 200
        with socket.create_connection(("127.0.0.1", port_of(address))) as rude:
            rude.sendall(b"\xff\xff\r\n")
            rude.recv(100)
    assert capsys.readouterr().err == ""


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_port_that_cannot_be_had_ends_the_command_before_anything_is_done(
    taken: int, tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for port in (str(taken), "70000"):
        typed = ["compare", making.A, making.B, "--prometheus", port]
        assert __main__.main([*typed, "--workspace", str(tmp_path / "runs")]) == 2
        said = capsys.readouterr().err
        assert "metrics cannot be served there" in said
        assert f"port {port}" in said
    assert not (tmp_path / "runs").exists()


def test_blocks_on_other_machines_have_no_metrics_here() -> None:
    elsewhere = machines.Machines(Makers(hosts=SideBySide(2)), "auto")
    with pytest.raises(UsageError, match="on this machine"), machines.exposing(elsewhere, 0):
        pass


def test_a_run_is_scraped_while_it_goes_on(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = SimpleNamespace(port=0, pages=[])

    def scraping(system: str, number: int) -> float:
        if seen.port:
            seen.pages.append(read(asked(seen.port)[2]))
            assert FakeServer.credentials.password not in str(seen.pages[-1])
        return 1000.0

    world.tps = scraping

    def begin(by: machines.Machines) -> str:
        plan, shown = making.plan(blocks=1, window_s=2, warmup_s=1), ReportOptions(Output.PLAIN)
        return flow.begin(plan, tmp_path / "runs", "dbdyno compare a b", shown, by)

    with machines.exposing(machines.HERE, 0) as exposed:
        seen.port = port_of(capsys.readouterr().err.split()[-1])
        run_id = begin(exposed)
        pages: list[Samples] = seen.pages
        assert len(pages) == 2 * 3
        # Each scrape is made before its second has ended.
        done = [total(page, "dbdyno_transactions_total", run=run_id) for page in pages]
        assert done == [0, 1000, 2000, 3000, 4000, 5000]
        assert [total(page, "dbdyno_trial_number") for page in pages] == [1, 1, 1, 2, 2, 2]
        last = read(asked(seen.port)[2])
    assert total(last, "dbdyno_trials_total", outcome="completed") == 2
    for system in (making.A, making.B):
        assert total(last, "dbdyno_transactions_total", system=system, phase="measured") == 2000
        assert total(last, f"{LATENCY}_count", system=system) == 3000
    loads = [request for request in world.requests if request["do"] == "run"]
    assert all(request["tell_records"] for request in loads)
    seen.port = 0
    begin(machines.HERE)
    later = [request for request in world.requests if request["do"] == "run"][len(loads) :]
    assert later
    assert not any("tell_records" in request for request in later)
