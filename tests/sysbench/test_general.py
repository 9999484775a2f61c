"""The general options as numbers in their ranges; each mistake's words are in test_entry."""

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.sysbench.general import General
from dbdyno.sysbench.options import GLOBAL_TABLE
from dbdyno.sysbench.refusal import Refusal
from dbdyno.sysbench.values import Values


def of(**typed):
    options = {name.replace("_", "-"): value for name, value in typed.items()}
    return General.of(Values(GLOBAL_TABLE, options))


def test_the_defaults_are_those_of_sysbench():
    general = of()
    assert (general.threads, general.events, general.time_s) == (1, 0, 10)
    assert (general.report_interval_s, general.percentile, general.verbosity) == (0, 95, 3)
    assert (general.validate, general.seed) == (False, None)
    assert general.distribution["name"] == "special"


def test_each_distribution_has_its_own_parameters():
    assert of(rand_type="uniform").distribution == {"name": "uniform"}
    assert of(rand_type="gaussian", rand_spec_iter="6").distribution == {
        "name": "gaussian",
        "iterations": 6,
    }
    special = of(rand_spec_iter="3", rand_spec_pct="2", rand_spec_res="50").distribution
    assert special == {"name": "special", "iterations": 3, "percent": 2, "result": 50}


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
