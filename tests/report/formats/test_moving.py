"""What may run in a page, and text that cannot leave the place where it stands."""

from __future__ import annotations

import base64
import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.report.charts.base import COLOURS
from dbdyno.report.formats import html
from dbdyno.report.parts import Figure


def contrast(first: str, second: str) -> float:
    """WCAG 2's contrast ratio of two colours (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio)."""

    def luminance(colour: str) -> float:
        shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_system_can_be_seen_on_a_dark_page() -> None:
    paper = html.DARK["white"]
    shown = [html.DARK.get(colour.lower(), colour) for colour in COLOURS]
    assert len(set(shown)) == len(COLOURS)
    assert [colour for colour in shown if contrast(colour, paper) < 3] == []
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@given(st.text() | st.dictionaries(st.text(), st.integers(), max_size=3))
def test_json_in_a_script_stays_json_and_cannot_end_it(value: object) -> None:
    text = html.as_json({"</script><!--": value, "&": "<script>\u2028"})
    assert json.loads(text) == {"</script><!--": value, "&": "<script>\u2028"}
    assert not set(text) & set("<>&\u2028\u2029")


def test_a_specification_names_no_address_and_no_number_that_is_none() -> None:
    spec = {"$schema": "https://x", "data": {"values": [{"y": math.nan}, {"y": 1.5}]}}
    figure = Figure("n", "t", "d", spec, "")
    assert html.specification(figure) == {"data": {"values": [{"y": None}, {"y": 1.5}]}}


def test_the_policy_lets_the_given_scripts_run_and_nothing_else() -> None:
    digest = base64.b64encode(hashlib.sha256(b"alert(1)").digest()).decode()
    policy = html.policy(["alert(1)"])
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    assert "script-src 'none';" in html.policy([])


def test_the_programs_can_stand_in_a_page() -> None:
    for script in (html.program(), html.page_script()):
        assert "</script" not in script.lower()
        assert "<!--" not in script
        assert "\r" not in script
        assert "\0" not in script
    assert "dbdynoEmbed" in html.program()
    assert "dbdynoEmbed" in html.page_script()
