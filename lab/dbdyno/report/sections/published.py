"""The published experiment followed by a plan: its method, this run's, and their differences.

A repeat on a smaller machine says nothing about the published numbers, and is soon read as if it
did. So all differences stand in one place. The plan records the publication's method as facts; they
are compared with the plan's own keys, so that every difference of a smaller scale is named. The
publication's claims on results are checked against this run (`judge.beside.claims`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dbdyno.judge.beside.claims import VARIATION, ClaimedCell, ClaimWord, JudgedClaim
from dbdyno.language.words import Text, clauses, count, listed, name, phrase, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.known import Fact, known_of
from dbdyno.plan.plan import Plan
from dbdyno.plan.publication import RATE_VARIATION, Claim, PublishedFacts
from dbdyno.plan.settings import SettingValue, each_value, on_or_off
from dbdyno.plan.systems import SystemPlan
from dbdyno.report.numbers import NONE, change, interval, seconds
from dbdyno.report.parts import Items, Paragraph, Part, Section, numeric, table
from dbdyno.report.sections.settings import tested
from dbdyno.report.tell.findings import check_name
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.plan import TOPICS, rows_in_tables
from dbdyno.report.tell.terms import term

HEADING: Final = say("The published experiment")
TOGETHER: Final[Mapping[ClaimWord, str]] = {
    ClaimWord.SUPPORTED: phrase("supported by its {cells} together: {change}, claimed {range}"),
    ClaimWord.CONTRADICTED: phrase(
        "contradicted by its {cells} together: {change}, claimed {range}"
    ),
    ClaimWord.OPEN: phrase("open in its {cells} together: {change}, claimed {range}"),
}
ALONE: Final = phrase("{word}: {change}, claimed {range}")
CELLS_OPEN_MAX: Final = 24
"""A longer table of cells is folded."""
KEYS_NAMED_MAX: Final = 8
"""Most keys named as different from the publication; more are counted."""


class _Fact(NamedTuple):
    """A topic as published and as in the plan; `same` if both mean the same."""

    topic: Text
    theirs: Text
    ours: Text
    same: bool


def published(
    plan: Plan,
    measurements: Sequence[Measurement],
    run: RunFacts,
    claims: Sequence[JudgedClaim] = (),
) -> Section:
    """Published method, this run's, and reasons for differences; empty without a publication."""
    if plan.published is None:
        return Section(HEADING, ())
    here, setup = tested(plan, measurements, run), plan.published.setup
    topics = known_of(plan, measurements).kept(FACTS)
    facts = [fact for topic in topics for fact in topic(plan, plan.published.facts, here)]
    rows = [(fact.topic, fact.theirs, fact.ours) for fact in facts]
    told_topics = {row[0] for row in rows}
    rows += [
        (topic, name(setup.get(key, NONE)), here.get(key, NONE))
        for key in dict.fromkeys([*setup, *here])
        if (topic := TOPICS.get(key, name(key))) not in told_topics
    ]
    differences = (
        *(
            say("{topic}: {ours} instead of {theirs}", **fact._asdict())
            for fact in facts
            if not fact.same
        ),
        *map(name, plan.published.differences),
    )
    parts = (
        Paragraph(
            say(
                "The plan follows: {source}. Do not compare the published numbers with this "
                "run's: machine, data and load differ as the table shows.",
                source=plan.published.source,
            )
        ),
        table(
            say("Published and here"),
            rows,
            (say("What"), lambda row: row[0]),
            (say("Published"), lambda row: row[1]),
            (say("This run"), lambda row: row[2]),
        ),
        *((Items(differences),) if differences else ()),
        *_claims(claims),
    )
    return Section(HEADING, parts)


def _claims(claims: Sequence[JudgedClaim]) -> tuple[Part, ...]:
    """The publication's claims on results, each in all of its cells together, then by cell."""
    if not claims:
        return ()
    explained = say(
        "The publication's claims, checked against this run: a claim is supported if the whole "
        "interval of the mean ratio of its cells lies within the claimed range, contradicted if "
        "the whole interval lies outside, and open otherwise. Each cell is judged in the same way "
        "by its own interval. The intervals of a claim's cells are correct together in 95 of 100 "
        "runs."
    )
    lines = [(one.claim, cell) for one in claims for cell in one.cells]
    cells = table(
        say("Claims, cell by cell"),
        lines,
        (say("Claim"), lambda line: line[0].text),
        (say("Cell"), lambda line: cell_title(line[1].cell)),
        (say("Compared"), lambda line: _sides(line[0])),
        (numeric(say("Claimed")), lambda line: _range(line[0])),
        (
            numeric(say("Change [95 %]")),
            lambda line: interval(line[1].ratio, line[1].low, line[1].high),
        ),
        (numeric(say("Blocks")), lambda line: line[1].blocks),
        (say("In words"), lambda line: _in_words(line[1])),
        folded=len(lines) > CELLS_OPEN_MAX,
    )
    summed = Items(tuple(_claim(one) for one in claims))
    return (Paragraph(explained), summed, *((cells,) if lines else ()))


def _claim(judged: JudgedClaim) -> Text:
    """A claim at its level: its cells together, then the number of cells by word."""
    if not judged.cells:
        return say("“{claim}”: this run has no such cells", claim=judged.claim.text)
    several = len(judged.cells) > 1
    outcome = say(
        TOGETHER[judged.word] if several else ALONE,
        word=term(judged.word),
        cells=count(len(judged.cells), "cell"),
        change=interval(judged.ratio, judged.low, judged.high),
        range=_range(judged.claim),
    )
    if several:
        counts = (
            say("{word} in {count}", word=term(word), count=times)
            for word in ClaimWord
            if (times := judged.count(word))
        )
        outcome = listed([outcome, say("by cell: {counts}", counts=listed(counts))], "; ")
    return say("“{claim}”: {told}", claim=judged.claim.text, told=outcome)


