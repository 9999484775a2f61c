"""A lock is held by one lab, and by none that is dead."""

import signal
import subprocess
import sys

import pytest

from dbdyno.errors import StoreError
from dbdyno.files import is_held, locked

HOLDER = """
import sys, time
from pathlib import Path
from dbdyno.files import locked
with locked(Path(sys.argv[1]), "run r"):
    print("held", flush=True)
    time.sleep(600)
"""


def take(path):
    with locked(path, "run r"):
        return True


def test_a_second_taker_is_told_who_holds_it(tmp_path):
    path = tmp_path / "locks" / "r.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(StoreError, match="run r is being worked on by another dbdyno") as caught:
        take(path)
    assert f"process {holder.pid}, since 2" in caught.value.found
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert take(path)


def test_a_lock_that_was_given_back_can_be_taken_again(tmp_path):
    assert take(tmp_path / "l")
    assert take(tmp_path / "l")


def test_a_holder_that_wrote_nothing_yet_is_told_so(tmp_path):
    with locked(tmp_path / "l", "run r"):
        (tmp_path / "l").write_text("")
        with pytest.raises(StoreError) as caught:
            take(tmp_path / "l")
    assert "just begun" in caught.value.found


def test_a_lock_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        take(tmp_path / "file" / "l")


def test_asking_whether_a_lock_is_held_does_not_take_it(tmp_path):
    path = tmp_path / "locks" / "r.lock"
    assert not is_held(path)
    with locked(path, "run r"):
        assert is_held(path)
    assert not is_held(path)
    assert take(path)
