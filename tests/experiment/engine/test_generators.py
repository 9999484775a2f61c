"""Several generator processes are one load: dealt out without a rest, begun together, added up."""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
import time

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno import _engine
from dbdyno.errors import LoadError
from dbdyno.experiment.engine.generators import added, merged, told_of
from dbdyno.experiment.engine.process import EngineProcess

SERVICE_S = 0.02
CONNECTIONS = 7


def spec(server, generators, **others):
    user, password, database = server.login
    return {
        "endpoint": {"host": "127.0.0.1", "port": server.port},
        **{"user": user, "password": password, "database": database},
        **({"generators": generators} if generators > 1 else {}),
        "workload": {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 100}},
        **{"connections": CONNECTIONS, "threads": 0, "warmup_s": 0.2, "window_s": 0.8},
        **{"interval_s": 0.2, "seed": 3, "seeding": "streams", "percentiles": [50, 95.5]},
        **others,
    }


def total(record, name):
    return sum(one[name] for one in record["intervals"])


def test_three_processes_do_what_one_does_at_a_known_server():
    server, told = _engine.Reference("fixed", SERVICE_S), []
    with EngineProcess("run", spec(server, 3)) as engine:
        while (message := engine.message()).kind == "interval":
            told.append(message.value)
    record, asked = message.value, server.truth()[0].count()
    assert (record["generators"], record["connections"]) == (3, CONNECTIONS)
    assert record["threads"] == CONNECTIONS, "a thread for each connection"
    assert total(record, "events") == total(record, "reads") == asked
    phases = [one["phase"] for one in record["intervals"]]
    assert phases[:5] == ["warmup", *["measured"] * 4]
    # Seven connections of 20 ms each: 350 a second at most, less what a busy machine takes.
    measured = [one for one in record["intervals"] if one["phase"] == "measured"]
    assert 0.2 * 350 < sum(one["events"] for one in measured) / 0.8 <= 1.03 * 350
    for one in record["intervals"]:
        assert counts(one).count() == one["events"]
    assert [one["events"] for one in told[:5]] == [one["events"] for one in record["intervals"][:5]]
    assert told[2]["latency_ms"]["50"] >= SERVICE_S * 1000
    assert set(told[2]["latency_ms"]) == {"50", "95.5"}


def test_the_due_times_of_a_rate_are_those_of_one_generator():
    arrivals = []
    for generators in (1, 4):
        server = _engine.Reference("fixed", 0.001)
        asked = spec(server, generators, rate_per_s=300, arrival="poisson")
        with EngineProcess("run", asked) as engine:
            record = engine.answer()
        measured = [one for one in record["intervals"] if one["phase"] != "drain"]
        arrivals.append([one["arrivals"] for one in measured])
    assert arrivals[0] == arrivals[1]
    assert sum(arrivals[0]) > 200


def test_a_generator_that_dies_ends_the_load_and_leaves_nobody():
    server = _engine.Reference("fixed", SERVICE_S)
    with EngineProcess("run", spec(server, 3, window_s=60)) as engine:
        engine.message()
        children = psutil.Process(engine.pid).children()
        assert len(children) == 3
        os.kill(children[1].pid, signal.SIGKILL)
        with pytest.raises(LoadError, match=r"generator \d of 3 died"):
            engine.answer()
        psutil.wait_procs(children, timeout=30)
        assert not any(child.is_running() for child in children)


def test_no_generator_outlives_the_lab_s_child():
    server = _engine.Reference("fixed", SERVICE_S)
    engine = EngineProcess("run", spec(server, 2, window_s=60))
    engine.message()
    children = psutil.Process(engine.pid).children()
    engine.close()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


def test_a_stop_gives_the_record_so_far():
    server = _engine.Reference("fixed", SERVICE_S)
    with EngineProcess("run", spec(server, 2, window_s=60)) as engine:
        engine.message()
        _, final = engine.drain()
    assert final is not None
    assert final.value["stopped_by"] == "stop"
    assert total(final.value, "events") > 0


def test_one_that_cannot_go_on_ends_the_others_too():
    """The server goes away under all of them: the first to notice says why."""
    server = _engine.Reference("fixed", SERVICE_S)
    with EngineProcess("run", spec(server, 2, window_s=60)) as engine:
        engine.message()
        del server
        record = engine.answer()
    assert record["failure"]["code"] in (2006, 2013)
    assert total(record, "events") > 0


