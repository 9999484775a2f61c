"""The parent's side of the child: its messages, its errors, its ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dbdyno.errors import LoadError
from dbdyno.experiment.engine.process import EngineProcess, set_affinity
from support.fake_engine import command
from support.lab_process import lives, until

SPEC = {
    "warmup_s": 1,
    "window_s": 2,
    "connections": 1,
    "distribution": "uniform",
    "prepared": True,
    "password": "secret-4711",
    "tables": 2,
    "table_size": 10,
}


def python(code):
    return (sys.executable, "-c", code)


def test_intervals_come_one_by_one_and_then_the_record():
    with EngineProcess("run", SPEC, command=command()) as child:
        kinds = [child.message().kind for _ in range(4)]
        assert kinds == ["interval"] * 3 + ["record"]
        assert child.message() == child.message()


def test_an_answer_is_the_final_message():
    with EngineProcess("prepare", SPEC, command=command()) as child:
        assert child.answer()["rows"] == 20


def test_an_answer_is_waited_for_until_its_limit():
    child = EngineProcess("prepare", SPEC, command=python("import time; time.sleep(600)"))
    with child, pytest.raises(LoadError, match="did not answer in time"):
        child.answer(0.2)


def test_waiting_ends_when_nothing_comes():
    with EngineProcess("run", SPEC, command=command(tick_s=30)) as child:
        began = time.monotonic()
        assert child.message(0.1) is None
        assert time.monotonic() - began < 5


def test_stop_gives_the_record_of_what_was_measured():
    with EngineProcess("run", {**SPEC, "window_s": 9}, command=command(tick_s=0.3)) as child:
        child.message()
        messages, final = child.drain(grace_s=5)
    assert final is not None
    assert final.value["stopped_by"] == "stop"
    assert len(final.value["intervals"]) == 1 + len(messages)


def test_a_child_that_ignores_stop_is_killed_after_its_grace():
    options = {"tick_s": 0.05, "deaf": True}
    with EngineProcess("run", {**SPEC, "window_s": 900}, command=command(**options)) as child:
        child.message()
        began = time.monotonic()
        messages, final = child.drain(grace_s=0.5)
        assert time.monotonic() - began < 10
        assert final is None
        assert messages
        assert not Path(f"/proc/{child.pid}").exists()


def test_leaving_the_block_ends_the_child():
    with EngineProcess("run", SPEC, command=command(tick_s=60)) as child:
        pid = child.pid
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("end", ["os._exit(0)", "time.sleep(600)"])
def test_what_a_script_has_started_ends_with_the_child(end):
    code = (
        "import os, subprocess, time; started = subprocess.Popen(['sleep', '600']).pid;"
        f'print(\'{{"record": {{"pid": %d}}}}\' % started, flush=True); {end}'
    )
    with EngineProcess("run", SPEC, command=python(code)) as child:
        started = child.answer(20)["pid"]
    until(lambda: not lives(started), "it has ended", 20)


def test_the_childs_session_is_its_own_so_that_ctrl_c_passes_it_by():
    with EngineProcess("run", SPEC, command=command(tick_s=60)) as child:
        assert os.getsid(child.pid) == child.pid


def test_the_password_is_not_in_the_childs_arguments_or_environment():
    with EngineProcess("run", SPEC, command=command(tick_s=60)) as child:
        for name in ("cmdline", "environ"):
            assert b"secret-4711" not in Path(f"/proc/{child.pid}/{name}").read_bytes()


def test_a_killed_child_is_an_error_with_its_last_words():
    child = EngineProcess("run", SPEC, system="mysql", command=command(die=True))
    with child, pytest.raises(LoadError, match="mysql: the engine died") as caught:
        child.answer()
    assert "SIGKILL" in caught.value.found
    assert "thread panicked: index out of bounds" in caught.value.found


def test_a_child_that_ends_without_a_message_is_an_error_with_its_status():
    child = EngineProcess("run", SPEC, command=python("raise SystemExit(7)"))
    with child, pytest.raises(LoadError) as caught:
        child.answer()
    assert "status 7" in caught.value.found


def test_nonsense_on_stdout_is_an_error():
    child = EngineProcess("run", SPEC, command=python("print('hello')"))
    with child, pytest.raises(LoadError, match="no message") as caught:
        child.answer()
    assert caught.value.found == "hello"


def test_a_program_that_is_not_there_is_an_error():
    with pytest.raises(LoadError, match="cannot be started"):
        EngineProcess("run", SPEC, command=("no-such-program-anywhere",))


def test_a_pinned_child_stays_on_its_cores():
    core = min(os.sched_getaffinity(0))
    with EngineProcess("run", SPEC, cores=(core,), command=command(tick_s=60)) as child:
        assert os.sched_getaffinity(child.pid) == {core}


def test_what_a_process_has_forked_is_kept_on_its_cores_too():
    """As PostgreSQL's background processes, which are there before anybody can log in."""
    core = min(os.sched_getaffinity(0))
    forking = ["sh", "-c", "sleep 60 & echo $!; wait"]
    with subprocess.Popen(forking, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        forked = int(parent.stdout.readline())
        set_affinity(parent.pid, (core,))
        kept = os.sched_getaffinity(forked)
        os.kill(forked, signal.SIGKILL)
    assert kept == {core}


def test_a_process_of_another_user_that_cannot_be_kept_is_an_error_in_words(monkeypatch):
    def refuse(thread, cores):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    with pytest.raises(LoadError, match=r"another user .* procedure\.pin") as caught:
        set_affinity(os.getpid(), sorted(os.sched_getaffinity(0)))
    assert "leave pin out" in caught.value.hint


def test_cores_that_are_not_there_are_refused():
    with pytest.raises(LoadError, match=r"cores that the plan names") as caught:
        set_affinity(os.getpid(), (100_000,))
    assert "procedure.pin" in caught.value.hint
    with pytest.raises(LoadError):
        EngineProcess("run", SPEC, cores=(100_000,), command=command(tick_s=60))


def test_no_cores_means_all():
    before = os.sched_getaffinity(0)
    set_affinity(os.getpid(), ())
    assert os.sched_getaffinity(0) == before
