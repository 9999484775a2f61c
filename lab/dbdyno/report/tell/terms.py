"""Words of verdicts, findings, gates and claims, and sentences that depend on a fact of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dbdyno.language.words import Said, name, say
from dbdyno.plan.known import Fact, Known

TERMS: Final = {
    "better": say("faster"),
    "worse": say("slower"),
    "equivalent": say("same"),
    "undecided": say("not enough data"),
} | {
    str(term): term
    for term in (
        # levels of findings
        say("note"),
        say("doubtful"),
        say("void"),
        # verdicts
        say("no verdict"),
        # a gate
        say("slower"),
        say("held"),
        # two runs
        say("agree"),
        say("differ"),
        say("not shown to differ"),
        say("not in both"),
        # claims of a publication
        say("supported"),
        say("contradicted"),
        say("open"),
        # proofs of durability
        say("durable"),
        say("unflushed"),
        say("unproven"),
        say("lost"),
    )
}


def term(word: StrEnum) -> Said:
    """A stored word as people read it."""
    return TERMS[word.value]


STEPS: Final = {
    str(step): step
    for step in (
        say("restore"),
        say("drop caches"),
        say("start"),
        say("connect"),
        say("SQL after the start"),
        say("purge binary logs"),
        say("settle"),
        say("replicas catch up"),
        say("sample stacks"),
    )
}


def step_name(stored: str) -> Said:
    """Name of a step before or in a trial; the stored text if it is unknown."""
    return STEPS.get(stored, name(stored))


@dataclass(frozen=True)
class Sentence:
    """Template of a sentence for runs with a certain fact only."""

    template: str
    needs: Fact

    def of(self, known: Known, **values: object) -> list[Said]:
        """The sentence; empty where the fact is missing."""
        return [say(self.template, **values)] if known.has(self.needs) else []


def fitting(ways: Sequence[Sentence], known: Known, **values: object) -> Said:
    """The sentence for this kind of run; the first if the kind is unknown."""
    way = next((way for way in ways if known.has(way.needs)), ways[0])
    return say(way.template, **values)
