"""The sentences that head a comparison, of known verdicts."""

from __future__ import annotations

import re

import pytest

from dbdyno.language.words import Said
from dbdyno.report.sections.conclusion import headlines
from support.made_run import of_workloads

FASTER, SLOWER, TWICE = (1.12, 1.13, 1.14), (0.44, 0.45, 0.46), (2.39, 2.4, 2.41)
ALIKE, OPEN = (1.0, 1.001, 0.999), (0.9, 1.0, 1.2)


def headlines_of(**ratios: tuple[float, ...]) -> list[Said]:
    """Headlines of a run of these workloads, a cell each, with these ratios of its blocks."""
    made = of_workloads(ratios)
    return headlines(made.plan, made.judgement)


def test_a_headline_is_what_a_person_would_say() -> None:
    (line,) = headlines_of(oltp_read_only=FASTER, oltp_write_only=SLOWER)
    low, _, high = line.partition("13 % faster (")[2].partition(" %)")[0].partition(" to ")
    assert line.startswith("Compared with mysql:5.7.22, mysql:8.0.15 reads 13 % faster (")
    assert 0 < float(low) < 13 < float(high)
    assert " and writes 55 % slower (" in line


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        (ALIKE, "is equally fast in oltp_insert (within 2 %)"),
        (TWICE, "is 2.4 times as fast ("),
    ],
)
def test_a_workload_without_a_verb_is_named(ratios: tuple[float, ...], words: str) -> None:
    (line,) = headlines_of(oltp_insert=ratios)
    assert words.partition(" in ")[0] in line
    assert "oltp_insert" in line


def test_a_workload_without_an_answer_has_its_interval() -> None:
    decided, open_ = headlines_of(oltp_read_only=FASTER, oltp_insert=OPEN)
    assert "reads 13 % faster" in decided
    assert open_.startswith("Not enough data for oltp_insert (−")
    assert " to +" in open_
    (vast,) = headlines_of(oltp_insert=(0.1, 1.0, 20.0))
    assert re.search("to \\+[0-9\u202f]+\u202f[0-9]{3} %", vast), "thousands parted as in tables"


def test_many_answers_are_counted_with_the_range_of_their_sizes() -> None:
    names = ("oltp_read_only", "oltp_write_only", "oltp_insert", "oltp_delete", "oltp_update_index")
    ratios = dict(zip(names, (FASTER, FASTER, SLOWER, ALIKE, TWICE), strict=True))
    (line,) = headlines_of(**ratios)
    assert line == (
        "Compared with mysql:5.7.22 in 5 cells, mysql:8.0.15 is faster in 3 (13 to 140 %), "
        "slower in 1 (55 %) and the same in 1."
    )
