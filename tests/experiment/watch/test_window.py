"""The server's counters are read at the window's edges, as the engine's intervals place them."""

import os

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment.watch import proc
from dbdyno.experiment.watch import window as room
from dbdyno.experiment.watch.proc import Switches
from dbdyno.experiment.watch.threads import ThreadReading
from dbdyno.experiment.watch.window import WindowCounters
from dbdyno.measurement.parts import ThreadWork
from support.world import FakeServer


@pytest.fixture
def clock(world):
    """Time passes when a test says so: a busy machine lets it pass between any two lines."""
    return world.clock


def test_nothing_is_read_before_the_first_interval(server):
    window = WindowCounters(server, warmup_s=5, window_s=10)
    window.read_if_due()
    assert window.seconds_to_edge() is None
    assert server.readings == 0


def test_the_edges_are_read_when_they_are_due(server):
    window = WindowCounters(server, warmup_s=5, window_s=10)
    window.interval_ended(4.0)
    window.read_if_due()
    assert server.readings == 0
    assert window.seconds_to_edge() == pytest.approx(1.0)
    window.interval_ended(5.0)
    window.read_if_due()
    assert server.readings == 1
    server.questions += 2000
    window.interval_ended(15.0)
    window.read_if_due()
    window.read_if_due()
    assert server.readings == 2
    assert window.status() == {"Questions": 2000.0, "Uptime": 0.0}
    assert window.seconds_to_edge() is None


def test_the_message_with_the_least_delay_places_the_origin(server, clock):
    window = WindowCounters(server, warmup_s=5, window_s=10)
    first_s = clock.now_s
    window.interval_ended(2.0)
    clock.now_s += 0.05
    window.interval_ended(2.0)
    assert window.origin_s == first_s - 2.0


def test_the_readings_times_are_told_in_seconds_of_load(server, monkeypatch, clock):
    window = WindowCounters(server, warmup_s=5, window_s=10)
    assert window.read_at_s() == ()
    status = server.status

    def slow():
        clock.now_s += 0.2
        return status()

    monkeypatch.setattr(server, "status", slow)
    window.interval_ended(5.0)
    window.read_if_due()
    window.interval_ended(
        15.0
    )  # the lab was let wait: it hears of the load's tenth second only now
    window.read_if_due()
    # by the second message the load had begun ten seconds earlier than the first one said
    assert window.read_at_s() == pytest.approx((14.8, 15.0, 15.0, 15.2))


def test_switches_are_counted_from_the_question_not_from_a_late_answer(server, monkeypatch, clock):
    class TenASecond:
        def __init__(self, pid):
            self.first_s = None

        def read(self):
            self.first_s = self.first_s or clock.now_s
            self.total = Switches(round((clock.now_s - self.first_s) * 10), 0)
            return self.total

    late_s = iter([6.0, 0.0])

    def status():
        clock.now_s += next(late_s)
        return {}

    monkeypatch.setattr(room, "SwitchCounter", TenASecond)
    monkeypatch.setattr(server, "status", status)
    window = WindowCounters(server, warmup_s=0, window_s=10)  # asked at 0 s, answered at 6 s
    clock.now_s += 4.0
    window.interval_ended(10.0)
    window.read_if_due()
    assert window.read_at_s() == (0.0, 6.0, 10.0, 10.0)
    assert window.process().switches == 100


def test_switches_of_sessions_that_ended_before_the_last_reading_are_kept(
    server, monkeypatch, clock
):
    seen = iter([{1: Switches(5, 0)}, {1: Switches(95, 0)}, {2: Switches(1, 0)}])
    monkeypatch.setattr(proc, "_threads", lambda pid: next(seen).items())
    window = WindowCounters(server, warmup_s=0, window_s=10)
    for at_s in (9.0, 10.0):
        clock.now_s += 5.0
        window.interval_ended(at_s)
        window.read_if_due()
    assert window.process().switches == 91


def test_without_warm_up_the_first_reading_comes_before_the_load(server):
    window = WindowCounters(server, warmup_s=0, window_s=10)
    assert server.readings == 1
    server.questions += 2000
    window.close()
    assert window.status()["Questions"] == 2000.0


def test_a_window_that_never_began_has_no_counters(server):
    window = WindowCounters(server, warmup_s=5, window_s=10)
    window.close()
    assert (window.status(), window.cpu_s()) == ({}, 0.0)


def test_a_dead_server_is_trouble_not_an_exception(server):
    window = WindowCounters(server, warmup_s=1, window_s=1)
    server.kill()
    window.interval_ended(1.0)
    window.read_if_due()
    window.close()
    assert "counters could not be read" in window.error
    assert window.seconds_to_edge() is None
    assert window.status() == {}


def test_replication_is_read_at_the_edges_of_a_server_that_has_replicas(server, monkeypatch):
    acknowledged = iter([100.0, 450.0])
    monkeypatch.setattr(FakeServer, "pids", (1, 2), raising=False)
    monkeypatch.setattr(FakeServer, "catch_up", lambda self, cap_s: 0.0, raising=False)
    reading = {"commits_acknowledged": 0.0, "semisync_on": 1.0}
    monkeypatch.setattr(
        FakeServer,
        "replication",
        lambda self: {**reading, "commits_acknowledged": next(acknowledged)},
        raising=False,
    )
    window = WindowCounters(server, warmup_s=0, window_s=10)
    assert window.replication() == {}
    window.interval_ended(10.0)
    window.read_if_due()
    assert window.replication() == {"commits_acknowledged": 350.0, "semisync_on": 1.0}


def test_a_server_without_replicas_has_nothing_to_tell_of_them(server):
    window = WindowCounters(server, warmup_s=0, window_s=10)
    window.interval_ended(10.0)
    window.read_if_due()
    assert window.replication() == {}


