"""What one verdict means for a decision between two systems, in a sentence or two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import Text, phrase, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.report.numbers import change, share

SIZE_OPEN: Final = phrase(
    "{range} The direction is settled, but the difference may be as small as the margin of "
    "{margin} or smaller; more blocks would show whether it matters."
)
MEANINGS: Final[Mapping[tuple[Word, bool], str]] = {
    (Word.BETTER, True): phrase(
        "{range} The whole interval lies beyond the margin of {margin}: a reason for {system} in "
        "this cell."
    ),
    (Word.WORSE, True): phrase(
        "{range} The whole interval lies beyond the margin of {margin}: a reason against {system} "
        "in this cell."
    ),
    (Word.BETTER, False): SIZE_OPEN,
    (Word.WORSE, False): SIZE_OPEN,
    (Word.EQUIVALENT, True): phrase(
        "{range} All of it lies within the margin of {margin}. A difference exists, but it is too "
        "small to matter. Choose between the two on other grounds."
    ),
    (Word.EQUIVALENT, False): phrase(
        "{range} All of it lies within the margin of {margin}. Choose between the two on other "
        "grounds."
    ),
    (Word.UNDECIDED, False): phrase(
        "{range} That allows both a difference that matters and none: these data are a reason for "
        "neither system. Undecided is not equal."
    ),
    (Word.VOID, False): phrase(
        "Trials that this comparison needs are void, so no decision can rest on it; remove the "
        "cause named under Findings and repeat them."
    ),
    (Word.NO_VERDICT, False): phrase(
        "There are too few sound blocks for an interval: no decision can rest on it."
    ),
}
"""By the word, and whether it is beyond the margin (for equivalent: whether 1 is outside)."""


def meaning(verdict: Verdict) -> Text:
    """What the interval that the word rests on means."""
    further = _is_real(verdict) if verdict.word is Word.EQUIVALENT else verdict.material
    return say(
        MEANINGS[verdict.word, further],
        range=_range(verdict),
        margin=share(verdict.margin),
        system=verdict.system,
    )


def _range(verdict: Verdict) -> Text:
    alone = phrase(
        "With 95 % confidence, {metric} of {system} differs from that of {baseline} by {low} to "
        "{high}."
    )
    together = phrase(
        "With 95 % confidence in all {cells} cells together, {metric} of {system} differs from "
        "that of {baseline} by {low} to {high}."
    )
    return say(
        alone if verdict.cells == 1 else together,
        cells=verdict.cells,
        metric=BY_NAME[verdict.metric].label,
        system=verdict.system,
        baseline=verdict.baseline,
        low=change(verdict.low),
        high=change(verdict.high),
    )


def _is_real(verdict: Verdict) -> bool:
    low, high = verdict.low, verdict.high
    return low is not None and high is not None and not low <= 1 <= high
