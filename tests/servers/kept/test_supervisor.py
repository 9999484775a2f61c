"""What `kept` sees of a supervisor is in test_kept; here is what it does when nobody looks."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from dbdyno.files import holder, is_locked
from dbdyno.servers.kept import kept, supervisor
from support.lab_process import until

FAKE = (sys.executable, str(Path(__file__).parents[2] / "support" / "fake_supervisor.py"))
ASKED = {"label": "one", "reference": "mysql:8.0.15", "settings": {}}


def begun(folder):
    child = subprocess.Popen(
        [*FAKE, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    child.stdin.write(json.dumps(ASKED))
    child.stdin.close()
    return child


def test_it_leaves_its_parent_and_ends_its_server_on_sigterm(tmp_path):
    with begun(tmp_path) as child:
        messages = [json.loads(line) for line in child.stdout]
        assert child.wait(60) == 0
    assert messages[-1] == {"ready": True}
    pid = holder(tmp_path / "lock")
    server = psutil.Process(json.loads((tmp_path / kept.STATE).read_text())["pid"])
    assert server.ppid() == pid
    assert not psutil.Process(pid).open_files() or is_locked(tmp_path / "lock")
    os.kill(pid, signal.SIGTERM)
    server.wait(60)
    assert not (tmp_path / kept.PASSWORD).exists()


def test_no_client_of_a_strangers_programs_is_run_as_root(monkeypatch):
    monkeypatch.setattr(supervisor.open, "programs", lambda reference: Path("/programs"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert supervisor._programs("mysql:8.0.15") == "/programs"
    assert supervisor._programs("path:/home/somebody/mysql") == ""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert supervisor._programs("path:/home/somebody/mysql") == "/programs"


def test_a_command_that_was_killed_while_it_waited_leaves_the_server_up(tmp_path):
    child = begun(tmp_path)
    child.stdout.close()  # nobody reads what it says
    child.wait(60)
    until((tmp_path / kept.STATE).exists, "its state")
    assert is_locked(tmp_path / "lock")
    os.kill(holder(tmp_path / "lock"), signal.SIGTERM)


def test_the_second_one_of_a_folder_gives_way(tmp_path):
    with begun(tmp_path) as child:
        child.stdout.read()
    with begun(tmp_path) as second:
        (message,) = [json.loads(line) for line in second.stdout]
    assert "is being worked on by another dbdyno" in message["error"]["message"]
    assert is_locked(tmp_path / "lock")
    os.kill(holder(tmp_path / "lock"), signal.SIGTERM)
