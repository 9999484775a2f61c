"""Rates within a limit in words."""

from __future__ import annotations

from tests.judge.test_rate_limit import plan_of, search
from tests.judge.test_rate_limit import run as trials_of

from dbdyno.judge.judgement import Judgement
from dbdyno.judge.rate_limit import RateSearch
from dbdyno.report import numbers
from dbdyno.report.formats.terminal import as_markdown, plain
from support import making
from support.made_run import run


def judged(*searches: RateSearch) -> Judgement:
    return Judgement(findings=(), values=(), estimates=(), verdicts=(), slo=searches)


FOUND = search({making.A: [1000, 1010, 990], making.B: [1100, 1111, 1089]})
OUTSIDE = search({making.A: [1000.0] * 3, making.B: [5000.0] * 3})


def test_the_verdict_comes_first_then_each_system_s_rate() -> None:
    verdict, systems = numbers.sentences(judged(FOUND))
    place = "oltp_read_write, p50 within 20 ms: "
    better = f"{place}{making.B} is better than {making.A}: rate within the limit +"
    assert verdict.startswith(better)
    assert systems.startswith(f"{place}{making.A} sustains ")
    assert systems.count(" events/s [") == 2


def test_what_lies_outside_the_rates_is_told_by_its_side() -> None:
    verdict, systems = numbers.sentences(judged(OUTSIDE))
    assert "has no verdict" in verdict
    assert systems.endswith(f"{making.B} sustains ≥ 1\u202f323 events/s.")


def test_a_block_is_a_rate_with_its_side() -> None:
    assert [numbers.in_block(block) for block in OUTSIDE.limits[1].by_block] == ["≥ 1\u202f323"] * 3
    assert numbers.limit_interval(OUTSIDE.limits[1]) == "—"
    unknown = OUTSIDE.limits[1].by_block[0].model_copy(update={"rate_per_s": None})
    assert numbers.in_block(unknown) == "—"


def test_stdout_has_the_answer_before_the_cells() -> None:
    made = run(making.plan(), [])
    for told in (plain, as_markdown):
        page = told(made.plan, judged(FOUND), made.facts)
        assert "sustains" in page
        assert "better 1, worse 0" in page
    rungs = run(plan_of(3), trials_of({making.A: [1000.0] * 3, making.B: [1000.0] * 3}))
    assert "880/s" not in plain(rungs.plan, rungs.judgement, rungs.facts)
