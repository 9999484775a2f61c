"""Transactions are counted in what servers write of them."""

import uuid
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import ServerError
from dbdyno.servers.mysql.replication import behind, count_of_set

ONE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TWO = "3e11fa47-71ca-11e1-9e33-c80aa9429563"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (f"{ONE}:23", 1),
        (f"{ONE}:1-5", 5),
        (f"{ONE}:1-5:7:10-12", 9),
        (f"{ONE}:1-3,\n{TWO}:11-20", 13),
        (f"{ONE}:1-3:loads:1-4", 7),
    ],
)
def test_a_set_is_counted_as_the_manual_has_it(text, count):
    assert count_of_set(text) == count


RANGES = st.lists(st.tuples(st.integers(1, 10**15), st.integers(0, 10**6)), min_size=1, max_size=5)


@given(st.dictionaries(st.uuids(), RANGES, max_size=4))
def test_a_sets_count_is_the_sum_of_its_ranges(sources: dict[uuid.UUID, list[tuple[int, int]]]):
    text = ",\n".join(
        ":".join([str(source), *(f"{first}-{first + more}" for first, more in ranges)])
        for source, ranges in sources.items()
    )
    assert count_of_set(text) == sum(m + 1 for ranges in sources.values() for _, m in ranges)


@given(st.text(max_size=80))
def test_foreign_text_is_counted_or_refused_never_anything_else(text):
    for read in (count_of_set, lambda given: behind(given, "")):
        counted = -1
        with suppress(ServerError):
            counted = read(text)
        assert counted >= -1
        assert isinstance(counted, int)


@pytest.mark.parametrize("text", ["what", f"{ONE}:5-1", f"{ONE}:", f"{ONE}:0-4"])
def test_what_is_no_set_is_refused(text):
    with pytest.raises(ServerError, match="cannot be read"):
        count_of_set(text)


@pytest.mark.parametrize(
    ("primary", "replica", "count"),
    [
        ("0-1-42", "0-1-42", 0),
        ("0-1-42", "", 42),
        ("0-1-42,3-7-10", "0-1-40", 12),
        ("0-1-42", "0-1-50", 0),
        ("", "0-1-5", 0),
    ],
)
def test_positions_are_compared_by_domain(primary, replica, count):
    assert behind(primary, replica) == count
