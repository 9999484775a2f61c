from __future__ import annotations

import math
import re

import pytest
from tests.judge.test_rate_limit import plan_of, search
from tests.judge.test_rate_limit import run as trials_of

from dbdyno.judge.estimate import SystemValue
from dbdyno.judge.interval import Typical
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.rate_limit import RateSearch
from dbdyno.language.words import translated
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.plan.known import known_of
from dbdyno.plan.plan import cells
from dbdyno.report import numbers
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.formats.summary import Summary
from dbdyno.report.numbers import value_of, what
from support import making
from support.made_estimates import estimate
from support.made_run import run

CELL = cells(making.plan())[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.12345, "0.123"),
        (9.999, "10.00"),
        (87.314, "87.31"),
        (769.04, "769.0"),
        (1234.56, "1\u202f235"),
        (1234567.0, "1\u202f234\u202f567"),
        (-3.5, "−3.50"),
        (None, "—"),
        (math.nan, "—"),
        (math.inf, "—"),
    ],
)
def test_four_significant_digits_with_thousands_parted(value: float | None, text: str) -> None:
    assert numbers.number(value) == text


def test_a_typical_value_has_the_interval_of_its_blocks() -> None:
    found = Typical(value=49.24, low=47.1, high=51.5, blocks=5)
    assert numbers.typical_value(found) == "49.2 [47.1, 51.5]"
    assert numbers.typical_value(found.model_copy(update={"low": None})) == "49.2"
    assert numbers.typical_value(None) == "—"
    small = Typical(value=0.00042, low=-0.0001, high=0.00094, blocks=3)
    assert numbers.coefficient(small) == "0.00042 [−0.0001, 0.00094]"
    assert numbers.coefficient(None) == "—"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.769, "−23.1 %"),
        (1.05, "+5.0 %"),
        (1.0001, "0.0 %"),
        (0.9999, "0.0 %"),
        (12.34, "×12.3"),
        (None, "—"),
    ],
)
def test_a_ratio_is_printed_as_the_change_it_means(ratio: float | None, text: str) -> None:
    assert numbers.change(ratio) == text


def test_an_interval_stands_in_brackets_and_only_if_there_is_one() -> None:
    assert numbers.interval(0.769, 0.75, 0.788) == "−23.1 % [−25.0, −21.2]"
    whole = numbers.change_with_interval(estimate(0.769, 0.75, 0.788))
    assert whole == "−23.1 % [−25.0, −21.2]"
    assert numbers.change_with_interval(estimate(0.769, None, None)) == "−23.1 %"
    assert numbers.change_with_interval(estimate(1.5, 0.2, 40.0)) == "+50.0 % [−80.0, ×40.0]"
    assert numbers.change_with_interval(estimate(None, None, None)) == "—"
    assert numbers.change_with_interval(None) == "—"


def shown(metric: str, value: float | None, reference: str = making.A) -> str:
    """The table's cell of a run in which the system has that value."""
    seen = SystemValue(
        cell=CELL, system=making.A, metric=metric, value=value, low=None, high=None, blocks=1
    )
    known = known_of(making.plan(systems=(reference,)))
    judgement = Judgement(findings=(), values=(seen,), estimates=(), verdicts=(), known=known)
    return numbers.metric_value(judgement, CELL, making.A, BY_NAME[metric])


def test_a_percentile_without_enough_requests_says_so() -> None:
    assert shown("latency_ms_p99", None) == "not enough requests"
    assert shown("latency_ms_p99", None, "imported:old") == "not printed"
    assert shown(PRIMARY.name, None) == "—"
    assert shown("server_cpu_us_per_query", 39.96) == "40.0"
    nothing = Judgement(findings=(), values=(), estimates=(), verdicts=())
    assert numbers.metric_value(nothing, CELL, making.A, PRIMARY) == "—"


def test_sizes_shares_and_durations() -> None:
    assert numbers.mebibytes(256 * 2**20) == "256 MiB"
    assert numbers.mebibytes(20 * 2**30) == "20.0 GiB"
    assert numbers.share(0.02) == "2 %"
    assert [numbers.percentage(one) for one in (0.0312, 0.0, None)] == ["3.12 %", "0 %", "—"]
    assert numbers.seconds(0.5) == "0.5 s"


