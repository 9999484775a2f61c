"""A process that is watched and ended, the port it gets, and the tails of its logs."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from unittest.mock import Mock

import pytest

from dbdyno.errors import ServerError
from dbdyno.files import make_temporary
from dbdyno.servers import process
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.local import server as local_server
from dbdyno.servers.local.server import (
    PortTakenError,
    Site,
    StartedServer,
    printed_log,
)
from dbdyno.servers.reference import find
from support.scripted_server import scripted

OURS = ("/data", "3999")


class Product(StartedServer):
    """A product that is a shell script and answers as it is told."""

    stop_signal = signal.SIGTERM
    ready = True
    answers: tuple[str, ...] = OURS
    pid_written = ""
    logged_out = 0

    def prove(self):
        raise ServerError("it took another setting")

    def _try_login(self):
        return self.ready

    def _log_out(self):
        self.logged_out += 1

    def _identity(self):
        return OURS, self.answers, self.pid_written or str(self.pid)

    def _log_of_start(self):
        return self.last_words()


@pytest.fixture
def made(tmp_path):
    work = tmp_path / "server"
    work.mkdir()
    with scripted() as start:

        def make(script="exec sleep 60", socket=None):
            site = Site("fast", find("mysql:8.0.15"), Path("/home-of-it"), work, None, {})
            endpoint = Endpoint("127.0.0.1", 3999, socket or work / "my.sock")
            return Product(site, start(script), endpoint, Credentials("dbdyno", "bb"))

        yield make


def waits(trap: str) -> str:
    return f"trap '{trap}' TERM; echo ready; while :; do sleep 0.02; done"


@pytest.mark.parametrize(("answers", "pid"), [(("/other", "3999"), ""), (OURS, "1")])
def test_the_one_who_answers_must_be_the_process_started(made, answers, pid):
    server = made()
    server.wait_ready()
    server.answers, server.pid_written = answers, pid
    with pytest.raises(ServerError, match="another server answered") as caught:
        server.wait_ready()
    assert caught.value.wanted == f"pid {server.pid}, /data, 3999"
    assert caught.value.found == f"pid {pid or server.pid}, {', '.join(answers)}"


@pytest.mark.parametrize(
    ("log", "kind", "wanted", "found"),
    [
        ("unknown variable", ServerError, None, "unknown variable"),
        ("Bind on port: Address already in use", PortTakenError, "port 3999", "taken by "),
    ],
)
def test_a_start_that_fails_quotes_the_log_unless_the_port_is_taken(
    made, tmp_path, log, kind, wanted, found
):
    server = made("exit 1")
    server.ready = False
    printed_log(tmp_path / "server").write_text(f"{log}\n")
    with pytest.raises(ServerError, match=r"did not start \(exit code 1\)") as caught:
        server.wait_ready()
    assert type(caught.value) is kind
    assert caught.value.wanted == wanted
    assert (caught.value.found or "").startswith(found)


def test_a_server_that_cannot_be_proven_is_killed(made):
    server = made()
    with pytest.raises(ServerError, match="another setting"):
        server.wait_proven()
    assert not server.alive()


def test_a_server_that_never_answers_is_given_up(made, monkeypatch):
    monkeypatch.setattr("dbdyno.servers.local.server.START_S_MAX", 0.05)
    server = made()
    server.ready = False
    with pytest.raises(ServerError, match="did not answer within"):
        server.wait_ready()


def test_stopping_waits_for_a_clean_end_and_may_be_asked_twice(made, tmp_path):
    short = make_temporary() / "s"
    short.mkdir()
    server = made(waits("exit 0"), socket=short / "my.sock")
    server.stop()
    assert server.stopped_cleanly
    assert not server.alive()
    assert server.logged_out == 1
    assert not short.exists()  # the socket's own folder
    assert server.stop() is None


def test_an_unclean_end_is_an_error_with_the_last_words(made, tmp_path):
    server = made(waits("exit 3"))
    printed_log(tmp_path / "server").write_text("something broke\n")
    with pytest.raises(ServerError, match=r"did not stop cleanly \(exit code 3\)") as caught:
        server.stop()
    assert caught.value.found == "something broke"
    assert not server.stopped_cleanly


def test_a_server_that_ended_by_itself_is_an_error(made, tmp_path):
    short = make_temporary() / "s"
    short.mkdir()
    server = made("kill -9 $$", socket=short / "my.sock")
    server._running.wait()
    with pytest.raises(ServerError, match=r"had ended before it was stopped \(SIGKILL\)"):
        server.stop()
    assert not short.exists()


def test_a_server_that_will_not_stop_is_killed(made):
    server = made(waits(""))
    with pytest.raises(ServerError, match="did not stop within 0 s and was killed"):
        server.stop(patience_s=0.05)
    assert not server.alive()


def site(**asked: str) -> Site:
    return Site("pg", find("postgres:18.6"), Path("/home-of-it"), Path("/work"), None, asked)


def test_a_port_of_the_settings_is_kept_to(monkeypatch):
    monkeypatch.setattr(process, "port_is_free", lambda port: True)
    assert local_server.on_a_port(site(port="4711"), lambda port: port) == 4711


def test_one_that_is_taken_says_who_wanted_what():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(ServerError) as caught:
            local_server.on_a_port(site(port=str(port)), lambda port: port)
    assert caught.value.message == f"pg: its settings want port {port}, which is taken"
    assert "for pg (postgres:18.6)" in (caught.value.wanted or "")
    assert "held by" in (caught.value.found or "")


@pytest.mark.parametrize("port", ["many", "0", "70000", "\u00b2", "9" * 5000])
def test_a_port_that_is_no_port_is_refused(port):
    with pytest.raises(ServerError, match="not a port number"):
        local_server.on_a_port(site(port=port), lambda port: port)


def test_a_port_lost_in_a_race_is_chosen_again_but_not_for_ever():
    start_on = Mock(side_effect=[PortTakenError("taken")] * 2 + ["server"])
    assert local_server.on_a_port(site(), start_on) == "server"
    assert start_on.call_count == 3
    start_on = Mock(side_effect=PortTakenError("taken"))
    with pytest.raises(PortTakenError):
        local_server.on_a_port(site(), start_on)
    assert start_on.call_count == local_server.PORT_ATTEMPTS


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "server"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("printed", "logged", "errors", "last"),
    [
        (None, None, "it left no log", ""),
        (None, "[Note] a\n[ERROR] unknown x\n\n[Note] b\n", "[ERROR] unknown x", "[Note] b"),
        ("printed\n", "logged\n", "printed\nlogged", "logged"),
        (None, "x" * 1_000_000 + "\n[ERROR] last\n", "[ERROR] last", "[ERROR] last"),
    ],
    ids=["no log", "errors before chatter", "both logs", "a huge log's end"],
)
def test_of_logs_the_errors_or_the_last_lines_are_given(work, printed, logged, errors, last):
    for log, text in ((local_server.printed_log(work), printed), (work / "err.log", logged)):
        if text:
            log.write_text(text)
    assert local_server.error_lines(work) == errors
    assert local_server.last_lines(work, 1) == last


def test_a_log_that_the_servers_user_made_a_link_is_not_read(work, tmp_path):
    (tmp_path / "shadow").write_text("root:secret\n")
    (work / "err.log").symlink_to(tmp_path / "shadow")
    local_server.printed_log(work).write_text("printed\n")
    assert local_server.last_lines(work).splitlines() == [
        "printed",
        "[ERROR] err.log is not shown: Too many levels of symbolic links",
    ]
