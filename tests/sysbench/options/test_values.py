"""The value types, against what the sysbench 1.0.20 binary was seen to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.sysbench.options.values import (
    boolean,
    integer,
    is_whole_number_text,
    items,
    number,
    size,
)


@pytest.mark.parametrize(
    ("raw", "value"),
    [(None, True), ("on", True), ("1", True), ("off", False), ("0", False), ("ON", None)],
)
def test_booleans(raw, value):
    assert boolean(raw) is value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        *[("", 0), ("7", 7), (" +7", 7), ("-7", -7), ("1K", None), ("1e3", None), ("+", None)],
        *[("+-7", None), ("7 ", None), ("\u0667", None), ("2147483648", None)],
    ],
)
def test_integers(raw, value):
    assert integer(raw) == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [("5", 5), ("64K", 65536), ("2mb", 2 << 20), ("1x", 0), ("K", 0), ("1" * 21, 0), (None, 0)],
)
def test_sizes(raw, value):
    assert size(raw) == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        *[("10k", 10), ("1M", 1), ("1e6", 1e6), ("0x10", 16), ("abc", 0), (".5", 0.5), (None, 0)],
        *[("7", 7), ("1.5.2", 1.5), (".", 0), ("\u0667", 0)],
    ],
)
def test_numbers_stop_where_strtod_stops(raw, value):
    assert number(raw) == value


def test_lists_drop_what_is_empty():
    assert items("a,,b,") == ("a", "b")
    assert items(None) == ()


@given(st.text(max_size=100))
def test_no_text_breaks_a_reader(raw):
    assert boolean(raw) in (True, False, None)
    assert integer(raw) is None or -(2**31) <= integer(raw) < 2**31
    assert size(raw) >= 0
    assert isinstance(number(raw), float)
    assert isinstance(is_whole_number_text(raw), bool)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_back(value):
    assert number(repr(value)) == value
    assert is_whole_number_text(repr(value))
