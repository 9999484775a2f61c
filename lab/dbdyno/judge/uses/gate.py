"""A verdict as a gate: a version passes if it is slower by no more than a limit.

Each comparison is held against the limit, with the interval of its verdict. So the cells of a
system are right together, and a long ladder does not close the gate by chance:

    the whole interval is beyond the limit    slower      the gate does not hold
    none of it is                             held
    the limit lies within it                  undecided   holds, unless `strict`
    there is no interval                      void        holds, unless `strict`

Undecided and void comparisons are reported each time, and a gate without any decided comparison
never holds: silence is no proof. "Slower by more than 3 %" is a throughput below 0.97 of the
baseline's, or a latency above 1.03 of it.

Against an earlier run, the interval is of the run's ratio (system to baseline) divided by the
earlier run's (`agreement`): days and machines lie between two runs, so their throughput is not
compared. This quotient shows a change of the system only if the load, the data and the baseline are
the same in both runs; otherwise the comparison is void. The machine and the system may change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from dbdyno.judge.finding import Reason
from dbdyno.judge.judgement import JudgedRun
from dbdyno.judge.uses.agreement import Agreement, agreements
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.measurement.metric import BY_NAME, RATE_AT_LIMIT, Better
from dbdyno.measurement.parts import SECRET, Noun
from dbdyno.plan.plan import comparisons
from dbdyno.plan.settings import OF_THE_LOAD, combinations, on_or_off
from dbdyno.plan.workload import WorkloadPlan


class GateOutcome(StrEnum):
    """Outcome of a comparison at a gate."""

    SLOWER = "slower"
    HELD = "held"
    UNDECIDED = "undecided"
    VOID = "void"


class RatioChange(Noun):
    """A run's ratio divided by an earlier run's, with its interval; None where it is unknown."""

    ratio: float | None
    low: float | None
    high: float | None


class Passage(Noun):
    """A comparison at the gate.

    Attributes:
        verdict: of this run; of the earlier run if this run lacks the comparison.
        holds: true if this comparison lets the gate open.
        change: since the earlier run; None at a gate without an earlier run.
        reasons: reasons against comparing the two runs here; then it is void or undecided.
    """

    verdict: Verdict
    outcome: GateOutcome
    holds: bool
    change: RatioChange | None = None
    reasons: tuple[Reason, ...] = ()


class Gate(Noun):
    """A run at the gate.

    Attributes:
        slower_max: the limit on a system's slowdown, 0.03 = 3 %.
        strict: true if each comparison must be proved to be within the limit.
        earlier: id of the earlier run; empty if the verdicts of the run itself count.
    """

    slower_max: float
    strict: bool
    passages: tuple[Passage, ...]
    earlier: str = ""

    @property
    def decided(self) -> int:
        """Number of comparisons proved within the limit or beyond it."""
        return sum(p.outcome in (GateOutcome.HELD, GateOutcome.SLOWER) for p in self.passages)

    @property
    def holds(self) -> bool:
        """True if every comparison may pass, and at least one is decided."""
        return self.decided > 0 and all(passage.holds for passage in self.passages)

    @property
    def fails_by_void(self) -> bool:
        """True if the gate does not hold, and void comparisons are the only cause."""
        kinds = {p.outcome for p in self.passages if not p.holds} or {
            p.outcome for p in self.passages
        }
        return not self.holds and kinds == {GateOutcome.VOID}

    def count(self, outcome: GateOutcome) -> int:
        """Number of comparisons with this outcome."""
        return sum(passage.outcome is outcome for passage in self.passages)


def gate(verdicts: tuple[Verdict, ...], slower_max: float, *, strict: bool = False) -> Gate:
    """Hold a run's verdicts against a limit.

    Args:
        slower_max: the limit on a system's slowdown against the baseline, 0.03 = 3 %.
        strict: undecided and void comparisons close the gate too.
    """
    passages = (_passage(v, _outcome(v, slower_max), strict) for v in verdicts)
    return Gate(slower_max=slower_max, strict=strict, passages=tuple(passages))


def gate_against(
    earlier: JudgedRun, run: JudgedRun, slower_max: float, *, strict: bool = False
) -> Gate:
    """Hold a run's ratios against those of an earlier run.

    Args:
        slower_max, strict: as for `gate`.
    """
    verdicts = (earlier.judgement.all_verdicts, run.judgement.all_verdicts)
    passages = []
    for pair in agreements(*verdicts, (earlier.plan.design, run.plan.design)):
        if verdict := pair.second or pair.first:
            outcome, reasons = _outcome_since(pair, verdict.metric, (earlier, run), slower_max)
            change = RatioChange(ratio=pair.ratio, low=pair.low, high=pair.high)
            passages.append(_passage(verdict, outcome, strict, change, reasons))
    return Gate(
        slower_max=slower_max,
        strict=strict,
        passages=tuple(passages),
        earlier=earlier.facts.run_id,
    )


def _passage(
    verdict: Verdict,
    outcome: GateOutcome,
    strict: bool,
    change: RatioChange | None = None,
    reasons: tuple[Reason, ...] = (),
) -> Passage:
    closing = set(GateOutcome) - {GateOutcome.HELD} if strict else {GateOutcome.SLOWER}
    holds = outcome not in closing
    return Passage(verdict=verdict, outcome=outcome, holds=holds, change=change, reasons=reasons)


OF_STANDSTILL: Final = {Word.WORSE: GateOutcome.SLOWER, Word.BETTER: GateOutcome.HELD}
"""With a standstill there is no ratio to hold against the limit, only a word."""


def _outcome(verdict: Verdict, slower_max: float) -> GateOutcome:
    if verdict.standstill is not None:
        return OF_STANDSTILL.get(verdict.word, GateOutcome.UNDECIDED)
    return _outcome_of(verdict.low, verdict.high, verdict.metric, slower_max)


def _outcome_since(
    pair: Agreement, metric: str, runs: tuple[JudgedRun, JudgedRun], slower_max: float
) -> tuple[GateOutcome, tuple[Reason, ...]]:
    """The outcome of a comparison since the earlier run, with reasons against comparing the runs.

    A system that stands still now has become slower, unless it stood still in the earlier run too.
    """
    first, second = pair.first, pair.second
    if first is None or second is None:
        values = {"is_new": first is None, "metric": metric}
        return GateOutcome.VOID, (Reason(kind="in-one-run", values=values),)
    if unlike := _unlike(runs, second):
        return GateOutcome.VOID, unlike
    if any(verdict.low is None and verdict.standstill is None for verdict in (first, second)):
        return GateOutcome.VOID, ()
    before, now = first.standstill, second.standstill
    if before is not None and (now is None or before.system or before.both):
        who = second.system if before.system or before.both else second.baseline
        return GateOutcome.UNDECIDED, (Reason(kind="stood-still-before", values={"who": who}),)
    if now is not None:
        is_slower = second.word is Word.WORSE
        return (GateOutcome.SLOWER if is_slower else GateOutcome.UNDECIDED), ()
    return _outcome_of(pair.low, pair.high, metric, slower_max), ()


def _outcome_of(
    low: float | None, high: float | None, metric: str, slower_max: float
) -> GateOutcome:
    if low is None or high is None:
        return GateOutcome.VOID
    if BY_NAME[metric].better is Better.HIGHER:
        slower, held = high < 1 - slower_max, low >= 1 - slower_max
    else:
        slower, held = low > 1 + slower_max, high <= 1 + slower_max
    if slower:
        return GateOutcome.SLOWER
    return GateOutcome.HELD if held else GateOutcome.UNDECIDED


UNSET: Final = "—"
"""Stands for a value that one of two runs lacks."""


def _unlike(runs: tuple[JudgedRun, JudgedRun], verdict: Verdict) -> tuple[Reason, ...]:
    """Conditions of a comparison that are not the same in both runs."""
    first, second = (_conditions(run, verdict) for run in runs)
    pairs = {
        what: (first.get(what) or UNSET, second.get(what) or UNSET)
        for what in dict.fromkeys([*first, *second])
    }
    return tuple(
        Reason(kind="unlike", values={"what": what, "first": before, "second": now})
        for what, (before, now) in pairs.items()
        if before != now
    )


def _conditions(run: JudgedRun, verdict: Verdict) -> dict[str, str]:
    """Data, load and baseline of a comparison, under the keys of plan files."""
    plan, cell = run.plan, verdict.cell
    labels = (verdict.baseline, verdict.system)
    places = (pair.places(cell) for pair in comparisons(plan) if pair.labels == labels)
    below, above = next(places)
    axes = dict(combinations(plan.settings).get(below.cell.setting, {}))
    prepared = axes.pop(OF_THE_LOAD, plan.procedure.prepared_statements)
    parts: list[tuple[str, Mapping[str, object]]] = [
        ("dataset.", plan.dataset.model_dump(exclude={"loads"})),
        ("distribution.", plan.distribution.model_dump()),
        ("network.", plan.network.model_dump()),
        ("procedure.", plan.procedure.model_dump(exclude={"pin"})),
        ("procedure.", {OF_THE_LOAD: prepared}),
        ("settings.", axes),
    ]
    for axis, value in axes.items():
        parts.append((f"{axis} {value}: ", plan.settings.own.get(axis, {}).get(value, {})))
    for workload in plan.workloads:
        if workload.label == cell.workload:
            parts.append(("workload ", {workload.label: _text_of(workload)}))
            parts.append((f"{workload.label}: ", workload.options))
    if below.system != above.system:
        system = plan.system(below.system)
        own: dict[str, object] = {
            **system.settings,
            **system.workload_settings.get(cell.workload, {}),
            **system.topology.model_dump(),
            "after_start": system.after_start,
            "version": run.versions(system.label),
        }
        parts.append((f"{system.label}: ", own))
    if verdict.metric == RATE_AT_LIMIT.name and plan.load.slo is not None:
        parts.append(("load.slo.", plan.load.slo.model_dump()))
    return {
        f"{part}{key}": _written(value)
        for part, keys in parts
        for key, value in keys.items()
        if not SECRET.fullmatch(key)
    }


def _text_of(workload: WorkloadPlan) -> str:
    """The name of the engine's workload, or the digest of a script."""
    if workload.script is None:
        return workload.name
    return f"SHA-256 {hashlib.sha256(workload.script.encode()).hexdigest()[:12]}"


def _written(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:.12g}" if isinstance(value, float) else str(on_or_off(value))
