"""Stacks of `perf` and `gdb` become folded stacks; the samplers run beside a trial and end with it.

The samplers here are scripts on PATH that print what real ones print.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.experiment.watch import folding
from dbdyno.experiment.watch.folding import (
    DEPTH_MAX,
    NAME_MAX,
    StackSample,
    folded,
    gdb_samples,
    perf_samples,
)
from dbdyno.experiment.watch.stacks import STEP, SamplerChoice, StackSampler, sampler_for
from dbdyno.files import TEMPORARY_FOLDER
from dbdyno.measurement.measurement import Measurement
from support import making
from support.lab_process import lives, until

# As perf 6.1 prints the fields comm, tid, ip and sym, innermost function first.
PERF = """\
connection 4711
\tffffffff81a2b3c4 do_syscall_64
\t    7f0c2b1d3e4f __libc_write
\t    55d0c0a0b1c2 MYSQL_LOG::write<char, (Kind)1>
\t    55d0c0a0b1d3 dispatch_command
\t    55d0c0a0b1e4 do_command
\t    7f0c2b1d0000 start_thread

mysqld 4712
\t    55d0c0a0ffff void log_write(log_t&, unsigned long)
\t    55d0c0a0aaaa [unknown]
\t    55d0c0a0aaab [unknown]

mysqld 4713
\t    55d0c0a0c0de log_buffer_flush
\t    55d0c0a0c0df (anonymous namespace)::log_writer

mysqld 4713
\t    55d0c0a0c0de log_buffer_flush
"""
PERF_FOLDED = {
    "connection;start_thread;do_command;dispatch_command;MYSQL_LOG::write<>;__libc_write;"
    "do_syscall_64_[k]": 1,
    "unnamed;[program];log_write": 1,
    "ib_log_writer;{anonymous}::log_writer;log_buffer_flush": 1,
    "ib_log_writer;log_buffer_flush": 1,
}
# As gdb 13 prints `thread apply all bt`, with the values of arguments left out.
GDB = """\
[New LWP 4714]
warning: the source is not there

Thread 3 (Thread 0x7f0c (LWP 4714) "ib_io_rd-1"):
#0  0x00007f0c2b1d3e4f in io_getevents () from /lib/x86_64-linux-gnu/libaio.so.1
#1  0x000055d0c0a0b1c2 in ?? ()

Thread 2 (LWP 4715 "mysqld"):
#0  0x00007f0c2b1d3e4f in __poll (...) at ../sysdeps/unix/poll.c:29
#1  do_command(THD*) ()
#2  0x000055d0c0a0b1c2 in std::function<void (THD*)>::operator()(THD*) const ()

