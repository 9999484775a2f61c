from __future__ import annotations

from dbdyno.judge.verdict import Word
from dbdyno.language.words import Said
from dbdyno.report.charts.base import VERDICTS, verdict_scale, verdict_sign, verdict_words
from support import making
from support.made_run import run


def test_every_verdict_has_words_a_sign_and_colours() -> None:
    made = run(making.plan(), making.pairs((0.77, 0.76, 0.78)))
    (verdict,) = made.judgement.verdicts
    assert verdict_words(verdict) == "worse, beyond the margin"
    assert verdict_sign(verdict) == "▼"
    for word in Word:
        for material in {False, word in (Word.BETTER, Word.WORSE)}:
            other = verdict.model_copy(update={"word": word, "material": material})
            assert verdict_words(other).startswith(word.value)
    assert len({ground for *_, ground, _ in VERDICTS}) == len(VERDICTS)
    assert all(isinstance(words, Said) for words, *_ in VERDICTS)


def test_a_scale_has_what_is_shown_from_good_to_bad() -> None:
    scale = verdict_scale(["worse", "better", "worse"])
    assert scale == {"domain": ["better", "worse"], "range": ["#B5DCF3", "#F6C9AB"]}
    assert verdict_scale(["worse"], lines=True)["range"] == ["#E2883F"]
