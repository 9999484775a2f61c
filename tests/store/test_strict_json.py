from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import BundleError
from dbdyno.store.bundle import strict_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_what_json_holds_comes_back(value: object) -> None:
    assert strict_json(json.dumps(value).encode(), "x") == value


@pytest.mark.parametrize(
    "content",
    [
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"[" * 100_000,
        b"",
        b"\xff",
        b"{",
        b"1" * 9999,
    ],
)
def test_what_is_no_value_is_refused(content: bytes) -> None:
    with pytest.raises(BundleError, match=r"run\.json in the bundle is no JSON"):
        strict_json(content, "run.json")