Thread 1 (process 4716):
#0  0x00007f0c2b1d3e4f in WalWriterMain ()
[Inferior 1 (process 4716) detached]
"""
GDB_FOLDED = {
    "ib_io_rd;[program];io_getevents": 1,
    "connection;std::function<>::operator();do_command;__poll": 1,
    "walwriter;WalWriterMain": 1,
}


def test_the_text_of_perf_is_folded_by_groups_of_threads() -> None:
    assert folded(perf_samples(PERF.splitlines()), {}, "mysqld") == PERF_FOLDED


def test_the_text_of_gdb_is_folded_the_same_way() -> None:
    assert folded(gdb_samples(GDB.splitlines()), {}, "mysqld") == GDB_FOLDED


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("void Log::write<std::vector<int> >(int, A<B>)", "Log::write<>"),
        ("operator new(unsigned long)", "operator new"),
        ("A::operator->() const", "A::operator->"),
        ("std::ostream& std::operator<< <char>(std::ostream&, char)", "std::operator<<<>"),
        ("run(int)::{lambda(A<int>)#1}::operator()(A<int>) const", "run::{lambda#1}::operator()"),
        ("(anonymous namespace)::f", "{anonymous}::f"),
        ("copy_rows [clone .part.0]", "copy_rows"),
        ("heap_update.isra.0.cold", "heap_update"),
        ("write@plt", "write"),
        ("evil;name\x1b[1m", "evil:name?[1m"),
        ("x" * 500, "x" * NAME_MAX),
    ],
)
def test_names_of_functions_are_short_and_plain(printed: str, name: str) -> None:
    (sample,) = perf_samples(["mysqld 1", f"\t 55d0 {printed}"])
    assert sample.functions == (name,)


def test_deep_and_many_stacks_are_cut_and_no_sample_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deep = StackSample("connection", 1, tuple(f"f{n}" for n in range(200)))
    (stack,) = folded([deep], {}, "mysqld")
    names = stack.split(";")
    assert len(names) <= DEPTH_MAX
    assert (names[1], names[-1]) == ("f0", "f199")
    monkeypatch.setattr(folding, "STACKS_MAX", 2)
    many = [StackSample("a", 1, (name,)) for name in "xxxyyzw"]
    many.append(StackSample("b", 2, ("x",)))
    assert folded(many, {}, "mysqld") == {
        "a;x": 3,
        "a;y": 2,
        "a;[…];z": 1,
        "a;[…];w": 1,
        "b;[…];x": 1,
    }


def test_a_thread_is_in_the_group_that_was_read_for_it() -> None:
    threads = {7: "PostgresMain", 8: "PostgresMain", 9: "StartAutoVacWorker"}
    samples = [StackSample("postgres", tid, (root,)) for tid, root in threads.items()]
    assert folded(samples, {7: "walsender", 8: "unnamed", 9: "postmaster"}, "postgres") == {
        "walsender;PostgresMain": 1,
        "connection;PostgresMain": 1,
        "postmaster;StartAutoVacWorker": 1,
    }


LINES = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.sampled_from([*PERF.splitlines(), *GDB.splitlines(), "#", "#0", "Thread", "Thread 1 ("]),
    ),
    max_size=30,
)


@given(LINES, st.text(max_size=10))
def test_any_text_is_read_within_the_bounds(lines: list[str], program: str) -> None:
    for samples in (list(perf_samples(lines)), list(gdb_samples(lines))):
        stacks = folded(samples, {}, program)
        assert sum(stacks.values()) == len(samples)
        for stack in stacks:
            names = stack.split(";")
            assert 2 <= len(names) <= DEPTH_MAX
            assert all(name and len(name) <= NAME_MAX and name.isprintable() for name in names)


FAKE_PERF = """\
#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/calls"
if [ -e "$here/refusal" ]; then cat "$here/refusal"; exit 255; fi
if [ "$1" = script ]; then cat "$here/perf.txt"; exit; fi
stat -c %a . > "$here/mode"
echo $$ > "$here/pid"
for seconds; do :; done
sleep "$seconds"
"""
FAKE_GDB = """\
#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/calls"
cat "$here/gdb.txt"
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH, with the fakes' texts and without a sampler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cat", "dirname", "sleep", "stat"):
        (folder / name).symlink_to(str(shutil.which(name)))
    (folder / "perf.txt").write_text(PERF)
    (folder / "gdb.txt").write_text(GDB)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    return folder