CHINESE = {
    "kernel": "内核",
    "{logical} logical, {usable} usable": "{logical} 个逻辑核，可用 {usable} 个",
    "container": "容器",
    "virtual machine ({product})": "虚拟机（{product}）",
}


def test_english_says_what_was_stored():
    for text in (
        "4 logical, 2 usable",
        "ext4",
        "virtual machine (KVM), container",
        "unknown",
        "",
        "made, 4 cores",
    ):
        assert value_of(text) == text
    assert [what("kernel"), what("python")] == ["kernel", "python"]


def test_known_names_and_values_can_be_told_and_others_stay():
    assert translated(what("kernel"), CHINESE) == "内核"
    assert translated(what("python"), CHINESE) == "python"
    assert translated(value_of("4 logical, 2 usable"), CHINESE) == "4 个逻辑核，可用 2 个"
    assert (
        translated(value_of("virtual machine (a b), container"), CHINESE) == "虚拟机（a b）, 容器"
    )
    assert translated(value_of("Intel(R) Xeon(R) CPU @ 2.20GHz"), CHINESE).startswith("Intel(R)")


# Rates within a limit in words.


def judged(*searches: RateSearch) -> Judgement:
    return Judgement(findings=(), values=(), estimates=(), verdicts=(), slo=searches)


FOUND = search({making.A: [1000, 1010, 990], making.B: [1100, 1111, 1089]})
OUTSIDE = search({making.A: [1000.0] * 3, making.B: [5000.0] * 3})


def test_the_verdict_comes_first_then_each_system_s_rate() -> None:
    verdict, systems = numbers.sentences(judged(FOUND))
    place = "oltp_read_write, p50 within 20 ms: "
    better = f"{place}{making.B} is faster than {making.A}: rate within the limit +"
    assert verdict.startswith(better)
    assert systems.startswith(f"{place}{making.A} sustains ")
    assert systems.count(" transactions/s [") == 2


def test_what_lies_outside_the_rates_is_told_by_its_side() -> None:
    verdict, systems = numbers.sentences(judged(OUTSIDE))
    assert "has no verdict" in verdict
    assert systems.endswith(f"{making.B} sustains ≥ 1\u202f323 transactions/s.")


def test_a_rate_of_some_blocks_has_no_interval_and_says_what_the_others_were() -> None:
    """Blocks that broke the limit at every rate are left out of the mean: it is no mean of all."""
    (found,) = judged(search({making.A: [1000, 1010, 990, 100, 100], making.B: [1000] * 5})).slo
    _, systems = numbers.sentences(judged(found))
    of_a, of_b = systems.removesuffix(".").split("; ")
    told = r"sustains [\d\u202f.]+ transactions/s in 3 of 5 blocks, in the others < 880\.0$"
    assert re.search(told, of_a)
    assert "[" in of_b
    assert (found.limits[0].low, found.limits[0].high) == (None, None)
    assert numbers.limit_interval(found.limits[0]) == "—"


def test_a_block_is_a_rate_with_its_side() -> None:
    assert [numbers.in_block(block) for block in OUTSIDE.limits[1].by_block] == ["≥ 1\u202f323"] * 3
    assert numbers.limit_interval(OUTSIDE.limits[1]) == "—"
    unknown = OUTSIDE.limits[1].by_block[0].model_copy(update={"rate_per_s": None})
    assert numbers.in_block(unknown) == "—"


def test_stdout_has_the_answer_before_the_cells() -> None:
    made = run(making.plan(), [])
    for output in (Output.PLAIN, Output.MARKDOWN):
        page = render(Summary(made.plan, judged(FOUND), made.facts), output)
        assert "sustains" in page
        assert "faster 1, slower 0" in page
    rungs = run(plan_of(3), trials_of({making.A: [1000.0] * 3, making.B: [1000.0] * 3}))
    assert "880/s" not in render(Summary(rungs.plan, rungs.judgement, rungs.facts), Output.PLAIN)
