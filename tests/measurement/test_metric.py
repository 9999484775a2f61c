"""The table of metrics: one row each, and merging parts gives the value of the whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.measurement.measurement import kinds_of, value_of
from dbdyno.measurement.metric import (
    BY_NAME,
    NOPM,
    PRIMARY,
    RATE_AT_LIMIT,
    TABLE,
    Better,
    Metric,
    metrics_of_kinds,
    of_kind,
)
from dbdyno.measurement.parts import Phase
from support import making


def test_names_are_unique_and_end_in_their_unit() -> None:
    assert len(BY_NAME) == len({*TABLE, NOPM, RATE_AT_LIMIT}) == len(TABLE) + 2
    endings = {"1/s": "_per_s", "1/min": "_per_min", "ms": "_ms_", "µs": "_us_"}
    assert [m.name for m in (*TABLE, NOPM, *of_kind("read")) if endings[m.unit] not in m.name] == []
    assert PRIMARY.better is Better.HIGHER


def test_a_percentile_needs_a_hundred_requests_beyond_it() -> None:
    assert BY_NAME["latency_ms_p99"].requests_needed() == 10_000
    assert BY_NAME["latency_ms_p999"].requests_needed() == 100_000
    assert BY_NAME["transactions_per_s"].requests_needed() == 1


@pytest.mark.parametrize("metric", TABLE, ids=lambda metric: metric.name)
@settings(max_examples=20)
@given(cut=st.integers(min_value=1, max_value=9), tps=st.sampled_from([900.0, 1500.0]))
def test_parts_merged_are_the_whole(metric: Metric, cut: int, tps: float) -> None:
    whole = making.measurement(tps=tps)
    measured = [i for i in whole.intervals if i.phase is Phase.MEASURED]
    parts = [
        whole.model_copy(
            update={
                "intervals": tuple(some),
                "window_s": float(len(some)),
                "server": whole.server.model_copy(
                    update={"cpu_s": whole.server.cpu_s * len(some) / len(measured)}
                ),
            }
        )
        for some in (measured[:cut], measured[cut:])
    ]
    of_the_whole = whole.value(metric)
    assert of_the_whole is None or of_the_whole > 0
    assert value_of(parts, metric) == (
        None if of_the_whole is None else pytest.approx(of_the_whole, rel=1e-9)
    )


def test_a_mean_is_not_a_mean_of_means() -> None:
    many = making.measurement(tps=1000.0, latency_ms=8.0)
    few = making.measurement(tps=10.0, latency_ms=800.0)
    average = BY_NAME["latency_ms_avg"]
    assert value_of([many, few], average) == pytest.approx((1000 * 8 + 10 * 800) / 1010, rel=1e-3)


def test_events_that_a_script_calls_by_names_are_counted_apart() -> None:
    plain = making.measurement(tps=1000.0, latency_ms=8.0)
    seen = making.with_kinds(plain, {"payment": 0.4, "new_order": 0.5, "rare": 0.0005})
    assert (kinds_of([plain]), kinds_of([seen])) == ([], ["new_order", "payment", "rare"])
    values = {m.name: value_of([seen, seen], m) for m in metrics_of_kinds(kinds_of([seen]))}
    assert (values["new_orders_per_min"], values["event_kind_payment_per_s"]) == (30_000.0, 400.0)
    assert values["event_kind_new_order_latency_ms_p95"] == pytest.approx(12.5, rel=0.05)
    assert (plain.value(NOPM), values["event_kind_rare_latency_ms_p95"]) == (None, None)


def test_a_kind_of_event_may_have_a_name_that_metrics_have() -> None:
    seen = making.with_kinds(making.measurement(tps=1000.0), {"transactions": 0.5, "queries": 0.1})
    metrics = {m.name: m for m in (*TABLE, *metrics_of_kinds(kinds_of([seen])))}
    assert len(metrics) == len(TABLE) + 4
    assert seen.value(metrics["transactions_per_s"]) == 1000.0
    assert seen.value(metrics["event_kind_transactions_per_s"]) == 500.0
