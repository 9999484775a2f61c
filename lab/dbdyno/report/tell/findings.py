"""The sentences of findings: one row for each check, from which every output follows.

A check of the judge gives its name, a level and values. Its row here has the rule for the docs, the
template of its evidence and its advice. Reports, stdout, report.json, docs/reference/findings.md
and the catalogues of other languages all take them from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import Said, listed, name, phrase, say

Values = Mapping[str, Any]
Template = str | Mapping[str, str] | Callable[[Values], Said]
"""A template of a finding's values; one for each level, or each `case` among the values; or a
function, for evidence that lists several things."""


@dataclass(frozen=True)
class Telling:
    """A check in words.

    Attributes:
        levels: the levels that it gives, the gravest first.
        rule: when it gives them, as Markdown for the docs.
        evidence, advice: templates of a finding's sentences.
    """

    levels: tuple[Level, ...]
    rule: str
    evidence: Template
    advice: Template


def evidence(finding: Finding) -> Said:
    """The finding's evidence as a sentence."""
    if finding.evidence is not None:
        return finding.evidence
    return _filled(FINDINGS[finding.check].evidence, finding)


def advice(finding: Finding) -> Said:
    """The remedy, as a clause."""
    if finding.advice is not None:
        return finding.advice
    return _filled(FINDINGS[finding.check].advice, finding)


def _filled(template: Template, finding: Finding) -> Said:
    if callable(template):
        return template(finding.values)
    if isinstance(template, Mapping):
        template = template[finding.values.get("case", finding.level)]
    lists = {key: list_of(v) for key, v in finding.values.items() if isinstance(v, (list, tuple))}
    return Said(template, {**finding.values, **lists})


def list_of(items: Iterable[object], sign: str = ", ", most: int | None = None) -> Said:
    """Items one after the other; beyond `most`, a sign that there are more."""
    texts = [item if isinstance(item, Said) else name(str(item)) for item in items]
    more = [name("…")] if most is not None and len(texts) > most else []
    return listed([*texts[:most], *more], sign)


VOID, DOUBTFUL, NOTE = Level.VOID, Level.DOUBTFUL, Level.NOTE


def _errors(values: Values) -> Said:
    codes = (say("{code}: {times}", code=c, times=n) for c, n in sorted(values["codes"].items()))
    return say(
        "{failed} of {statements} statements failed, {share:.3%} (limit {limit:.1%}); by code"
        " {codes}",
        **{**values, "codes": listed(codes)},
    )


FINDINGS: Final[Mapping[str, Telling]] = {
    "errors": Telling(
        (VOID, NOTE),
        "over 0.1 % of the statements failed for good (lock wait timeouts are no failures where"
        " nothing was completed); a note below, where their events were tried again (`retries`),"
        " and for what a script counts as errors itself (`script`)",
        _errors,
        phrase("remove the cause, or compare at a load level where it does not happen"),
    ),
    "little-law": Telling(
        (VOID,),
        "the number of connections differs from throughput × mean latency by over 1 % plus what"
        " events across the window's edges, and those that never ended, explain (closed loop);"
        " where connections may rest between events, only if it is smaller; not of imported trials",
        phrase(
            "{rate_per_s:.1f} events/s × {latency_ms:.3f} ms = {busy:.2f} connections busy, the"
            " load had {connections}: off by {off:+.1%} (tolerance {tolerance:.1%})"
        ),
        phrase(
            "a negative figure means connections stood idle (generator too slow, or reconnecting),"
            " a positive one that events or time were miscounted"
        ),
    ),
    "statements-of-event": Telling(
        (VOID,),
        "statements per event differ from the workload's, or from those of a template's events, by"
        " over 0.1 % plus what edges, retries and errors explain; not of imported trials",
        phrase(
            "{statements} statements in {events} events are {per_event:.3f} an event, the workload"
            " has {per_event_wanted:g}: off by {off:+d} (tolerance {tolerance:.0f})"
        ),
        phrase(
            "compare the workload's options with the plan's; both systems must do the same work"
        ),
    ),
    "commits-at-server": Telling(
        (DOUBTFUL,),
        "the server's count of commits differs by over 0.5 % plus the skew of reading from the"
        " load's between the two readings of the server's counters, however late those were",
        phrase(
            "the server's {counter} rose by {seen:.0f}, the load counted {counted}: off by"
            " {off:+.0f}, {share:+.1%} (tolerance {tolerance:.0f})"
        ),
        phrase(
            "something else used the server, or the load did not reach it; give it a server of its"
            " own"
        ),
    ),
}
"""Rows in the order of docs/reference/findings.md."""
