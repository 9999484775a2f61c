"""The section on the instrument itself: what its controls came to, here and in all runs before.

An expert asks first how often such verdicts are wrong. The answer is counted, not promised: the
baseline compared with itself, and with a slowdown that is known to be there. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.judge.checks.instrument import MISSED, Ledger, Share
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.verdict import Word
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.outcome import ControlOutcome
from dbdyno.plan.controls import SHARE
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import NONE, change, change_with_interval
from dbdyno.report.parts import Column, Items, Paragraph, Part, Section, Table

DECLINED = "controls-declined"
"""The check that says why a run has none."""


def trust(plan: Plan, judgement: Judgement) -> Section:
    """What the controls of this run and of the workspace say; empty where nothing is compared."""
    heading = say("How far this instrument can be trusted")
    if len(plan.systems) == 1:
        return Section(heading, ())
    lines = tuple(_of_workspace(judgement.ledger))
    parts: list[Part] = [*_of_run(judgement), *([Items(lines)] if lines else [])]
    return Section(heading, tuple(parts))


def _of_run(judgement: Judgement) -> Iterator[Part]:
    outcomes = judgement.controls
    if not outcomes:
        told = [f.evidence for f in judgement.findings if f.check == DECLINED]
        nothing = say("This run has no control trials, so it does not show its own error.")
        yield Paragraph(
            say("{nothing} Why: {reason}.", nothing=nothing, reason=told[0]) if told else nothing
        )
        return
    first = outcomes[0]
    yield Paragraph(
        say(
            "In each block {system} ran again in the cell “{cell}”, on a second data directory: "
            "as it is, where no difference may be found, and with its load standing still for "
            "{percent:.0f} % of the time, which must be found. These trials are in no other "
            "number.",
            system=first.system,
            cell=first.cell.title,
            percent=SHARE * 100,
        )
    )
    columns = (
        Column(say("Control")),
        Column(say("Known to be"), numeric=True),
        Column(say("Measured TPS [95 %]"), numeric=True),
        Column(say("Blocks"), numeric=True),
        Column(say("Verdict")),
        Column(say("Interval covers the truth")),
    )
    caption = say("Controls of this run, against {system}", system=first.system)
    yield Table(caption, columns, tuple(_row(outcome) for outcome in outcomes))
    if any(outcome.held is False for outcome in outcomes):
        yield Paragraph(
            say(
                "An interval leaves the truth out. By chance that happens to each in {missed:.0f} "
                "of 100 runs; until more runs say that it was chance, differences of that size in "
                "this run are not proved.",
                missed=MISSED * 100,
            )
        )


def _row(outcome: ControlOutcome) -> tuple[Text, ...]:
    names = {
        "same": say("{system} once more", system=outcome.system),
        "planted": say("{system}, slowed down", system=outcome.system),
    }
    held = {True: say("yes"), False: say("no"), None: NONE}
    return (
        names[outcome.kind],
        change(outcome.truth),
        change_with_interval(outcome),
        name(str(outcome.blocks)),
        Word(outcome.word).said,
        held[outcome.held],
    )


def _of_workspace(ledger: Ledger) -> Iterator[Text]:
    different, found, covered = ledger.different, ledger.found, ledger.covered
    if different.total:
        yield say(
            "Complete runs of this workspace that compared a system with itself: {total}. Called "
            "different, wrongly: {share}; {promised:.0f} % is promised, and up to {allowed} of so "
            "many are explained by chance.",
            total=different.total,
            share=_share(different),
            promised=MISSED * 100,
            allowed=ledger.different_allowed,
        )
    if ledger.is_out_of_calibration:
        yield say("That is more than chance explains: the instrument is out of calibration.")
    if found.total:
        yield say(
            "Planted slowdowns: {total}. Seen as slower: {found}. Intervals that cover what was "
            "planted: {covered}; {promised:.0f} % is promised.",
            total=found.total,
            found=_share(found),
            covered=_share(covered),
            promised=(1 - MISSED) * 100,
        )
    if different.total or found.total:
        yield say(
            "Shares come with their 95 % interval (Clopper-Pearson). Whether a slowdown of "
            "{percent:.0f} % is seen depends on how many blocks a run has and how much starts "
            "differ; missing it is no error, an interval that leaves it out is one.",
            percent=SHARE * 100,
        )


def _share(share: Share) -> Text:
    return say(
        "{count} ({part:.0f} %, {low:.0f} to {high:.0f} %)",
        count=share.count,
        part=share.count / share.total * 100,
        low=share.low * 100,
        high=share.high * 100,
    )
