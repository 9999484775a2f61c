from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
import vl_convert

from dbdyno.errors import UsageError
from dbdyno.language.catalogues import Language, catalogue
from dbdyno.report.charts.drawing import CHINESE, FONTS, Drawing, draw
from dbdyno.report.charts.vega import THEME
from dbdyno.report.parts import Figure

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


def test_without_vl_convert_a_chart_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbdyno.report.charts.drawing.can_draw", lambda: False)
    with pytest.raises(UsageError, match="takes vl-convert, which is not installed") as caught:
        draw(Figure("n", "t", "d", {}, ""))
    assert caught.value.hint == "pip install 'dbdyno[charts]'"


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
    vl_convert.register_font_directory(str(FONTS))
    signs = {sign for text in catalogue(Language.ZH).values() for sign in text}
    chinese = sorted(sign for sign in signs if CHINESE.search(sign))
    assert len(chinese) > 500
    missing = _ink("\U0010fffd")
    assert [sign for sign in chinese if _ink(sign) == missing] == []


def _ink(sign: str) -> bytes:
    """The sign drawn by itself, in the font of the charts."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24">'
        f'<text x="2" y="20" font-size="18" font-family="{THEME["font"]}">{sign}</text></svg>'
    )
    return bytes(vl_convert.svg_to_png(svg))
