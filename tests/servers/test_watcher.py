"""What the lab started ends with it, however the lab ends, and whatever the program is."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import psutil
import pytest

from dbdyno.servers import launch, open, process, watcher
from support.lab_process import lives, until

LAB = """
    import sys, time
    from pathlib import Path
    from dbdyno.servers import process
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    started = process.spawn(command, folder, process.server_user(), folder.parent / "printed")
    print(started.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder():
    """A folder that the servers' user may enter, with a copy of a small program in it."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-") as made:
        Path(made).chmod(0o755)
        shutil.copy("/bin/sleep", made)
        (Path(made) / "work").mkdir()
        yield Path(made)


def lab_with(folder, *command):
    """A lab that has started a program, and the program's process."""
    paths = {"PYTHONPATH": str(Path(open.__file__).parents[2])}
    lab = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(LAB), str(folder / "work"), *map(str, command)],
        stdout=subprocess.PIPE,
        env={**os.environ, **paths},
    )
    started = psutil.Process(int(lab.stdout.readline()))
    lab.stdout.close()
    until(lambda: "launch.py" not in " ".join(started.cmdline()), "the program runs")
    return lab, started


def killed(lab):
    lab.send_signal(signal.SIGKILL)
    lab.wait()


def until_gone(started):
    until(lambda: not lives(started.pid), "it ends with its lab")


def test_a_program_with_file_capabilities_dies_with_a_killed_lab(folder):
    refused = why_no_capability(folder / "sleep")
    if refused:
        pytest.skip(f"no program can be given a capability here: {refused}")
    lab, started = lab_with(folder, folder / "sleep", "600")
    # Forked, and not yet the program. psutil would keep its first answer to exe().
    exe = Path(f"/proc/{started.pid}/exe")
    until(lambda: exe.readlink() == folder / "sleep", "the program runs")
    killed(lab)
    until_gone(started)


def why_no_capability(program):
    if os.geteuid() != 0:
        return "only root may (setcap)"
    setcap = shutil.which("setcap", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if setcap is None:
        return "there is no setcap (libcap2-bin)"
    given = subprocess.run(
        [setcap, "cap_sys_nice+ep", str(program)], capture_output=True, text=True, check=False
    )
    return given.stderr.strip() if given.returncode else ""


def test_what_a_program_started_dies_with_a_killed_lab(folder):
    script = f"{folder / 'sleep'} 601 & exec {folder / 'sleep'} 602"
    lab, started = lab_with(folder, "/bin/sh", "-c", script)
    (child,) = until(started.children, "it has started another")
    killed(lab)
    until_gone(started)
    until_gone(child)


def test_a_lab_that_ends_leaves_no_watcher(folder):
    lab, _ = lab_with(folder, folder / "sleep", "600")
    (watching,) = [p for p in psutil.Process(lab.pid).children() if watcher.__file__ in p.cmdline()]
    killed(lab)
    until_gone(watching)


def test_a_watcher_that_was_killed_is_replaced(tmp_path):
    first = watcher.running()
    first._process.kill()
    first._process.wait()
    running = process.spawn(["/bin/true"], tmp_path, None, tmp_path / "printed")
    assert running.wait(30) == 0
    assert watcher.running() is not first


def test_without_a_watcher_nothing_is_started(tmp_path):
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        words = map(str, (os.getpid(), ours.fileno(), launch.KEEP, launch.KEEP))
        ended = subprocess.run(
            [sys.executable, "-I", launch.__file__, *words, "/bin/touch", str(tmp_path / "ran")],
            pass_fds=[ours.fileno()],
            check=False,
            timeout=30,
        )
    assert ended.returncode == launch.LAB_IS_GONE
    assert not (tmp_path / "ran").exists()
