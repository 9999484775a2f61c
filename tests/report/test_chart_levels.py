from __future__ import annotations

import pytest
from tests import making
from tests.report.made_run import Run, run

from dbdyno.metric import PRIMARY
from dbdyno.plan import cells
from dbdyno.report.chart_levels import over_threads
from dbdyno.report.parts import Figure


def chart(made: Run) -> Figure:
    systems = [system.label for system in made.plan.systems]
    figure = over_threads("tps", "Throughput", PRIMARY, cells(made.plan), systems, made.judgement)
    assert figure is not None
    return figure


def test_the_points_are_the_judgements_values_with_their_intervals(made: Run) -> None:
    figure = chart(made)
    (rows,) = figure.spec["datasets"].values()
    judged = [value for value in made.judgement.values if value.metric == PRIMARY.name]
    assert [(r["value"], r["low"], r["high"]) for r in rows] == [
        (v.value, v.low, v.high) for v in judged
    ]
    assert [row["place"] for row in rows] == pytest.approx([-0.035, 0.035, 0.965, 1.035])
    assert "8 threads, mysql:8.0.15: 772.5" in figure.description


def test_throughput_begins_at_zero_in_every_layer(made: Run) -> None:
    for layer in chart(made).spec["layer"]:
        assert layer["encoding"]["y"]["scale"]["zero"] is True


def test_workloads_get_panels_of_their_own() -> None:
    plan = making.plan(workloads=("oltp_read_write", "oltp_point_select"))
    both = [making.measurement(workload=workload.label) for workload in plan.workloads]
    spec = chart(run(plan, both)).spec
    assert spec["facet"]["sort"] == ["oltp_read_write", "oltp_point_select"]
    assert spec["resolve"]["scale"]["y"] == "independent"
