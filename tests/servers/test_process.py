import os
import pwd
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers import process
from support.lab_process import lives, until


def test_a_server_runs_in_its_folder_with_a_small_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MYSQL_PWD", "secret")
    printed = tmp_path / "printed"
    running = process.spawn(["/bin/sh", "-c", "pwd; env"], tmp_path, None, printed)
    assert running.wait(30) == 0
    text = printed.read_text()
    assert text.splitlines()[0] == str(tmp_path)
    assert "LC_ALL=C" in text
    assert "secret" not in text


def test_of_a_program_run_to_its_end_the_last_it_prints_is_kept(monkeypatch):
    monkeypatch.setattr(process, "OUTPUT_BYTES_MAX", 1000)
    script = "echo first; head -c 100000 /dev/zero | tr '\\0' x; echo last; echo wrong >&2; exit 3"
    ended = process.run(["/bin/sh", "-c", script], 30)
    assert (ended.returncode, ended.stderr) == (3, "wrong\n")
    assert len(ended.stdout) == 1000
    assert ended.stdout.endswith("xxlast\n")
    merged = process.run(["/bin/sh", "-c", "echo a; echo b >&2; echo c"], 30, merged=True)
    assert (merged.stdout, merged.stderr) == ("a\nb\nc\n", "")


def test_a_program_that_does_not_end_is_ended_with_all_that_it_started(tmp_path):
    note = tmp_path / "pid"
    script = f"(echo $BASHPID > {note}; exec sleep 600) & yes"
    with pytest.raises(subprocess.TimeoutExpired):
        process.run(["/bin/bash", "-c", script], 0.5)
    until(lambda: not lives(int(note.read_text())), "the end of all it had started")


ON_A_TERMINAL = """
import os, pty, sys
from dbdyno.servers import process
pid, terminal = pty.fork()
if pid == 0:
    tried = "test -t 0 && echo in; (exec 3<>/dev/tty) 2>/dev/null && echo has; echo ended"
    sys.stdout.write(process.run(["/bin/sh", "-c", tried], 30).stdout)
    sys.stdout.flush()
    os._exit(0)
said = b""
try:
    while piece := os.read(terminal, 1000):
        said += piece
except OSError:
    pass
sys.stdout.write(said.decode())
"""


def test_a_program_that_is_run_has_no_terminal():
    command = [sys.executable, "-c", ON_A_TERMINAL]
    paths = {"PYTHONPATH": str(Path(process.__file__).parents[2])}
    ended = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **paths}
    )
    assert ended.stdout.split() == ["ended"]


def test_starting_from_another_thread_is_refused(tmp_path):
    with ThreadPoolExecutor(1, thread_name_prefix="side") as pool:
        started = pool.submit(process.spawn, ["/bin/true"], tmp_path, None, tmp_path / "printed")
        with pytest.raises(ServerError, match="from the main thread") as caught:
            started.result(30)
    assert caught.value.found == "side_0"


def test_servers_run_as_ourselves_unless_we_are_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert process.server_user() is None


@pytest.mark.parametrize("made", [True, False])
def test_root_lends_servers_a_user_of_their_own_or_nobody(monkeypatch, made):
    def found(name):
        if name == process.OWN_USER and not made:
            raise KeyError(name)
        return SimpleNamespace(pw_uid=990 if made else 65534, pw_gid=991)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("DBDYNO_SERVER_USER", raising=False)
    monkeypatch.setattr(pwd, "getpwnam", found)
    name = process.OWN_USER if made else "nobody"
    assert process.server_user() == process.ServerUser(name, 990 if made else 65534, 991)


@pytest.mark.parametrize(
    ("name", "message"), [("root", "do not run as root"), ("no-such-user", "there is no user")]
)
def test_a_user_that_cannot_be_is_refused(monkeypatch, name, message):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("DBDYNO_SERVER_USER", name)
    with pytest.raises(ServerError, match=message):
        process.server_user()


def test_a_taken_port_is_seen_with_its_holder():
    with socket.socket() as held:
        held.bind((process.LOOPBACK, 0))
        held.listen()
        port = held.getsockname()[1]
        assert not process.port_is_free(port)
        assert f"(pid {os.getpid()})" in process.holder(port)
        for host in (process.LOOPBACK, "localhost"):
            assert process.listener(host, port)[0] == os.getpid()
        for host in ("127.0.0.2", "192.0.2.1", "db.example.com"):
            assert process.listener(host, port) is None
    assert process.port_is_free(port)
    assert process.port_is_free(process.free_port())


def test_a_program_that_is_not_there_leaves_word(tmp_path):
    running = process.spawn([str(tmp_path / "none")], tmp_path, None, tmp_path / "printed")
    assert running.wait(30) != 0
    assert "No such file" in (tmp_path / "printed").read_text()
