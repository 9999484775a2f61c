"""Rounds of commits, kill and restart: what is counted, on servers whose memory is known."""

from __future__ import annotations

import re
import threading

import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.experiment import durability
from dbdyno.experiment.durability import prove, sessions
from dbdyno.servers.base import ServerSpec
from support.world import FakeServer, World

SPEC = ServerSpec("a", "mysql:8.0.15")


class Server(FakeServer):
    """A server in whose name rows are kept until it dies."""

    def __init__(self, instance):
        super().__init__(World(), "a")
        self.instance = instance

    def status(self):
        return {"Innodb_os_log_fsyncs": float(len(self.instance.rows))}


class Instance:
    """Rows on a disk; `forgets` of the newest are gone when its server was killed."""

    def __init__(self, forgets=0, refuses=False):
        self.rows, self.forgets, self.refuses = [], forgets, refuses
        self.servers, self.closed, self.lock = [], 0, threading.Lock()

    def open(self, spec, folder, report):
        return self

    def start(self, settings=None):
        if self.servers and self.forgets:
            del self.rows[-self.forgets :]
        self.servers.append(Server(self))
        return self.servers[-1]

    def close(self):
        self.closed += 1


class Session:
    def __init__(self, server):
        self.server = server

    def ask(self, sql):
        instance = self.server.instance
        if not self.server.alive():
            raise ServerError("gone")
        if sql.startswith("INSERT"):
            if instance.refuses:
                raise ServerError("read only")
            with instance.lock:
                row = re.search(r"\((\d+), (\d+), (\d+)\)", sql)
                instance.rows.append(tuple(map(int, row.groups())))
            return []
        if sql.startswith("SELECT"):
            last, turn, client = map(int, re.findall(r"(?:<=|=) (\d+)", sql))
            own = [place for t, c, place in instance.rows if (t, c) == (turn, client)]
            return [(str(len(own)), str(sum(place <= last for place in own)))]
        return []

    def close(self):
        pass


@pytest.fixture(autouse=True)
def _sessions(monkeypatch):
    monkeypatch.setattr(
        durability, "sessions", lambda server, count: [Session(server) for _ in range(count)]
    )


def proved(instance, tmp_path, **more):
    asked = {"kills": 2, "connections": 3, "load_s": 0.2, **more}
    reports = []
    seen = prove(SPEC, tmp_path, reports.append, open_instance=instance.open, **asked)
    return seen, reports


def test_every_answered_row_of_every_round_is_looked_for(tmp_path):
    instance = Instance()
    seen, reports = proved(instance, tmp_path)
    assert (seen.system, seen.version, seen.connections) == ("a", "8.0.15-fake", 3)
    assert len(seen.kills) == 2
    for kill in seen.kills:
        assert kill.acknowledged == kill.kept > 0
        assert kill.unanswered <= 3
        assert 0 < kill.counted <= kill.acknowledged
        assert kill.server_flushes > 0
    assert seen.kills[1].load_s > seen.kills[0].load_s >= 0.2
    assert reports[0] == "a: round 1 of 2: commits, then SIGKILL"


def test_servers_die_by_sigkill_and_none_is_left(tmp_path):
    instance = Instance()
    proved(instance, tmp_path)
    assert [server.alive() for server in instance.servers] == [False] * 3
    assert [server.killed for server in instance.servers] == [1, 1, 0]
    assert instance.servers[-1].stopped == instance.closed == 1


def test_rows_that_are_gone_after_the_kill_are_counted_as_lost(tmp_path):
    seen, _ = proved(Instance(forgets=40), tmp_path, kills=1)
    (kill,) = seen.kills
    assert 40 - 3 <= kill.acknowledged - kill.kept <= 40


def test_rows_of_an_earlier_round_that_vanish_later_are_lost_too(tmp_path):
    class Late(Instance):
        def start(self, settings=None):
            if len(self.servers) == 2:
                self.rows.remove((0, 0, 1))
            return super().start(settings)

    first, second = proved(Late(), tmp_path)[0].kills
    assert first.kept == first.acknowledged
    assert second.kept == second.acknowledged - 1


def test_a_server_that_takes_no_commit_is_an_error_and_is_closed(tmp_path):
    instance = Instance(refuses=True)
    with pytest.raises(ServerError, match="took no commit"):
        proved(instance, tmp_path)
    assert instance.closed == 1
    assert all(not server.alive() for server in instance.servers)


@pytest.mark.parametrize(
    "reference", ["mysql://root@127.0.0.1:3306/x", f"container:mysql@sha256:{64 * '0'}"]
)
def test_only_processes_of_our_own_are_killed(reference, tmp_path):
    with pytest.raises(UsageError, match="that it has started as processes itself"):
        prove(ServerSpec("x", reference), tmp_path, lambda text: None)
    assert list(tmp_path.iterdir()) == []


# Sessions for single commits.


def test_a_server_that_is_gone_is_an_error_without_the_password(server):
    (session,) = sessions(server, 1)
    with pytest.raises(ServerError) as raised:
        session.ask("SELECT 1")
    session.close()
    assert server.credentials.password not in str(raised.value)
