"""The general options as numbers in their ranges; each mistake's words are in test_entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Refusal, Values
from dbdyno.sysbench.request import General


def of(**typed):
    options = {name.replace("_", "-"): value for name, value in typed.items()}
    return General.of(Values(GLOBAL_TABLE, options))


def test_the_defaults_are_those_of_sysbench():
    general = of()
    assert (general.threads, general.events, general.time_s) == (1, 0, 10)
    assert (general.output.report_interval_s, general.verbosity) == (0, 3)
    assert [percentile.text for percentile in general.output.percentiles] == ["95"]
    assert (general.validate, general.debug, general.seed) == (False, False, None)
    assert (general.warmup_s, general.forced_shutdown_s, general.compat) == (0, None, "1.0")
    assert general.distribution["name"] == "special"


def test_each_distribution_has_its_own_parameters():
    assert of(rand_type="uniform").distribution == {"name": "uniform"}
    assert of(rand_type="gaussian", rand_spec_iter="6").distribution == {
        "name": "gaussian",
        "iterations": 6,
    }
    special = of(rand_spec_iter="3", rand_spec_pct="2", rand_spec_res="50").distribution
    assert special == {"name": "special", "iterations": 3, "percent": 2, "result": 50}


@pytest.mark.parametrize(
    ("typed", "time", "seconds"),
    [
        ("off", "10", None),
        (None, "10", 0.5),
        ("", "10", 0.5),
        ("20%", "10", 2.0),
        ("3", "10", 3),
        ("0", "10", 0),
        ("3", "0", None),
    ],
)
def test_a_forced_shutdown_is_seconds_or_a_share_of_the_time(typed, time, seconds):
    assert of(forced_shutdown=typed, time=time).forced_shutdown_s == seconds


@pytest.mark.parametrize("text", ["abc", "-3", "3x", "5%%", "%"])
def test_a_forced_shutdown_that_is_none_is_refused(text):
    with pytest.raises(Refusal) as refused:
        of(forced_shutdown=text)
    assert refused.value.lines == (f"FATAL: Invalid value for --forced-shutdown: '{text}'",)


def test_the_engine_is_told_of_a_warm_up_and_a_patience_only_where_there_is_one():
    assert {"warmup_s", "rate_per_s", "tell_records"}.isdisjoint(of().spec())
    assert of().spec()["drain_s"] == 0
    asked = of(warmup_time="3", forced_shutdown="0", rate="9").spec()
    assert (asked["warmup_s"], asked["drain_s"], asked["rate_per_s"]) == (3, 0.001, 9)


def test_debug_is_the_highest_verbosity():
    assert of(debug=None, verbosity="0").verbosity == 5


def test_seed_zero_is_no_seed():
    assert of(rand_seed="0").seed is None
    assert of(rand_seed="5").seed == 5


@given(st.text(max_size=6))
def test_threads_are_at_least_one_or_refused(text):
    try:
        threads, told = of(threads=text).threads, ""
    except Refusal as refusal:
        threads, told = 0, refusal.lines[0]
    assert threads >= 1 or "threads" in told
