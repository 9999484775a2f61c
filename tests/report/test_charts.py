from __future__ import annotations

import json

from tests.report.made_run import Run

from dbdyno.report.charts import LOOKS, figures


def test_throughput_latency_and_every_workload_have_a_chart(made: Run) -> None:
    drawn = figures(made.plan, made.measurements, made.judgement)
    names = [figure.name for figure in drawn]
    assert names == ["tps-by-threads", "p95-by-threads", "tps-per-second-1"]
    for figure in drawn:
        assert figure.spec["config"] == LOOKS
        assert figure.description.startswith(figure.title)
        json.dumps(figure.spec, allow_nan=False)


def test_without_measurements_there_is_nothing_to_draw(empty: Run) -> None:
    assert figures(empty.plan, [], empty.judgement) == ()
