import os
import resource
import subprocess
import sys

import pytest

from dbdyno.servers import launch, watcher


def start(parent=None):
    words = [parent or os.getpid(), watcher.running().fileno()]
    return [sys.executable, "-I", "-S", launch.__file__, *map(str, words)]


def run(*arguments, parent=None, before=()):
    return subprocess.run(
        [*before, *start(parent), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        pass_fds=[watcher.running().fileno()],
    )


def test_the_program_takes_over_the_process_with_its_death_tied_to_ours():
    ask = (
        "import ctypes, os; s = ctypes.c_int();"
        "ctypes.CDLL(None).prctl(2, ctypes.byref(s), 0, 0, 0);"
        "print(s.value, os.getppid(), open('/proc/self/status').read().count('NoNewPrivs:\\t1'))"
    )
    done = run("-1", "-1", sys.executable, "-I", "-c", ask)
    assert done.stdout.split() == ["9", str(os.getpid()), "1"], done.stderr


def test_a_lab_that_is_already_gone_starts_nothing(tmp_path):
    done = run("-1", "-1", "/bin/touch", str(tmp_path / "ran"), parent=1)
    assert done.returncode == launch.LAB_IS_GONE
    assert not (tmp_path / "ran").exists()


def test_as_root_the_user_and_all_groups_are_given_up():
    if os.geteuid() != 0:
        done = run(str(os.geteuid()), str(os.getegid()), "/usr/bin/id", "-G")
        assert done.returncode != 0  # only root may change its groups, and says so
        return
    done = run("65534", "65534", "/usr/bin/id", "-G")
    assert done.stdout.split() == ["65534"]


def test_what_the_lab_ignores_or_blocks_its_server_does_not():
    deaf = (
        "import os, signal, sys\n"
        "for one in (1, 2, 3, 15): signal.signal(one, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    asked = ["/bin/grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]
    done = run("-1", "-1", *asked, before=(sys.executable, "-c", deaf))
    blocked, ignored = (int(mask, 16) for mask in done.stdout.split()[1::2])
    of_the_c_library = 0b11 << 31  # 32 and 33: ignored under GNU make, and no program may set them
    assert (blocked, ignored & ~of_the_c_library) == (0, 0), done.stdout


def test_open_files_are_raised_to_what_is_allowed():
    done = run("-1", "-1", "/bin/sh", "-c", "ulimit -Sn; ulimit -Hn")
    soft, hard = done.stdout.split()
    assert soft == hard


@pytest.mark.parametrize("hard", [1 << 30, resource.RLIM_INFINITY])
def test_open_files_without_end_are_cut_since_old_servers_reserve_memory_for_each(
    monkeypatch, hard
):
    kept = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (hard, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: kept.append(limits))
    launch._raise_file_limit()
    assert kept == [(launch.FILES_MAX, launch.FILES_MAX)]
