"""The report's contents as one JSON value, for programs and reviewers.

Numbers are the judgement's own, unrounded; infinity and NaN become null, since JSON has no word for
them. Histograms stay in the store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dbdyno.judge.finding import Reason
from dbdyno.judge.judgement import Judgement
from dbdyno.measurement.measurement import Measurement, kinds_of, without_pilots
from dbdyno.measurement.metric import TABLE, metrics_of_kinds
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import Plan
from dbdyno.report.rows import Attempt, attempts, compare, effective, systems_of
from dbdyno.report.tell import findings as tell
from dbdyno.report.tell.verdicts import reason

FORMAT: Final = 1
"""Raised when a key of any JSON output changes its meaning or goes; a new key does not raise it."""


def document(
    plan: Plan, stored: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> dict[str, Any]:
    """The report as JSON values."""
    measurements = without_pilots(stored)
    systems = systems_of(plan, measurements)
    settings = compare(measurements, systems)
    document: dict[str, Any] = {
        "format": FORMAT,
        "run": run.model_dump(mode="json"),
        "plan": plan.model_dump(mode="json"),
        **of_judgement(judgement),
        "trials": [_trial(one) for one in attempts(stored, judgement)],
        "settings": {system: effective(measurements, system) for system in systems},
        "settings_differing": [row[0] for row in settings.differing],
        "settings_partial": [row[0] for row in settings.partial],
        "settings_ignored": list(settings.ignored),
    }
    return {name: finite(value) for name, value in document.items()}


def of_judgement(judgement: Judgement) -> dict[str, Any]:
    """The whole judgement under its names; findings and reasons with their sentences."""
    judged = judgement.model_dump(mode="json")
    for row, finding in zip(judged["findings"], judgement.findings, strict=True):
        row |= {"text": tell.evidence(finding), "remedy": tell.advice(finding, judgement.known)}
    rows = (*judged["verdicts"], *(row for one in judged["slo"] for row in one["verdicts"]))
    for row, verdict in zip(rows, judgement.all_verdicts, strict=True):
        add_sentences(row["reasons"], verdict.reasons)
    for row, ladder in zip(judged["scalability"], judgement.scalability, strict=True):
        if ladder.why:
            add_sentences([row["why"]], [ladder.why])
    return judged


def add_sentences(rows: Iterable[dict[str, Any]], reasons: Sequence[Reason]) -> None:
    """Add its sentence to each reason's row."""
    for row, kind in zip(rows, reasons, strict=True):
        row["text"] = reason(kind)


def text(value: Mapping[str, Any]) -> str:
    """JSON text; the same value always gives the same text."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def finite(value: object) -> object:
    """The value with null for infinity and NaN, which JSON cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return value


def _trial(attempt: Attempt) -> dict[str, Any]:
    measurement = attempt.measurement
    return {
        "trial": measurement.trial.model_dump(mode="json"),
        "key": measurement.trial.key,
        "arrivals": sum(interval.arrivals for interval in measurement.measured),
        "backlog": measurement.measured[-1].backlog if measurement.measured else 0,
        "state": attempt.state.value,
        "why": attempt.why,
        "started_at": measurement.started_at,
        "warmup_s": measurement.warmup_s,
        "window_s": measurement.window_s,
        "events": measurement.events,
        "queries": measurement.queries,
        "errors": measurement.errors,
        "restarts": sum(interval.restarts for interval in measurement.measured),
        "server_version": measurement.server.version,
        "server_cpu_s": measurement.server.cpu_s or None,
        "procedure": [step.model_dump(mode="json") for step in measurement.procedure],
        "dataset": measurement.dataset,
        "machine": measurement.machine,
        "evidence": measurement.evidence.model_dump(mode="json"),
        "engine": measurement.engine.model_dump(mode="json"),
        "values": {
            metric.name: measurement.value(metric)
            for metric in (*TABLE, *metrics_of_kinds(kinds_of([measurement])))
        },
    }
