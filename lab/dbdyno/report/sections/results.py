"""Verdicts and findings in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, capital, clauses, count, name, say
from dbdyno.report.parts import Entries, Entry, Items, Paragraph, Part, Section
from dbdyno.report.sections.conclusion import accounted, meaning
from dbdyno.report.tell import findings as tell
from dbdyno.report.tell.findings import check_name
from dbdyno.report.tell.measured import cell_title
from dbdyno.report.tell.terms import term
from dbdyno.report.tell.verdicts import reason, sentence, shared_reasons

EVIDENCE_MAX: Final = {Level.VOID: 6, Level.DOUBTFUL: 6, Level.NOTE: 2}
"""Lines of evidence shown of one kind of finding; report.json has them all."""
WEIGHT: Final = (Level.VOID, Level.DOUBTFUL, Level.NOTE)


def verdicts(judgement: Judgement) -> Section:
    """Every verdict as a sentence with its meaning and weaknesses; weaknesses of all once."""
    shared = shared_reasons(judgement.verdicts)
    entries = tuple(
        Entry(
            mark=term(verdict.word),
            heading=cell_title(verdict.cell),
            text=say("{sentence}.", sentence=sentence(verdict)),
            lines=(
                meaning(verdict),
                *accounted(judgement, verdict),
                *(capital(text) for why in verdict.reasons if (text := reason(why)) not in shared),
            ),
            kind=verdict.word,
        )
        for verdict in judgement.verdicts
    )
    of_all = Items(tuple(say("Every verdict: {reason}.", reason=text) for text in shared))
    parts: tuple[Part, ...] = (
        *([of_all] if shared else []),
        *([Entries(entries)] if entries else []),
    )
    return Section(say("Verdicts"), parts)


def findings(judgement: Judgement) -> Section:
    """Every kind of finding once, the gravest first, with evidence and advice."""
    if not judgement.findings:
        nothing = say("No check found a problem.")
        return Section(say("Findings"), (Paragraph(nothing),))
    by_weight = sorted(judgement.findings, key=lambda finding: WEIGHT.index(finding.level))
    lines = tell.together(by_weight, judgement.known)
    entries: dict[tuple[Level, str, str], list[list[Finding]]] = {}
    for first, *others in lines:
        advice = tell.advice(first, judgement.known)
        entries.setdefault((first.level, first.check, advice), []).append([first, *others])
    levels = [line[0].level for line in lines]
    head: Part = Paragraph(
        say(
            "{findings}: {void} void (the trial does not count), {doubtful} doubtful (a warning: "
            "the trial counts, but may be distorted), {note} note (worth knowing).",
            findings=count(len(levels), "finding"),
            **{level.value: levels.count(level) for level in WEIGHT},
        )
    )
    rows, whole = [], []
    for groups in entries.values():
        if _is_note_of_the_run(groups, judgement):
            whole.append(groups)
        else:
            rows.append(_finding_entry(groups, judgement))
    if whole:
        rows.append(_notes_of_the_run(whole, judgement))
    return Section(say("Findings"), (head, Entries(tuple(rows))))


def _is_note_of_the_run(groups: Iterable[Sequence[Finding]], judgement: Judgement) -> bool:
    """True for a note on every trial, or on no trial in particular."""
    every = [finding for group in groups for finding in group]
    place = tell.place_of_all(every, judgement.arms)
    return every[0].level is Level.NOTE and place in ("", say("in every trial"))


def _notes_of_the_run(notes: Iterable[Sequence[Sequence[Finding]]], judgement: Judgement) -> Entry:
    """A line for each check, with its first evidence."""
    lines = tuple(
        say(
            "{check}: {evidence}{more}. Advice: {advice}.",
            check=check_name(first.check),
            evidence=tell.evidence(first),
            more=say(" (and {count} more)", count=len(others)) if others else name(""),
            advice=tell.advice(first, judgement.known),
        )
        for (first, *_), *others in notes
    )
    text = say("These notes concern every trial or the whole run.")
    return Entry(term(Level.NOTE), say("of the whole run"), text, lines)


def _finding_entry(groups: Sequence[Sequence[Finding]], judgement: Judgement) -> Entry:
    """Findings of a check with the same advice: a line for each group with the same evidence."""
    every = [finding for group in groups for finding in group]
    first = every[0]
    heading = check_name(first.check)
    place = tell.place_of_all(every, judgement.arms)
    if len(groups) > 1:
        times = say("{check} ({times}×)", check=heading, times=len(groups))
        heading = clauses([heading, place]) if place else times
    lines = [_evidence(group, judgement) for group in groups]
    most = EVIDENCE_MAX[first.level]
    if len(lines) > most + 1:
        more = say("and {count} more, all in {file}", count=len(lines) - most, file="report.json")
        lines = [*lines[:most], more]
    return Entry(
        mark=term(first.level),
        heading=heading,
        text=say("Advice: {advice}.", advice=tell.advice(first, judgement.known)),
        lines=tuple(lines),
    )


def _evidence(group: Sequence[Finding], judgement: Judgement) -> Text:
    place, evidence = tell.place_of_all(group, judgement.arms), tell.evidence(group[0])
    return say("{place}: {evidence}", place=place, evidence=evidence) if place else name(evidence)