def _sides(claim: Claim) -> Text:
    metric = VARIATION if claim.metric == RATE_VARIATION else BY_NAME[claim.metric]
    than = claim.than or claim.of
    if claim.than_threads:
        return say(
            "{metric} of {system} against {baseline} with {threads}",
            metric=metric_label(metric),
            system=claim.of,
            baseline=than,
            threads=count(claim.than_threads, "thread"),
        )
    return say(
        "{metric} of {system} against {baseline}",
        metric=metric_label(metric),
        system=claim.of,
        baseline=than,
    )


def _range(claim: Claim) -> Text:
    if claim.ratio_max is None:
        return say("{least} or more", least=change(claim.ratio_min))
    if not claim.ratio_min:
        return say("{most} or less", most=change(claim.ratio_max))
    least, most = change(claim.ratio_min), change(claim.ratio_max)
    return say("{least} to {most}", least=least, most=most)


def _in_words(cell: ClaimedCell) -> Text:
    doubts = [say("doubtful: {checks}", checks=listed(map(check_name, cell.doubts)))]
    return clauses([term(cell.word), *(doubts if cell.doubts else [])])


def _facts(plan: Plan, facts: PublishedFacts, here: Mapping[str, Text]) -> Iterator[_Fact]:
    """Compare systems, threads, workloads and window with the publication.

    Args:
        here: topics of this run as observed, which are more exact than the plan.
    """
    if facts.systems:
        references = " ".join(system.reference for system in plan.systems)
        yield _Fact(
            TOPICS["systems"],
            listed(facts.systems),
            here["systems"],
            all(system.rpartition(" ")[2] in references for system in facts.systems),
        )
    if facts.threads:
        load = sorted(plan.load.threads)
        yield _compared(say("threads"), _list(facts.threads), _list(load))
    if facts.workloads:
        names = sorted(workload.name for workload in plan.workloads)
        yield _compared(TOPICS["workloads"], _list(sorted(facts.workloads)), _list(names))
    if facts.window_s:
        yield _compared(TOPICS["window"], seconds(facts.window_s), seconds(plan.trial.window_s))


def _of_rows(plan: Plan, facts: PublishedFacts, here: Mapping[str, Text]) -> Iterator[_Fact]:
    if facts.tables and facts.rows:
        same = (facts.tables, facts.rows) == (plan.dataset.tables, plan.dataset.rows)
        yield _Fact(TOPICS["data"], rows_in_tables(facts.tables, facts.rows), here["data"], same)
    if facts.distribution:
        yield _compared(
            TOPICS["row choice"], name(facts.distribution), name(plan.distribution.name)
        )


def _of_servers(plan: Plan, facts: PublishedFacts, here: Mapping[str, Text]) -> Iterator[_Fact]:
    if facts.buffer_pool:
        pools = plan.settings.buffer_pool or ()
        yield _compared(say("buffer pool"), _list(facts.buffer_pool), _list(pools))
    if facts.durability:
        asked_for = plan.settings.durability or ()
        yield _compared(TOPICS["durability"], _list(facts.durability), _list(asked_for))
    if facts.settings:
        yield _keys(plan, facts)


FACTS: Final[
    Mapping[Callable[[Plan, PublishedFacts, Mapping[str, Text]], Iterator[_Fact]], tuple[Fact, ...]]
] = {_facts: (), _of_rows: (Fact.ROWS,), _of_servers: (Fact.OURS,)}
"""Topics to compare, with the facts of this run they need."""


def _compared(topic: Text, theirs: Text, ours: Text) -> _Fact:
    return _Fact(topic, theirs, ours or NONE, theirs == ours)


def _list(values: Sequence[object]) -> Text:
    return listed(str(value) for value in values)


def _keys(plan: Plan, facts: PublishedFacts) -> _Fact:
    """Number of published keys that every system has at their published values."""
    given = [_given(plan, plan.system(label)) for label in known_of(plan)[Fact.OURS]]
    missing = [
        key
        for key, value in facts.settings.items()
        if any(keys.get(_plain(key)) != _value(value) for keys in given)
    ]
    theirs = count(len(facts.settings), "configuration key")
    as_published = len(facts.settings) - len(missing)
    if not missing:
        return _Fact(say("configuration"), theirs, say("all as published"), same=True)
    named = missing if len(missing) <= KEYS_NAMED_MAX else [*missing[:KEYS_NAMED_MAX], "…"]
    ours = say("{count} as published, all but {keys}", count=as_published, keys=listed(named))
    return _Fact(say("configuration"), theirs, ours, same=False)


def _given(plan: Plan, system: SystemPlan) -> dict[str, str]:
    """A system's own keys, and the keys of axes with a single value."""
    keys = dict(system.settings)
    for values in plan.settings.own.values():
        if len(values) == 1:
            keys |= next(iter(values.values()))
    return {_plain(key): _value(value) for key, value in keys.items()}


def _plain(key: str) -> str:
    return key.lower().replace("-", "_")


def _value(value: SettingValue) -> str:
    return "\n".join(str(on_or_off(one)).lower() for one in each_value(value))
