"""Rates and pauses: what is accepted, and what the engine is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Refusal, Values
from dbdyno.sysbench.request import Pace


def of(**typed):
    return Pace.of(Values(GLOBAL_TABLE, {k.replace("_", "-"): v for k, v in typed.items()}))


def test_a_closed_loop_tells_the_engine_nothing():
    assert of().spec() == {}
    assert not of(rate="0", think_time="0").is_set()


def test_a_rate_is_poisson_unless_said_otherwise():
    assert of(rate="50").spec() == {"rate_per_s": 50, "arrival": "poisson"}
    assert of(rate="50", arrival="uniform").spec() == {"rate_per_s": 50, "arrival": "uniform"}


def test_a_pause_is_one_number_or_two():
    assert of(think_time="5").spec() == {"think_time_ms": [5.0, 5.0]}
    assert of(think_time="0-2.5").spec() == {"think_time_ms": [0.0, 2.5]}
    assert of(think_time="0-2.5").is_set()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"rate": "-5"}, "Invalid value for --rate: -5. It must be 0 or more."),
        ({"rate": "x"}, "Invalid value for the 'rate' option: 'x'"),
        ({"rate": "5", "arrival": "zip"}, "Invalid value for --arrival: 'zip'."),
        ({"arrival": "uniform"}, "give --rate=N with it"),
        ({"think_time": "9-5"}, "the lesser first"),
        ({"think_time": "-5"}, "Invalid value for --think-time: '-5'"),
        ({"think_time": "5ms"}, "Invalid value for --think-time: '5ms'"),
    ],
)
def test_what_makes_no_sense_is_refused(typed, told):
    with pytest.raises(Refusal) as refused:
        of(**typed)
    assert told in refused.value.lines[0]


@given(st.text(alphabet="0123456789.-e ", max_size=9))
def test_any_pause_is_in_order_or_refused(text):
    try:
        pause_ms, told = of(think_time=text).think_time_ms, ""
    except Refusal as refusal:
        pause_ms, told = (1.0, 0.0), refusal.lines[0]
    assert 0 <= pause_ms[0] <= pause_ms[1] or "--think-time" in told