def test_a_session_that_ended_while_the_server_added_up_is_counted_once(server, monkeypatch, clock):
    counts = iter([1000.0, 5000.0, 3000.0])  # the second has 2000 twice
    monkeypatch.setattr(server, "status", lambda: {"Questions": next(counts)})
    window = WindowCounters(server, warmup_s=5, window_s=10)
    for at_s in (5.0, 15.0):
        window.interval_ended(at_s)
        window.read_if_due()
    assert window.status() == {"Questions": 4000.0}
    clock.now_s += 0.05
    window.close()
    assert window.status() == {"Questions": 2000.0}
    assert window.read_at_s()[2] == pytest.approx(15.05)


def test_a_server_without_a_sum_of_statements_is_not_asked_again(server, monkeypatch):
    answers = iter([{"database.xact_commit": 1.0}, {"database.xact_commit": 5.0}])
    monkeypatch.setattr(server, "status", lambda: next(answers))
    window = WindowCounters(server, warmup_s=5, window_s=10)
    for at_s in (5.0, 15.0):
        window.interval_ended(at_s)
        window.read_if_due()
    window.close()
    assert window.status() == {"database.xact_commit": 4.0}


def test_what_was_counted_later_is_none_of_the_window(server):
    window = WindowCounters(server, warmup_s=5, window_s=10)
    for at_s in (5.0, 15.0):
        window.interval_ended(at_s)
        window.read_if_due()
    before = window.status(), window.read_at_s()
    window.close()
    assert (window.status(), window.read_at_s()) == before


def test_a_server_that_is_gone_after_the_window_takes_nothing_away(server, monkeypatch):
    window = WindowCounters(server, warmup_s=5, window_s=10)
    for at_s in (5.0, 15.0):
        window.interval_ended(at_s)
        window.read_if_due()

    def gone():
        raise ServerError("gone", wanted="counters", found="nothing", hint="")

    monkeypatch.setattr(server, "status", gone)
    before = window.status()
    window.close()
    assert (window.status(), window.error) == (before, None)


@pytest.fixture
def thread_readings(server, monkeypatch, clock):
    """The moments at which the threads of a server on this machine were read."""
    server.pid = os.getpid()
    read_at_s = []

    def read(pid, ready_s):
        read_at_s.append(clock.now_s)
        return {7: ThreadReading("connection", 200 * len(read_at_s), 100, None)}

    monkeypatch.setattr(room, "read_threads", read)
    return read_at_s


def measure(window, clock):
    """The load's time, from its first second to the last reading."""
    window.interval_ended(1.0)
    while (left_s := window.seconds_to_edge()) is not None:
        clock.now_s += max(0.0, left_s)
        window.read_if_due()


def test_threads_are_read_while_the_loads_sessions_are_there(server, thread_readings, clock):
    window = WindowCounters(server, warmup_s=5, window_s=10)
    measure(window, clock)
    begin_s = window.origin_s
    assert thread_readings == pytest.approx([begin_s + 4.9, begin_s + 14.9])
    assert window.read_at_s() == pytest.approx((5.0, 5.0, 15.0, 15.0))
    work = ThreadWork(user_s=200 / proc.TICKS_PER_S, system_s=0.0)
    assert window.threads() == {"connection": work}


def test_without_warm_up_threads_are_first_read_before_the_load(server, thread_readings, clock):
    window = WindowCounters(server, warmup_s=0, window_s=10)
    assert len(thread_readings) == 1
    measure(window, clock)
    assert thread_readings[1] == pytest.approx(window.origin_s + 9.9)
    assert window.threads().keys() == {"connection"}


def test_threads_that_are_dear_to_read_are_read_once(server, monkeypatch, thread_readings, clock):
    read = room.read_threads

    def read_slowly(pid, ready_s):
        clock.now_s += 0.2
        return read(pid, ready_s)

    monkeypatch.setattr(room, "read_threads", read_slowly)
    window = WindowCounters(server, warmup_s=5, window_s=10)
    measure(window, clock)
    assert (len(thread_readings), window.threads()) == (1, {})
    assert server.readings == 2


@pytest.mark.parametrize(("waited_s", "groups"), [(8.95, {"connection"}), (9.1, set())])
def test_threads_are_dropped_if_they_are_read_after_the_window(
    server, thread_readings, clock, waited_s, groups
):
    window = WindowCounters(server, warmup_s=5, window_s=10)
    window.interval_ended(6.0)  # late for the first edge too, at which all sessions are there
    window.read_if_due()
    for step_s in (waited_s, 0.1):
        clock.now_s += step_s
        window.read_if_due()
    assert (len(thread_readings), server.readings) == (2, 2)
    assert window.threads().keys() == groups


def test_a_window_that_was_cut_short_or_a_server_elsewhere_has_no_threads(
    server, thread_readings, clock
):
    window = WindowCounters(server, warmup_s=0, window_s=10)
    window.close()
    assert window.status() != {}
    assert window.threads() == {}
    server.pid = 0
    window = WindowCounters(server, warmup_s=0, window_s=10)
    measure(window, clock)
    assert (len(thread_readings), window.threads()) == (1, {})


def test_the_begin_of_the_window_is_told_once_with_the_seconds_left(server, clock):
    told = []
    window = WindowCounters(server, 5, 10, lambda at_s, left_s: told.append((at_s, left_s)))
    clock.now_s += 6.0
    window.interval_ended(6.0)
    assert told == []
    for _ in range(2):
        window.read_if_due()
        clock.now_s += 9.0
    window.close()
    assert told == [(6.0, 9.0)]
    WindowCounters(server, 0, 10, lambda at_s, left_s: told.append((at_s, left_s)))
    assert told[1:] == [(0.0, 10.0)]