def put(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


@pytest.fixture
def pid() -> Iterator[int]:
    """A process that stands for a server, named sleep."""
    with subprocess.Popen([str(shutil.which("sleep")), "600"]) as process:
        yield process.pid
        process.kill()


def sampled(pid: int) -> Measurement:
    """A trial of 100 events/s, sampled for the first of its window's two seconds."""
    with StackSampler(pid) as stacks:
        stacks.begin(2.0, 2.0)
        return stacks.added_to(making.measurement(tps=100.0, window_s=2, warmup_s=2))


def reason(measured: Measurement) -> str:
    """Why a trial has no stacks."""
    assert measured.profile is None
    (step,) = measured.procedure
    assert (step.name, step.done) == (STEP, False)
    return step.detail


def test_perf_samples_the_window_and_leaves_only_names(
    pid: int, tools: Path, tmp_path: Path
) -> None:
    put(tools, "perf", FAKE_PERF)
    measured = sampled(pid)
    profile = measured.profile
    assert profile is not None
    assert (profile.sampler, profile.window_s, profile.events) == ("perf", 1.0, 100)
    assert 2000 < profile.period_us < 1e6
    assert profile.sampler_cpu_s > 0
    assert sum(profile.stacks.values()) == sum(PERF_FOLDED.values())
    assert measured.procedure == ()
    tried, record, script = (tools / "calls").read_text().splitlines()
    assert tried.endswith(f"--pid {pid} -- sleep 0.000")
    assert record.endswith(f"--pid {pid} -- sleep 1.000")
    assert "--call-graph dwarf,16384" in record
    assert "dso" not in script
    assert (tools / "mode").read_text() == "700\n"
    assert list((tmp_path / "cache").glob(f"{TEMPORARY_FOLDER}*")) == []


def test_gdb_looks_where_perf_is_refused(pid: int, tools: Path) -> None:
    put(tools, "perf", FAKE_PERF)
    (tools / "refusal").write_text("not permitted")
    put(tools, "gdb", FAKE_GDB)
    with StackSampler(pid) as stacks:
        stacks.begin(2.0, 2.0)
        until(lambda: "attach" in (tools / "calls").read_text(), "gdb looks")
        profile = stacks.added_to(making.measurement(window_s=2)).profile
    assert profile is not None
    _, index, *looking = (tools / "calls").read_text().splitlines()
    looks = len(looking)
    assert "attach" not in index
    assert (profile.sampler, looks > 0) == ("gdb", True)
    assert profile.period_us == pytest.approx(1e6 / looks)
    assert {stack: times / looks for stack, times in profile.stacks.items()} == GDB_FOLDED


def test_a_trial_without_a_sampler_has_the_reason(pid: int, tools: Path) -> None:
    assert reason(sampled(pid)) == "perf is not installed; gdb is not installed"
    assert reason(sampled(0)) == "the server is no process of this machine"


def test_a_message_of_a_sampler_names_no_folder(pid: int, tools: Path, tmp_path: Path) -> None:
    put(tools, "perf", FAKE_PERF)
    (tools / "refusal").write_text("Error:\n cannot open /home/me/perf.data: see /proc/paranoid\n")
    choice = sampler_for(pid, tmp_path)
    why = "perf is refused: Error: cannot open perf.data: see paranoid"
    assert choice == SamplerChoice("", f"{why}; gdb is not installed")


def test_a_perf_that_fails_in_the_window_is_the_reason(pid: int, tools: Path) -> None:
    put(tools, "perf", FAKE_PERF)
    with StackSampler(pid) as stacks:
        (tools / "refusal").write_text("out of memory")
        stacks.begin(2.0, 2.0)
        measured = stacks.added_to(making.measurement(window_s=2))
    assert reason(measured) == "perf ended with status 255: out of memory"


def test_a_sampler_ends_with_its_trial(pid: int, tools: Path) -> None:
    put(tools, "perf", FAKE_PERF)
    with StackSampler(pid) as stacks:
        (tools / "pid").unlink()  # of the try
        stacks.begin(2.0, 600.0)
        until((tools / "pid").is_file, "the sampler runs")
        until((tools / "pid").read_text, "its number")
        sampler = int((tools / "pid").read_text())
    until(lambda: not lives(sampler), "it ends")
    assert Path(f"/proc/{pid}").exists()
    failed = making.measurement(failure="the server died")
    assert stacks.added_to(failed) == failed


def test_a_window_that_is_nearly_over_is_not_sampled(pid: int, tools: Path) -> None:
    put(tools, "perf", FAKE_PERF)
    with StackSampler(pid) as stacks:
        stacks.begin(3.9, 0.1)
        measured = stacks.added_to(making.measurement(window_s=2))
    assert "nearly over" in reason(measured)


def test_many_cpus_lower_the_frequency(
    pid: int, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tools, "perf", FAKE_PERF)
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    profile = sampled(pid).profile
    assert profile is not None
    assert profile.period_us == pytest.approx(1e6 / 8)
    assert "--freq 8 " in (tools / "calls").read_text()


def test_events_and_cpu_are_of_the_sampled_time_and_of_the_sampler_alone(
    pid: int, tools: Path
) -> None:
    put(tools, "perf", FAKE_PERF)
    measured = making.measurement(tps=100.0, window_s=2, warmup_s=2)
    server = measured.server.model_copy(update={"status_at_s": (-0.6, -0.5, 4.0, 4.01)})
    with StackSampler(pid) as stacks:
        stacks.begin(0.0, 2.0)
        spin = "import time\nwhile time.process_time() < 2: pass"
        subprocess.run([sys.executable, "-c", spin], check=True)
        profile = stacks.added_to(measured.model_copy(update={"server": server})).profile
    assert profile is not None
    assert (profile.window_s, profile.events) == (0.5, pytest.approx(50))
    assert 0 < profile.sampler_cpu_s < 1.5


def test_what_gdb_said_is_the_reason_where_it_saw_no_thread(pid: int, tools: Path) -> None:
    put(tools, "gdb", FAKE_GDB)
    (tools / "gdb.txt").write_text("ptrace: Operation not permitted.\n")
    with StackSampler(pid) as stacks:
        stacks.begin(2.0, 2.0)
        until(lambda: "attach" in (tools / "calls").read_text(), "gdb looks")
        measured = stacks.added_to(making.measurement(window_s=2))
    said = "gdb saw no thread of the server: ptrace: Operation not permitted."
    assert reason(measured) == f"{said}; perf is not installed"
