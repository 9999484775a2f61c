"""The sentences a person reads, and changes with their intervals."""

from __future__ import annotations

import pytest

from dbdyno.judge.verdict import Verdict, verdict_of
from dbdyno.language.words import translated
from dbdyno.report.tell.verdicts import change_decided, duration, sentence
from support.made_estimates import estimate, finding, held
from support.making import A, B


def decided(*facts, findings=(), **named) -> Verdict:
    return verdict_of(estimate(*facts, **named), 0.02, findings)


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (
            decided(0.769, 0.75, 0.788, blocks=3),
            f"{B} is slower than {A}: TPS −23.1 % [−25.0, −21.2], 3 blocks (few)",
        ),
        (
            decided(1.05, 1.04, 1.0604),
            f"{B} is faster than {A}: TPS +5.0 % [+4.0, +6.0], 8 blocks",
        ),
        (
            decided(1.0002, 0.995, 1.0054, blocks=12),
            f"{B} and {A} are the same within 2 %: TPS 0.0 % [−0.5, +0.5], 12 blocks",
        ),
        (
            decided(1.0, 0.98, 1.02, blocks=5, log_sd=0.03),
            f"not enough data for {B} against {A}: TPS 0.0 % [−2.0, +2.0], 5 blocks; "
            "a decision needs about 50 blocks",
        ),
        (
            decided(1.0, 0.1, 10.0, blocks=4, log_sd=1.5),
            f"not enough data for {B} against {A}: TPS 0.0 % [−90.0, ×10.0], 4 blocks (few); "
            "a decision needs more than 1\u202f000 blocks",
        ),
        (
            decided(0.98, None, None, blocks=2),
            f"{B} against {A} has no verdict: TPS −2.0 %, 2 valid blocks; a verdict needs 3",
        ),
        (
            decided(None, None, None, blocks=0, log_sd=None),
            f"{B} against {A} has no verdict: 0 valid blocks; a verdict needs 3",
        ),
        (
            decided(0.98, None, None, blocks=1, findings=[finding("little-law")]),
            f"{B} against {A} is void: 1 valid block; a verdict needs 3, "
            "1 void trial left out: little-law",
        ),
        (
            decided(1.25, 1.2, 1.3, metric="latency_ms_avg"),
            f"{B} is slower than {A}: avg +25.0 % [+20.0, +30.0], 8 blocks",
        ),
    ],
)
def test_sentence(verdict, text):
    assert sentence(verdict) == text


def test_an_undecided_cell_says_what_the_missing_blocks_cost():
    verdict = verdict_of(estimate(1.0, 0.98, 1.02, blocks=5, log_sd=0.03), 0.02, block_s=600.0)
    assert sentence(verdict).endswith(
        "a decision needs about 50 blocks: 45 more, in about 7 h 30 min"
    )


def test_the_interval_said_is_the_one_that_holds_together_with_others():
    wider = held(0.74, 0.8, level=0.01, cells=6)
    verdict = verdict_of(estimate(0.769, 0.75, 0.788, blocks=6), 0.02, held=wider)
    assert sentence(verdict) == (f"{B} is slower than {A}: TPS −23.1 % [−26.0, −20.0], 6 blocks")
    assert change_decided(verdict_of(estimate(None, None, None, blocks=0), 0.02)) is None


def test_a_sentence_can_be_said_in_another_language():
    verdict = decided(0.769, 0.75, 0.788)
    catalogue = {
        "{system} is slower than {baseline}: {numbers}": "{system} 慢于 {baseline}：{numbers}",
        "{count} blocks": "{count} 个区组",
        "{before}, {after}": "{before}，{after}",
    }
    assert translated(sentence(verdict), catalogue) == (
        f"{B} 慢于 {A}：TPS −23.1 % [−25.0, −21.2]，8 个区组"
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59.6, "1 min 00 s"), (45, "45 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")],
)
def test_a_duration_is_said_as_a_person_says_it(seconds, said):
    assert duration(seconds) == said