def test_a_refused_login_is_told_as_by_one():
    server = _engine.Reference("fixed", SERVICE_S)
    asked = {**spec(server, 2), "password": "wrong"}
    with EngineProcess("run", asked) as engine, pytest.raises(LoadError) as caught:
        engine.answer()
    assert "to log in" in str(caught.value)


def test_generators_begin_together_although_one_connects_late():
    """One that is stopped while the others log in holds all back."""
    server = _engine.Reference("fixed", SERVICE_S)
    with EngineProcess("run", spec(server, 2, window_s=0.6)) as engine:
        own = psutil.Process(engine.pid)
        while not own.children():
            time.sleep(0.001)
        (late, *_) = own.children()
        late.suspend()
        threading.Timer(1.0, late.resume).start()
        record = engine.answer()
    by_interval = [one["in_flight"] for one in record["intervals"] if one["phase"] != "drain"]
    assert set(by_interval[1:-1]) == {CONNECTIONS}


def counts(interval, name="event"):
    blob = interval["histograms"].get(name)
    return _engine.Histogram.decode(base64.b64decode(blob)) if blob else _engine.Histogram()


def interval(latencies, start_s=0.0, phase="measured", **others):
    histogram = _engine.Histogram()
    for latency in latencies:
        histogram.record(latency)
    zero = dict.fromkeys(("writes", "others", "restarts", "reconnects", "arrivals", "backlog"), 0)
    return {
        **{"phase": phase, "start_s": start_s, "end_s": start_s + 1, **zero, "errors": {}},
        **{"events": len(latencies), "reads": len(latencies), "in_flight": 1},
        **{"bytes_received": 1, "bytes_sent": 1, "silence_ns_max": 0},
        "latency_ns_sum": sum(latencies),
        "latency_ns_min": min(latencies, default=0),
        "latency_ns_max": max(latencies, default=0),
        "histograms": {"event": base64.b64encode(histogram.encode()).decode()} if latencies else {},
        **others,
    }


LATENCIES = st.lists(st.integers(1, 10**10), max_size=20)


@given(st.lists(LATENCIES, min_size=1, max_size=4))
def test_percentiles_are_those_of_all_requests(dealt):
    together = added([interval(latencies) for latencies in dealt])
    whole = interval([latency for latencies in dealt for latency in latencies])
    assert counts(together).recorded() == counts(whole).recorded()
    for name in ("events", "latency_ns_sum", "latency_ns_min", "latency_ns_max"):
        assert together[name] == whole[name]
    asked = {"percentiles": [99]}
    assert told_of(together, asked)["latency_ms"] == told_of(whole, asked)["latency_ms"]
    assert "record" not in told_of(whole, asked)
    assert told_of(together, {**asked, "tell_records": True})["record"] == together


@pytest.mark.parametrize(
    ("silences_ns", "silence_ns"),
    [
        ([700, 2, 3], 2),  # one waited while the others were answered
        ([700, 710, 0], 700),  # all waited, and one longer than this interval
        ([0, 0], 0),
    ],
)
def test_a_silence_is_one_of_all_generators(silences_ns, silence_ns):
    together = added([interval([5], silence_ns_max=one) for one in silences_ns])
    assert together["silence_ns_max"] == silence_ns


def test_errors_are_added_by_code_and_slices_by_their_time():
    one = interval([5], errors={"1213": 2})
    two = interval([], errors={"1213": 1, "1205": 1})
    late = interval([7], start_s=1.0, phase="drain")
    ended = {"unfinished": 1, "unserved": 2, "threads": 1, "connections": 2}
    cpu = {"measured": {"cpu_s": 0.5, "cpu_share_max": 0.25}, "failure": None, "fairness": {}}
    record = merged(
        [{**ended, **cpu, "intervals": [one, late]}, {**ended, **cpu, "intervals": [two]}]
    )
    assert record["intervals"][0]["errors"] == {"1213": 3, "1205": 1}
    assert [i["phase"] for i in record["intervals"]] == ["measured", "drain"]
    assert record["measured"] == {"cpu_s": 1.0, "cpu_share_max": 0.25}
    assert (record["unfinished"], record["connections"]) == (2, 4)
    assert "fairness" not in record
    assert json.dumps(record)
