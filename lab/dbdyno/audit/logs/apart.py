"""Tell runs of one name apart by their work and set-up; pure.

Results are repeats of a cell only if statements per event and options agree. A name and a number of
threads are no proof: scripts give one name to the logs of several tests.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from dbdyno.errors import UsageError

KINDS: Final = ("reads", "writes", "others")
KINDS_MAX: Final = 1_000
TOLERANCE: Final = 0.03
"""Share by which mixes of random statements may differ; more with few events."""
ALMOST: Final = 1e-9
NONE_AT_ALL: Final = 0.05
"""Statements per event that come from begin and end of a run."""


@dataclass(frozen=True)
class Work:
    """The work of a run, as far as its log tells it.

    Attributes:
        reads, writes, others: statements; all 0 if they are not known.
        failed: events begun again, of which statements are counted too.
        options: options of its command; None without the command.
        conditions: lines of its head on the load; None without a head.
    """

    reads: int = 0
    writes: int = 0
    others: int = 0
    events: int = 0
    failed: int = 0
    options: frozenset[str] | None = None
    conditions: frozenset[str] | None = None

    @property
    def is_counted(self) -> bool:
        """True if the statements of its events are known."""
        return self.events > 0 and self.reads + self.writes + self.others > 0

    @property
    def per_event(self) -> tuple[float, float]:
        """Reads and other statements of an event; an update without effect is no write."""
        return self.reads / self.events, (self.writes + self.others) / self.events

    @property
    def is_exact(self) -> bool:
        """True if each event had the same statements."""
        return not self.failed and all(abs(n - round(n)) < ALMOST for n in self.per_event)

    @property
    def statements(self) -> str:
        """Its statements in words: "14 reads, 2 others an event"."""
        numbers = ((f"{getattr(self, kind) / self.events:.3g}", kind) for kind in KINDS)
        parts = (f"{n} {kind[:-1] if n == '1' else kind}" for n, kind in numbers if n != "0")
        return f"{', '.join(parts)} an event"

    @property
    def facts(self) -> frozenset[str]:
        """Its options and conditions."""
        return (self.options or frozenset()) | (self.conditions or frozenset())


@dataclass(frozen=True)
class SetUp:
    """The set-up of a run, as far as a script printed it above the run.

    Attributes:
        settings: values of the server's settings, by name; empty if another value came before.
        heading: words of the last heading on a set-up; empty without.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    heading: str = ""


def told_apart(labels: Sequence[str], works: Sequence[Work]) -> list[str]:
    """The label of each run; where runs of one label did different work, with the difference.

    Raises:
        UsageError: there are too many kinds of work, each of which is compared with all.
    """
    kinds_by_label: dict[str, list[Work]] = {}
    places = []
    for label, work in zip(labels, works, strict=True):
        kinds = kinds_by_label.setdefault(label, [])
        place = next((n for n, kind in enumerate(kinds) if _is_alike(kind, work)), len(kinds))
        kinds[place : place + 1] = [_together(kinds[place], work) if kinds[place:] else work]
        if len(kinds) > KINDS_MAX:
            raise UsageError(
                f"the runs called {label[:60]} did too many kinds of work",
                wanted=f"runs that differ in options or statements in {KINDS_MAX:,} ways at most",
                hint="give only the files of a single experiment",
            )
        places.append(place)
    names = {label: _names(label, kinds) for label, kinds in kinds_by_label.items()}
    return [names[label][place] for label, place in zip(labels, places, strict=True)]


def _is_alike(first: Work, second: Work) -> bool:
    """True unless both runs tell what differs."""
    pairs = ((first.options, second.options), (first.conditions, second.conditions))
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        return False
    return _has_same_statements(first, second)


def _has_same_statements(first: Work, second: Work) -> bool:
    if not (first.is_counted and second.is_counted):
        return True
    if first.is_exact and second.is_exact:
        pairs = zip(first.per_event, second.per_event, strict=True)
        return all(abs(one - other) < ALMOST for one, other in pairs)
    (low, high), (other_low, other_high) = _ranges(first), _ranges(second)
    return all(
        low[n] <= other_high[n] + NONE_AT_ALL and other_low[n] <= high[n] + NONE_AT_ALL
        for n in range(len(low))
    )


def _ranges(work: Work) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Least and most statements of an event, without and with those of events begun again."""
    tolerance = TOLERANCE + work.events**-0.5
    least = work.events / (work.events + work.failed) * (1 - tolerance)
    return (
        tuple(number * least for number in work.per_event),
        tuple(number * (1 + tolerance) for number in work.per_event),
    )


def _together(first: Work, second: Work) -> Work:
    """The first run, with facts that only the second tells."""
    counted = first if first.is_counted else second
    return Work(
        **{name: getattr(counted, name) for name in (*KINDS, "events", "failed")},
        options=second.options if first.options is None else first.options,
        conditions=second.conditions if first.conditions is None else first.conditions,
    )


def _names(label: str, kinds: Sequence[Work]) -> list[str]:
    """A name for each kind of work of a label."""
    if len(kinds) == 1:
        return [label]
    is_counted = not all(_has_same_statements(*pair) for pair in combinations(kinds, 2))
    common = frozenset.intersection(*(kind.facts for kind in kinds))
    names: list[str] = []
    for kind in kinds:
        statements = [kind.statements] if is_counted and kind.is_counted else []
        parts = [*statements, *sorted(kind.facts - common)]
        name = f"{label} ({', '.join(parts)})" if parts else label
        names.append(name if name not in names else f"{name} #{len(names) + 1}")
    return names


def set_ups_apart(cells: Sequence[Hashable], set_ups: Sequence[SetUp]) -> list[str]:
    """For each run of a log the words by which set-ups of a cell differ; empty without them.

    Headings count only where settings do not tell all apart.
    """
    differing = {
        name
        for alike in _by_cell(cells, set_ups)
        for name in frozenset[str]().union(*(one.settings for one in alike))
        if len({one.settings[name] for one in alike if name in one.settings}) > 1
    }
    names = sorted(differing)
    words = [
        ", ".join(f"{name}={one.settings[name]}" for name in names if one.settings.get(name))
        for one in set_ups
    ]
    by_words = _by_cell(list(zip(cells, words, strict=True)), set_ups)
    if not any(len({one.heading for one in alike} - {""}) > 1 for alike in by_words):
        return words
    pairs = zip(words, set_ups, strict=True)
    return [", ".join(filter(None, (text, one.heading))) for text, one in pairs]


def _by_cell(cells: Sequence[Hashable], set_ups: Sequence[SetUp]) -> list[list[SetUp]]:
    alike: dict[Hashable, list[SetUp]] = {}
    for cell, set_up in zip(cells, set_ups, strict=True):
        alike.setdefault(cell, []).append(set_up)
    return list(alike.values())
