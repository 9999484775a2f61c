from __future__ import annotations

import pytest

from dbdyno.judge.verdict import Word
from dbdyno.language.words import Said, say
from dbdyno.report.charts.vega import (
    OFFSETS_MAX,
    POINTS_LISTED_MAX,
    VERDICTS,
    colour,
    description,
    look_of,
    offset,
    side_by_side,
    verdict_scale,
)
from dbdyno.report.tell.terms import term
from support import making
from support.made_run import run


@pytest.mark.parametrize("count", [1, 2, 4, 12])
def test_systems_stand_side_by_side_about_their_level(count: int) -> None:
    systems = [f"s{place}" for place in range(count)]
    offsets = [offset(systems, system) for system in systems]
    assert sum(offsets) == pytest.approx(0)
    assert len(set(offsets)) == count
    assert max(offsets) - min(offsets) <= OFFSETS_MAX


def test_one_panel_stands_alone() -> None:
    assert side_by_side([{"mark": "bar"}], 2) == {"mark": "bar"}
    assert side_by_side([{}, {}], 2)["columns"] == 2


def test_colours_begin_again_after_the_last() -> None:
    scale = colour([f"s{place}" for place in range(9)])["scale"]
    assert len(scale["range"]) == 9
    assert scale["range"][7] == scale["range"][0]


def test_a_long_list_of_points_is_no_description() -> None:
    few = description("T", "ms", [say("a: {n}", n=n) for n in range(2)])
    assert few == "T, ms. a: 0; a: 1."
    many = description("T", "ms", [say("a: {n}", n=n) for n in range(POINTS_LISTED_MAX + 1)])
    assert many == "T, ms. 41 points; the tables have their numbers."


def test_every_verdict_has_words_a_sign_and_colours() -> None:
    made = run(making.plan(), making.pairs((0.77, 0.76, 0.78)))
    (verdict,) = made.judgement.verdicts
    assert look_of(verdict)[:2] == ("slower, beyond the margin", "▼")
    for word in Word:
        for material in {False, word in (Word.BETTER, Word.WORSE)}:
            other = verdict.model_copy(update={"word": word, "material": material})
            assert look_of(other).words.startswith(term(word))
    assert len({look.background for look in VERDICTS.values()}) == len(VERDICTS)
    assert all(isinstance(look.words, Said) for look in VERDICTS.values())


def test_a_scale_has_what_is_shown_from_good_to_bad() -> None:
    scale = verdict_scale(["slower", "faster", "slower"])
    assert scale == {"domain": ["faster", "slower"], "range": ["#D3EEE4", "#F8DDCD"]}
    assert verdict_scale(["slower"], lines=True)["range"] == ["#CB7A4C"]
