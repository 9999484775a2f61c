"""Short ways of writing: what they stand for, and what is left as it was typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.plan.document import Document, parse
from dbdyno.plan.spelling import duration_ms, duration_s, ratio, spell_out


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("2m", 120), ("2 min", 120), ("1.5h", 5400), ("250ms", 0.25), (7, 7)],
)
def test_durations(text, seconds):
    assert duration_s(text) == seconds


def test_short_times_keep_their_digits():
    assert duration_ms("0.8ms") == 0.8
    assert duration_ms("1.5 s") == 1500
    assert duration_ms(3) == 3


@pytest.mark.parametrize("text", ["60", "s", "1d", "-1s", "1e3s", "9" * 400 + "s", "", None, True])
def test_what_is_no_duration_stays(text):
    assert duration_s(text) is text


@given(st.integers(0, 10_000))
def test_a_percentage_is_a_ratio(hundredths):
    assert ratio(f"{hundredths / 100} %") == pytest.approx(hundredths / 10_000)


def test_a_ratio_stays():
    assert ratio(0.02) == 0.02
    assert ratio("two%") == "two%"


def test_a_system_of_one_word_is_its_own_label():
    document = parse("systems: [a, {reference: b}, {label: c, reference: d}, 5]")
    spell_out(document)
    assert document.value["systems"] == [
        {"label": "a", "reference": "a"},
        {"label": "b", "reference": "b"},
        {"label": "c", "reference": "d"},
        5,
    ]


def test_a_time_takes_its_line_along():
    document = parse("trial:\n  window: 2m\n")
    spell_out(document)
    assert document.value == {"trial": {"window_s": 120}}
    assert document.lines[("trial", "window_s")] == 2


def test_what_is_no_plan_is_left_alone():
    for value in (None, 5, [1], {"systems": 3, "load": [], "trial": "x", "design": None}):
        document = Document(value=value)
        spell_out(document)
        assert document.value == value
