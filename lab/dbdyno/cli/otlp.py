"""Push the live metrics of a run by OTLP (`--otlp URL`): over HTTP, in JSON, every few seconds.

The names are those of the page for Prometheus (`cli/metrics.py`). Latencies are exponential
histograms, which Prometheus keeps as native histograms.
"""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from dbdyno import __version__
from dbdyno.cli.metrics import (
    COUNTER,
    FAMILIES,
    LATENCY,
    SCALE,
    Labels,
    Latencies,
    LiveMetrics,
)
from dbdyno.cli.progress import note
from dbdyno.errors import UsageError

PATH: Final = "/v1/metrics"
HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
"""OpenTelemetry's own variable, for a token that must not stand on the command line."""
PERIOD_S: Final = 5.0
ANSWER_S: Final = 5.0
"""Longest wait for an answer."""
CUMULATIVE: Final = 2
UNITS: Final = {"_seconds": "s", "_bytes": "By"}
"""Units by the ends of names."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirects: another address would get the token."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Make the redirect an HTTPError."""


@contextmanager
def pushed(metrics: LiveMetrics, url: str) -> Iterator[None]:
    """Push the metrics during the block and once at its end.

    A push that fails is told once, and never ends the run.

    Raises:
        UsageError: `url` is no http address, or may have a password in it.
    """
    address, headers = address_of(url), headers_of(os.environ.get(HEADERS, ""))
    opener = urllib.request.build_opener(NoRedirect)
    began_ns, over, failed = time.time_ns(), threading.Event(), threading.Event()

    def push() -> None:
        body = json.dumps(request_of(metrics, began_ns, time.time_ns())).encode()
        request = urllib.request.Request(address, body, headers)  # noqa: S310 - checked above
        try:
            opener.open(request, timeout=ANSWER_S).close()
        except (OSError, ValueError, HTTPException) as error:
            if not failed.is_set():
                note(f"metrics cannot be pushed to {address}: {error}; the run goes on")
            failed.set()

    def until_over() -> None:
        while not over.wait(PERIOD_S):
            push()
        push()

    thread = threading.Thread(target=until_over, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(2 * ANSWER_S)


def address_of(url: str) -> str:
    """The address to post to: OpenTelemetry's path is added to an address without a path.

    Raises:
        UsageError: `url` is no http address, or may have a password in it.
    """
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    may_have_password = "@" in url or "?" in url
    if not is_address or may_have_password:
        raise UsageError(
            "metrics cannot be pushed there",
            wanted="--otlp with an address such as http://127.0.0.1:4318",
            found="an address with a user, password or query" if may_have_password else url,
            hint=f"a token goes into the variable {HEADERS}, as Authorization=Bearer%20TOKEN",
        )
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{PATH}"


def headers_of(variable: str) -> dict[str, str]:
    """Headers of a push, those of OpenTelemetry's variable included: `key=value,key=value`."""
    headers = {"Content-Type": "application/json", "User-Agent": f"dbdyno/{__version__}"}
    for pair in variable.split(","):
        key, sign, value = pair.strip().partition("=")
        if key and sign:
            headers[unquote(key.strip())] = unquote(value.strip())
    return headers


def request_of(metrics: LiveMetrics, began_ns: int, now_ns: int) -> dict[str, Any]:
    """An ExportMetricsServiceRequest of all metrics, as OTLP has it in JSON."""
    samples, latencies = metrics.numbers()
    times = {"startTimeUnixNano": str(began_ns), "timeUnixNano": str(now_ns)}
    points: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (family, labels), value in samples.items():
        point = {"attributes": _attributes(labels), **times, "asDouble": float(value)}
        points[family].append(point)
    points[LATENCY] = [{**_exponential(histogram), **times} for histogram in latencies]
    service = {"service.name": "dbdyno", "service.version": __version__}
    scope = {
        "scope": {"name": "dbdyno", "version": __version__},
        "metrics": [_metric(family, points[family]) for family in FAMILIES if points[family]],
    }
    resource = {"attributes": _attributes(tuple(service.items()))}
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": [scope]}]}


def _metric(family: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    kind, meaning = FAMILIES[family]
    unit = next((unit for end, unit in UNITS.items() if family.endswith(end)), "")
    about = {"name": family, "description": meaning, "unit": unit}
    total: Mapping[str, Any] = {"aggregationTemporality": CUMULATIVE, "dataPoints": points}
    if family == LATENCY:
        return {**about, "exponentialHistogram": total}
    if kind == COUNTER:
        return {**about, "sum": {**total, "isMonotonic": True}}
    return {**about, "gauge": {"dataPoints": points}}


def _exponential(latencies: Latencies) -> dict[str, Any]:
    counts = latencies.exponential
    first, last = min(counts, default=0), max(counts, default=-1)
    return {
        "attributes": _attributes(latencies.labels),
        "count": str(sum(counts.values())),
        "sum": latencies.sum_s,
        "scale": SCALE,
        "zeroCount": "0",
        "positive": {
            "offset": first,
            "bucketCounts": [str(counts.get(place, 0)) for place in range(first, last + 1)],
        },
    }


def _attributes(labels: Labels) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": text}} for key, text in labels]
