"""Where the page listens, how many connections it bears, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread, Timer

import pytest

from dbdyno.errors import UsageError
from dbdyno.language.catalogues import Language
from dbdyno.serve import server
from dbdyno.serve.server import PageServer, address, listen
from dbdyno.store.store import Store
from support.made_workspace import stored_run
from support.source import LAB, ROOT


def test_a_free_port_is_found_and_named() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert address(listening) == f"http://127.0.0.1:{port}/"
        with pytest.raises(UsageError, match="cannot be served there") as caught:
            listen("127.0.0.1", port)
    assert f"port {port}" in str(caught.value)
    assert "--port" in str(caught.value)


def test_an_address_of_the_other_kind_is_written_as_browsers_want_it() -> None:
    with listen("::1", 0) as listening:
        assert address(listening).startswith("http://[::1]:")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "lab.example", "10.0.0..1", ""])
def test_other_machines_are_sent_to_a_tunnel(host: str) -> None:
    with pytest.raises(UsageError, match="on this machine only") as caught:
        listen(host, 0)
    assert "ssh -L" in str(caught.value)


@contextmanager
def serving(workspace: Path) -> Iterator[tuple[str, int]]:
    """The address of a server in this process."""
    pages = PageServer(workspace, Language.EN)
    pages.ending = Timer(60, lambda: None)  # no test ends pytest
    with listen("127.0.0.1", 0) as listening:
        thread = Thread(target=pages.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()
        finally:
            pages.should_exit = True
            thread.join(timeout=5)
            assert not thread.is_alive()
            pages.ending.cancel()


def head(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def is_closed(connection: socket.socket) -> bool:
    """Whether it is, once all is read that was sent."""
    try:
        while connection.recv(2**20, socket.MSG_DONTWAIT):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def closed(connections: list[socket.socket], count: int) -> list[bool]:
    """Which connections are closed, once `count` are, or after two seconds."""
    ends = time.monotonic() + 2
    while sum(states := [is_closed(one) for one in connections]) < count:
        if time.monotonic() > ends:
            break
        time.sleep(0.01)
    return states


@pytest.mark.parametrize("begins", [b"GET / HTTP/1.1\r\nHost: loc", head("/static/charts.js")])
def test_connections_that_only_wait_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: bytes
) -> None:
    """Half a head, or an answer that is not read, keeps nobody out."""
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 4)
    monkeypatch.setattr("dbdyno.report.formats.html.program", lambda: "x" * 10**7)
    with serving(tmp_path) as place, ExitStack() as stack:
        waiting = []
        for _ in range(6):
            waiting.append(stack.enter_context(socket.create_connection(place)))
            waiting[-1].sendall(begins)
            time.sleep(0.02)
        reader = stack.enter_context(socket.create_connection(place))
        reader.sendall(head("/static/page.css"))
        assert reader.recv(12) == b"HTTP/1.1 200"
        assert sum(closed(waiting, 3)) >= 3


def test_half_a_head_has_a_time_limit_however_it_trickles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_S", 0.2)
    with serving(tmp_path) as place:
        for before in (b"", head("/static/page.css")):
            with socket.create_connection(place) as slow:
                slow.sendall(before + b"GET /")
                ends = time.monotonic() + 2
                with suppress(ConnectionResetError, BrokenPipeError):
                    while time.monotonic() < ends:
                        slow.sendall(b"x")
                        time.sleep(0.02)
                assert time.monotonic() < ends


def test_a_stream_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    run_id = stored_run(tmp_path, trials=0)
    with (
        Store.open(tmp_path) as store,
        store.locked(run_id),
        serving(tmp_path) as place,
        socket.create_connection(place) as stream,
    ):
        stream.sendall(head(f"/runs/{run_id}/events"))
        assert stream.recv(12) == b"HTTP/1.1 200"
        stream.setblocking(False)
        left = stream.detach()  # open beyond the server's end
    os.close(left)


ENDLESS = """
import time
from dbdyno.__main__ import main
from dbdyno.serve import server
from dbdyno.serve.runs import Runs
server.ENDING_S = 0.3
def judged(*_):
    print("drawing", flush=True)
    time.sleep(60)
Runs.judged = judged
raise SystemExit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_while_it_draws_and_streams(tmp_path: Path, number: int) -> None:
    run_id = stored_run(tmp_path, trials=0)
    command = [sys.executable, "-c", ENDLESS, "serve", "--port", "0", "--workspace", str(tmp_path)]
    with (
        Store.open(tmp_path) as store,
        store.locked(run_id),
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(LAB.parent)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        port = int(process.stdout.readline().rpartition(":")[2].strip("/\n"))
        with (
            socket.create_connection(("127.0.0.1", port)) as stream,
            socket.create_connection(("127.0.0.1", port)) as drawing,
        ):
            stream.sendall(head(f"/runs/{run_id}/events"))
            assert stream.recv(12) == b"HTTP/1.1 200"
            drawing.sendall(head(f"/runs/{run_id}"))
            assert process.stdout.readline() == "drawing\n"
            process.send_signal(number)
            assert process.wait(timeout=2) == 0
            assert process.stderr.read() == "Ctrl-C closes it\n"
