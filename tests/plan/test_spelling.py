"""Short ways of writing: what they stand for, and what is left as it was typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.plan.spelling import duration_ms, duration_s, ratio


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
def test_a_percentage_is_a_ratio_and_anything_else_stays(hundredths):
    assert ratio(f"{hundredths / 100} %") == pytest.approx(hundredths / 10_000)
    assert ratio(hundredths / 10_000) == hundredths / 10_000
    assert ratio("two%") == "two%"
