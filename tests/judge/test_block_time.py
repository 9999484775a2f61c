"""What a block takes here, from the times at which trials began."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from dbdyno.judge.verdict import block_seconds
from support import making
from support.making import A, B

BEGIN = datetime.fromisoformat("2026-11-21T06:00:00+00:00")


def begun(block: int, after_s: float, system: str = A):
    at = (BEGIN + timedelta(seconds=after_s)).isoformat("T", "milliseconds")
    return making.measurement(system, block).model_copy(update={"started_at": at})


def test_it_is_the_time_from_block_to_block_and_a_pause_does_not_count():
    trials = [begun(0, 0), begun(0, 40, B), begun(1, 90), begun(2, 180), begun(3, 9000)]
    assert block_seconds(trials) == pytest.approx(90)


def test_one_block_takes_its_loads_at_least():
    assert block_seconds([begun(0, 0), begun(0, 40, B)]) == pytest.approx(24)


def test_without_times_nothing_is_known():
    nameless = making.measurement().model_copy(update={"started_at": "some day"})
    assert block_seconds([nameless]) is None
    assert block_seconds([]) is None
