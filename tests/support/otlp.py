"""A strict reader of OTLP metrics in JSON, by the fields and types of OpenTelemetry's messages.

Protobuf's JSON has 64-bit integers as strings, and receivers refuse a field that they do not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from support.openmetrics import Samples

Check = Callable[[Any], bool]
SCALARS: Final[Mapping[str, Check]] = {
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "double": lambda value: isinstance(value, float),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "fixed64": lambda value: isinstance(value, str) and value.isdecimal(),
}
TIMES: Final = {"startTimeUnixNano": "fixed64", "timeUnixNano": "fixed64"}
MESSAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "request": {"resourceMetrics": "[resource_metrics]"},
    "resource_metrics": {"resource": "resource", "scopeMetrics": "[scope_metrics]"},
    "resource": {"attributes": "[attribute]"},
    "scope_metrics": {"scope": "scope", "metrics": "[metric]"},
    "scope": {"name": "string", "version": "string"},
    "metric": {
        **dict.fromkeys(("name", "description", "unit"), "string"),
        **{"gauge": "gauge", "sum": "sum", "exponentialHistogram": "exponential_histogram"},
    },
    "gauge": {"dataPoints": "[number]"},
    "sum": {"dataPoints": "[number]", "aggregationTemporality": "int", "isMonotonic": "bool"},
    "number": {"attributes": "[attribute]", **TIMES, "asDouble": "double"},
    "exponential_histogram": {"dataPoints": "[histogram]", "aggregationTemporality": "int"},
    "histogram": {
        **{"attributes": "[attribute]", **TIMES, "count": "fixed64", "sum": "double"},
        **{"scale": "int", "zeroCount": "fixed64", "positive": "buckets"},
    },
    "buckets": {"offset": "int", "bucketCounts": "[fixed64]"},
    "attribute": {"key": "string", "value": "value"},
    "value": {"stringValue": "string"},
}
"""Fields of the messages that dbdyno sends, with their types."""
KINDS: Final = ("gauge", "sum", "exponentialHistogram")


def read(body: bytes | str) -> list[dict[str, Any]]:
    """Metrics of a push; a wrong field or type is an AssertionError."""
    request = json.loads(body)
    check(request, "request")
    (of_resource,) = request["resourceMetrics"]
    (scope,) = of_resource["scopeMetrics"]
    metrics: list[dict[str, Any]] = scope["metrics"]
    for metric in metrics:
        assert sum(kind in metric for kind in KINDS) == 1, metric
    return metrics


def check(value: Any, kind: str) -> None:
    if kind.startswith("["):
        assert isinstance(value, list), (kind, value)
        for part in value:
            check(part, kind[1:-1])
    elif kind in SCALARS:
        assert SCALARS[kind](value), (kind, value)
    else:
        assert value.keys() <= MESSAGES[kind].keys(), (kind, value)
        for key, part in value.items():
            check(part, MESSAGES[kind][key])


def samples_of(metrics: list[dict[str, Any]]) -> Samples:
    """Every number of a push, by name and labels as on the page for Prometheus."""
    samples: Samples = {}
    for metric in metrics:
        for kind, end in (("gauge", ""), ("sum", "_total")):
            for point in metric.get(kind, {}).get("dataPoints", []):
                labels = ((at["key"], at["value"]["stringValue"]) for at in point["attributes"])
                samples[metric["name"] + end, frozenset(labels)] = point["asDouble"]
    return samples
