from __future__ import annotations

from dbdyno.judge.rate_limit import BlockLimit, RateLimit, RatePoint, RateSearch
from dbdyno.report.charts.curve import limits
from dbdyno.stats.open_loop import RateSide
from support import making
from support.chart_checks import assert_sound, panels, rows

SYSTEMS = (making.A, making.B)


def limit(system: str, rate_per_s: float | None) -> RateLimit:
    points = (
        RatePoint(rate_per_s=500, latency_ms=5, sustained=True),
        RatePoint(rate_per_s=1000, latency_ms=400, sustained=False),
        RatePoint(rate_per_s=1500, latency_ms=None, sustained=False),
    )
    block = BlockLimit(block=0, side=RateSide.BETWEEN, rate_per_s=rate_per_s, points=points)
    low, high = (None, None) if rate_per_s is None else (rate_per_s * 0.9, rate_per_s * 1.1)
    return RateLimit(
        system=system, rate_per_s=rate_per_s, low=low, high=high, blocks=1, by_block=(block,)
    )


def search(workload: str = "oltp_read_write") -> RateSearch:
    return RateSearch(
        workload=workload,
        setting="default",
        connections=64,
        metric="latency_ms_p99",
        limit_ms=20,
        limits=(limit(making.A, 700.0), limit(making.B, None)),
        verdicts=(),
    )


def test_every_trial_is_a_point_and_every_answer_a_line() -> None:
    figure = limits([search()], SYSTEMS)
    assert figure is not None
    found = rows(figure)
    assert [(r["rate"], r["sustained"]) for r in found if "rate" in r] == [
        (500, True),
        (1000, False),
    ] * 2
    assert [(r["system"], r["at"]) for r in found if "at" in r] == [(making.A, 700.0)]
    assert [r["limit"] for r in found if "limit" in r] == [20]
    assert "p99 within 20 ms, mysql:5.7.22: 700.0/s; " in figure.description
    assert "mysql:8.0.15: —" in figure.description
    assert_sound(figure)


def test_every_workload_has_its_panel_and_no_search_no_chart() -> None:
    figure = limits([search(), search("oltp_point_select")], SYSTEMS)
    assert figure is not None
    assert len(panels(figure)) == 2
    assert_sound(figure)
    assert limits([], SYSTEMS) is None
