"""Pushes by OTLP, read as strictly as a receiver reads them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.cli.test_metrics import interval

from dbdyno.cli import flow, machines, otlp
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.metrics import FAMILIES, LATENCY, LiveMetrics
from dbdyno.cli.otlp import address_of, headers_of, pushed, request_of
from dbdyno.errors import UsageError
from dbdyno.report.formats.stdout import Output
from support import making
from support import otlp as pushes
from support.openmetrics import read, total
from support.world import FakeServer, World

LATENCIES_MS = (0.012, 1.5, 1.5, 7.0, 2500.0)


class Receiver(HTTPServer):
    """A receiver on loopback that keeps what it was sent."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.status = status
        self.seen: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Request(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(params=[200])
def receiver(request: pytest.FixtureRequest) -> Iterator[Receiver]:
    with Receiver(request.param) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> LiveMetrics:
    monkeypatch.setattr("time.process_time", lambda: 1.5)
    metrics, made = LiveMetrics(), making.measurement(making.B)
    metrics.begin(made.trial, 4, 12, 70.0)
    metrics.interval(made.trial, interval(LATENCIES_MS, status={"Threads_running": 3.0}), 61.0)
    metrics.end(made.trial, made, 30.0)
    metrics.begin(made.trial, 5, 12, 70.0)
    metrics.interval(made.trial, interval([], status={"Threads_running": 4.0}), 29.0)
    return metrics


def test_a_push_has_every_number_of_the_page(receiver: Receiver, live: LiveMetrics) -> None:
    with pushed(live, receiver.url):
        pass
    ((path, headers, body),) = receiver.seen
    assert (path, headers["Content-Type"]) == ("/v1/metrics", "application/json")
    metrics = pushes.read(body)
    page = {of: n for of, n in read(live.page()).items() if not of[0].startswith(LATENCY)}
    assert pushes.samples_of(metrics) == page
    assert {metric["name"] for metric in metrics} <= FAMILIES.keys()
    sums = [metric["sum"] for metric in metrics if "sum" in metric]
    assert {(one["aggregationTemporality"], one["isMonotonic"]) for one in sums} == {(2, True)}


def test_latencies_are_an_exponential_histogram(live: LiveMetrics) -> None:
    metrics = pushes.read(json.dumps(request_of(live, 1, 2)))
    (latency,) = (metric for metric in metrics if metric["name"] == LATENCY)
    assert latency["unit"] == "s"
    (point,) = latency["exponentialHistogram"]["dataPoints"]
    assert (point["startTimeUnixNano"], point["timeUnixNano"]) == ("1", "2")
    assert point["count"] == str(len(LATENCIES_MS))
    assert point["sum"] == pytest.approx(sum(LATENCIES_MS) / 1e3)
    width, buckets = 2 ** (1 / 2 ** point["scale"]), point["positive"]
    ends = {
        width ** (buckets["offset"] + place): int(times)
        for place, times in enumerate(buckets["bucketCounts"])
        if times != "0"
    }
    assert list(ends.values()) == [1, 2, 1, 1]
    for lower, latency_ms in zip(ends, sorted(set(LATENCIES_MS)), strict=True):
        assert lower * 0.999 < latency_ms / 1e3 <= lower * width * 1.001


def test_pushes_go_on_and_a_token_comes_from_the_environment(
    receiver: Receiver, live: LiveMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "PERIOD_S", 0.01)
    monkeypatch.setenv(otlp.HEADERS, "Authorization=Bearer%20s3cret, X-Scope=a")
    with pushed(live, f"{receiver.url}/api/v1/otlp/v1/metrics"):
        while len(receiver.seen) < 3:
            threading.Event().wait(0.01)
    for path, headers, _ in receiver.seen:
        assert path == "/api/v1/otlp/v1/metrics"
        assert (headers["Authorization"], headers["X-Scope"]) == ("Bearer s3cret", "a")


def test_a_run_is_pushed_to_its_end_without_a_password(
    receiver: Receiver, tmp_path: Path, world: World
) -> None:
    world.tps = lambda system, number: 1000.0
    plan, shown = making.plan(blocks=1, window_s=2, warmup_s=1), ReportOptions(Output.PLAIN)
    with machines.exposing(machines.HERE, None, receiver.url) as exposed:
        flow.begin(plan, tmp_path / "runs", "dbdyno compare a b", shown, exposed)
    last = pushes.samples_of(pushes.read(receiver.seen[-1][2]))
    assert total(last, "dbdyno_trials_total", outcome="completed") == 2
    for system in (making.A, making.B):
        assert total(last, "dbdyno_transactions_total", system=system, phase="measured") == 2000
    sent = b"".join(body for _, _, body in receiver.seen)
    assert FakeServer.credentials.password.encode() not in sent


@pytest.mark.parametrize("receiver", [500, 302], indirect=True)
def test_a_receiver_that_refuses_is_told_once_and_the_run_goes_on(
    receiver: Receiver,
    live: LiveMetrics,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(otlp, "PERIOD_S", 0.01)
    with pushed(live, receiver.url):
        while len(receiver.seen) < 3:
            threading.Event().wait(0.01)
    said = capsys.readouterr().err
    assert said.count("metrics cannot be pushed") == 1
    assert f"HTTP Error {receiver.status}" in said, "a redirect is refused, too"


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:4318", "ftp://127.0.0.1", "http://", "http://["),
        *("https://me:pw@host/x", "http://host/x?key=pw"),
    ],
)
def test_what_is_no_address_ends_the_command_before_anything_is_done(url: str) -> None:
    with pytest.raises(UsageError, match="cannot be pushed") as error:
        address_of(url)
    assert "pw" not in str(error.value)
    with pytest.raises(UsageError), machines.exposing(machines.HERE, None, url):
        pass


def test_headers_that_are_none_are_left_out() -> None:
    assert headers_of("").keys() == {"Content-Type", "User-Agent"}
    assert headers_of("x,,=,=y").keys() == {"Content-Type", "User-Agent"}
