"""None"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
import vl_convert

from dbdyno.judge.verdict import Word
from dbdyno.language.catalogues import Language, catalogue
from dbdyno.language.words import Said, name, say
from dbdyno.report.charts.base import (
    ASIDE_ALL_MAX,
    CHINESE,
    LOOKS,
    POINTS_TOLD_MAX,
    VERDICTS,
    Drawing,
    arranged,
    aside,
    colour,
    draw,
    in_words,
    verdict_scale,
    verdict_sign,
    verdict_words,
)
from dbdyno.report.parts import Figure
from support import making
from support.made_run import run


@pytest.mark.parametrize("count", [1, 2, 4, 12])
def test_systems_stand_side_by_side_about_their_level(count: int) -> None:
    systems = [f"s{place}" for place in range(count)]
    offsets = [aside(systems, system) for system in systems]
    assert sum(offsets) == pytest.approx(0)
    assert len(set(offsets)) == count
    assert max(offsets) - min(offsets) <= ASIDE_ALL_MAX


def test_one_panel_stands_alone() -> None:
    assert arranged([{"mark": "bar"}], 2) == {"mark": "bar"}
    assert arranged([{}, {}], 2)["columns"] == 2


def test_colours_begin_again_after_the_last() -> None:
    scale = colour([f"s{place}" for place in range(9)])["scale"]
    assert len(scale["range"]) == 9
    assert scale["range"][7] == scale["range"][0]


def test_a_long_list_of_points_is_no_description() -> None:
    few = in_words("T", "ms", [say("a: {n}", n=n) for n in range(2)])
    assert few == "T, ms. a: 0; a: 1."
    many = in_words("T", "ms", [say("a: {n}", n=n) for n in range(POINTS_TOLD_MAX + 1)])
    assert many == "T, ms. 41 points; the tables have their numbers."


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


HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def drawing() -> Drawing:
    encoding = {"x": {"field": "a", "type": "nominal"}, "y": {"field": "b", "type": "quantitative"}}
    spec = {
        "data": {"values": [{"a": HOSTILE, "b": 2}]},
        "mark": {"type": "bar", "clip": True},
        "encoding": encoding,
    }
    return draw(Figure("made", f"Title {HOSTILE}", "One bar & its height", spec, ""))


def test_a_figure_becomes_svg_and_png(drawing: Drawing) -> None:
    assert drawing.png.startswith(b"\x89PNG\r\n\x1a\n")
    assert ElementTree.fromstring(drawing.svg).tag == "{http://www.w3.org/2000/svg}svg"


def test_inline_it_has_a_text_alternative_and_names_no_address(drawing: Drawing) -> None:
    inline = drawing.inline
    root = ElementTree.fromstring(inline)
    assert root.attrib["role"] == "img"
    assert root.findtext("title") == f"Title {HOSTILE}"
    assert root.findtext("desc") == "One bar & its height"
    assert "http" not in inline
    assert "<script" not in inline


def test_inline_its_ids_are_its_own_and_all_there(drawing: Drawing) -> None:
    ids = re.findall(r'\bid="([^"]*)"', drawing.inline)
    assert ids
    assert all(name.startswith("made-") for name in ids)
    assert set(re.findall(r"url\(#([^)]*)\)", drawing.inline)) <= set(ids)


def test_every_chinese_sign_of_the_catalogue_has_a_glyph() -> None:
    """On a machine without any Chinese font a chart must show signs, not gaps or boxes."""
    draw(Figure("made", name("图"), name(""), {"mark": "bar", "title": "图"}, name("")))
    signs = {sign for text in catalogue(Language.ZH).values() for sign in text}
    chinese = sorted(sign for sign in signs if CHINESE.search(sign))
    assert len(chinese) > 500
    missing = _ink("\U0010fffd")
    assert [sign for sign in chinese if _ink(sign) == missing] == []


def _ink(sign: str) -> bytes:
    """The sign drawn by itself, in the font of the charts."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24">'
        f'<text x="2" y="20" font-size="18" font-family="{LOOKS["font"]}">{sign}</text></svg>'
    )
    return bytes(vl_convert.svg_to_png(svg))
