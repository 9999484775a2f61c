"""The engine's record becomes intervals and facts, whole where it is whole."""

from dbdyno._engine import Histogram
from dbdyno.experiment.engine.record import (
    engine_facts,
    engine_facts_unknown,
    intervals_of,
    intervals_told,
)
from dbdyno.measurement.parts import Phase
from support.fakes import blob

INTERVAL = {
    "phase": "measured",
    "start_s": 1.0,
    "end_s": 2.0,
    "events": 100,
    "reads": 1400,
    "writes": 400,
    "others": 200,
    "errors": {"1213": 2},
    "restarts": 2,
    "reconnects": 0,
    "arrivals": 101,
    "backlog": 3,
    "in_flight": 8,
    "silence_ns_max": 7,
    "bytes_received": 10,
    "bytes_sent": 5,
    "latency_ns_sum": 1000,
    "latency_ns_min": 5,
    "latency_ns_max": 20,
}
RECORD = {
    "engine_version": "0.1.0",
    "reactor": "io_uring",
    "threads": 2,
    "distribution": {"name": "uniform"},
    "prepared": True,
    "measured": {"cpu_s": 1.5, "cpu_share_max": 0.4},
}


def test_counts_and_histograms_are_taken_over():
    (interval,) = intervals_of({"intervals": [{**INTERVAL, "histograms": {"event": blob()}}]})
    assert interval.model_dump(mode="json") == INTERVAL
    assert Histogram.decode(interval.histograms["event"]).count() == 100


def test_what_a_newer_engine_tells_besides_is_passed_over():
    (interval,) = intervals_of({"intervals": [{**INTERVAL, "news": 1}]})
    assert interval.events == 100


def test_what_an_older_engine_did_not_tell_is_nothing():
    newer = {"arrivals", "backlog", "in_flight", "silence_ns_max"}
    (interval,) = intervals_of({"intervals": [{k: INTERVAL[k] for k in INTERVAL.keys() - newer}]})
    assert (interval.arrivals, interval.silence_ns_max) == (0, 0)


def test_told_intervals_stand_in_for_a_missing_record():
    told = {"at_s": 3.0, "seconds": 1.0, "phase": "measured", "events": 9, "reads": 1, "writes": 2}
    told |= {"others": 3, "errors": 4, "reconnects": 5, "queries": 6}
    (interval,) = intervals_told([told])
    assert (interval.start_s, interval.end_s, interval.phase) == (2.0, 3.0, Phase.MEASURED)
    assert (interval.events, interval.queries, interval.errors) == (9, 6, {"unknown": 4})
    assert interval.histograms == {}


def test_facts_name_the_distribution_with_its_parameters():
    assert engine_facts(RECORD).distribution == "uniform"
    pareto = {**RECORD, "distribution": {"name": "pareto", "h": 0.2}}
    assert engine_facts(pareto).distribution == "pareto (h=0.2)"
    assert engine_facts(RECORD).cpu_share_max == 0.4
    assert engine_facts_unknown("uniform", True).reactor == "unknown"
