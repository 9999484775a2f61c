"""The real worker module answers by its protocol, whatever the engine does."""

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from dbdyno import _engine
from dbdyno.errors import LoadError
from dbdyno.experiment.engine.child import serve
from dbdyno.experiment.engine.process import COMMAND, EngineProcess


class Stop:
    """What the compiled Stop is, for an engine that was not compiled in."""

    def __init__(self):
        self.event = threading.Event()

    def set(self):
        self.event.set()

    def is_set(self):
        return self.event.is_set()


def answers(monkeypatch, do, engine, rest="", spec=None):
    """What the worker writes when `engine` stands for the engine's function of that name."""
    monkeypatch.setattr(_engine, "Stop", Stop, raising=False)
    monkeypatch.setattr(_engine, do, engine, raising=False)
    read, write = os.pipe()
    os.write(write, (json.dumps({"do": do, "spec": spec or {"seed": 1}}) + "\n" + rest).encode())
    output = io.StringIO()
    with os.fdopen(read) as requests:
        status = serve(requests, output)
        os.close(write)
        time.sleep(0.05)
    return status, [json.loads(line) for line in output.getvalue().splitlines()]


def test_a_run_sends_its_intervals_and_then_its_record(monkeypatch):
    def engine(spec, on_interval, stop):
        assert spec == {"seed": 1}
        on_interval({"at_s": 1.0})
        on_interval({"at_s": 2.0})
        return {"stopped_by": "time"}

    assert answers(monkeypatch, "run", engine) == (
        0,
        [
            {"interval": {"at_s": 1.0}},
            {"interval": {"at_s": 2.0}},
            {"record": {"stopped_by": "time"}},
        ],
    )


def test_a_load_sends_its_progress_and_then_its_report(monkeypatch):
    def engine(spec, on_progress, stop):
        on_progress({"table": 1, "rows_done": 5})
        return {"tables": 1}

    _, output = answers(monkeypatch, "prepare", engine)
    assert output == [{"progress": {"table": 1, "rows_done": 5}}, {"report": {"tables": 1}}]


def test_a_cleanup_answers_with_an_empty_report(monkeypatch):
    _, output = answers(monkeypatch, "cleanup", lambda spec, stop: {})
    assert output == [{"report": {}}]


def test_stop_reaches_the_engine(monkeypatch):
    def engine(spec, on_interval, stop):
        assert stop.event.wait(60)
        return {"stopped_by": "stop"}

    _, output = answers(monkeypatch, "run", engine, rest="stop\n")
    assert output == [{"record": {"stopped_by": "stop"}}]


@pytest.mark.parametrize(
    ("raised", "output"),
    [
        (
            RuntimeError({"code": 1045, "sqlstate": "28000", "message": "no", "stage": "connect"}),
            {
                "kind": "refused",
                "code": 1045,
                "sqlstate": "28000",
                "message": "no",
                "stage": "connect",
            },
        ),
        (RuntimeError("plain words"), {"kind": "refused", "message": "plain words"}),
        (
            ValueError("connections must be at least 1"),
            {"kind": "invalid", "message": "connections must be at least 1", "stage": "spec"},
        ),
    ],
)
def test_what_the_engine_raises_is_sent_as_an_error(monkeypatch, raised, output):
    def engine(spec, on_interval, stop):
        raise raised

    assert answers(monkeypatch, "run", engine) == (0, [{"error": output}])


def test_an_unknown_request_is_refused():
    output = io.StringIO()
    assert serve(io.StringIO('{"do": "dance", "spec": {}}\n'), output) == 0
    assert "dance" in json.loads(output.getvalue())["error"]["message"]


def test_no_request_is_no_answer():
    output = io.StringIO()
    assert serve(io.StringIO(""), output) == 1
    assert output.getvalue() == ""


def test_the_real_child_speaks_the_protocol_end_to_end():
    with EngineProcess("dance", {}, system="a", command=COMMAND) as child:
        with pytest.raises(LoadError, match="refuses the load") as caught:
            child.answer()
        assert "dance" in caught.value.found


@pytest.mark.parametrize("leads", [True, False])
def test_the_child_dies_with_its_lab_and_with_it_what_scripts_started(leads):
    lab = f"""
        import subprocess, sys, time
        child = subprocess.Popen(
            [sys.executable, "-c",
             "from dbdyno import _engine; _engine.end_with_parent(); import subprocess, time;"
             "started = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL);"
             "print(started.pid, flush=True); time.sleep(600)"],
            stdout=subprocess.PIPE, text=True, start_new_session={leads},
        )
        print(child.pid, child.stdout.readline(), flush=True)
        time.sleep(600)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(lab)], stdout=subprocess.PIPE, text=True
    )
    child, started = map(int, parent.stdout.readline().split())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    ends = time.monotonic() + 60
    while (is_running(child) or (leads and is_running(started))) and time.monotonic() < ends:
        time.sleep(0.02)
    assert (is_running(child), is_running(started)) == (False, not leads)
    if not leads:  # its group is that of others
        os.kill(started, signal.SIGKILL)


def test_the_child_of_a_lab_under_nohup_heeds_signals():
    code = """
        import os, signal
        from dbdyno.experiment.engine import child
        for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, [signal.SIGTERM])
        child.restore_signals()
        os.kill(os.getpid(), signal.SIGTERM)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, timeout=30)
    assert ended.returncode == -signal.SIGTERM


def is_running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
