"""Samples the stacks of a server's threads within a trial's window.

`perf` samples threads on a CPU. Vendors build servers without frame pointers, so it copies the top
of each stack, and unwinds the copies after the trial. Where `perf` is missing or refused, `gdb`
halts the server at a few moments and lists the stacks of all threads, waiting ones too.

A copied stack may hold rows and passwords. Copies lie in a folder of the cache that is closed to
others, and go with the trial; only names of functions and threads are kept.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from dbdyno.errors import ServerError
from dbdyno.experiment.watch.folding import (
    LINE_MAX,
    StackSample,
    clean,
    folded,
    gdb_samples,
    perf_samples,
)
from dbdyno.experiment.watch.proc import family, text_of
from dbdyno.experiment.watch.threads import read_threads
from dbdyno.files import make_temporary, remove_temporary
from dbdyno.measurement.measurement import Measurement, events_until
from dbdyno.measurement.parts import StackProfile, Step
from dbdyno.servers import process
from dbdyno.servers.programs import places

PROC: Final = Path("/proc")
PERF, GDB = "perf", "gdb"
REFUSES: Final = "perf is refused"
FREQUENCY_HZ: Final = 499
"""Samples in a second of a thread's CPU; out of step with timers of 10 ms."""
SAMPLES_MAX: Final = 8000
"""Of a trial; many CPUs or a long window lower the frequency."""
STACK_BYTES: Final = 16_384
"""Copied of each stack; 8,000 of them take 131 MB."""
DATA_MAX: Final = "256M"
"""Largest file of `perf`, as it spells sizes."""
SECONDS_MIN: Final = 0.25
SECONDS_MAX: Final = 60.0
"""Longest sampled part of a window; one sample a second of 256 CPUs then fits into a file."""
END_EARLY_S: Final = 1.0
"""Time for a sampler to start and to end within the window."""
PAUSE_S: Final = 1.0
"""The server's time to work between two looks of `gdb`."""
TRY_S_MAX: Final = 10.0
INDEX_S_MAX: Final = 120.0
END_S_MAX: Final = 20.0
READ_S_MAX: Final = 600.0
"""Longest time to unwind all samples and to look up their functions."""
MESSAGE_MAX: Final = 300
STEP: Final = "sample stacks"
"""The step of a trial that should have samples and has none."""


@dataclass(frozen=True)
class SamplerChoice:
    """The sampler for a process.

    Attributes:
        name: `perf` or `gdb`; empty if there is neither.
        why: reason why it is not `perf`; empty for `perf`.
    """

    name: str
    why: str = ""


def sampler_for(pid: int, folder: Path) -> SamplerChoice:
    """Choose a sampler for a process, after a short record by `perf` in a folder of ours."""
    perf, why = shutil.which(PERF), "perf is not installed"
    if perf is not None:
        try:
            tried = _run(_record(perf, "try", [pid], FREQUENCY_HZ, 0.0), folder, TRY_S_MAX)
        except (OSError, subprocess.TimeoutExpired) as error:
            why = f"perf does not run: {type(error).__name__}"
        else:
            if tried.returncode == 0:
                return SamplerChoice(PERF)
            why = f"{REFUSES}: {_message(tried.stdout)}"
    if shutil.which(GDB):
        return SamplerChoice(GDB, why)
    return SamplerChoice("", f"{why}; gdb is not installed")


class StackSampler:
    """Samples a server's stacks from `begin` on, for most of the window; a context of the trial."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._folder: Path | None = None
        self._sampler: _Perf | _Gdb | None = None
        self._why = "the server is no process of this machine"
        self._begun_s: float | None = None
        self._seconds = 0.0
        self._groups: dict[int, str] = {}

    def __enter__(self) -> Self:
        """Choose the sampler while there is no load."""
        if self._pid and (PROC / str(self._pid)).exists():
            self._folder = make_temporary(places.make_cache_folder())
            choice = sampler_for(self._pid, self._folder)
            self._why = choice.why
            if choice.name == PERF:
                self._sampler = _Perf(self._pid, self._folder)
            elif choice.name:
                self._sampler = _Gdb(self._pid, self._folder)
                self._sampler.prepare()
        return self

    def __exit__(self, *error: object) -> None:
        if self._sampler is not None:
            self._sampler.close()
        if self._folder is not None:
            remove_temporary(self._folder)

    def begin(self, at_s: float, window_s: float) -> None:
        """Start sampling, and read which group each thread is in.

        Args:
            at_s: present second of the load.
            window_s: rest of the window.
        """
        self._begun_s = at_s
        self._seconds = min(SECONDS_MAX, max(window_s - END_EARLY_S, window_s / 2))
        if self._sampler is None:
            return
        try:
            if self._seconds < SECONDS_MIN:
                raise ServerError("the server's counters were read when the window was nearly over")
            self._sampler.begin(self._seconds)
        except ServerError as error:
            self._sampler, self._why = None, error.message
        else:
            self._groups = {number: one.group for number, one in read_threads(self._pid).items()}

    def added_to(self, measured: Measurement) -> Measurement:
        """The ended trial with its stacks, or with a step not done, and the reason."""
        if measured.failure is not None or self._begun_s is None:
            return measured
        try:
            profile = self._profile(measured, self._begun_s)
        except ServerError as error:
            step = Step(name=STEP, seconds=0.0, done=False, detail=error.message)
            return measured.model_copy(update={"procedure": (*measured.procedure, step)})
        return measured.model_copy(update={"profile": profile})

    def _profile(self, measured: Measurement, begun_s: float) -> StackProfile:
        """Read the samples; ServerError with the reason if there are none.

        Without a warm-up, sampling begins before the load. Only the trial's times show how long.
        """
        sampler = self._sampler
        if sampler is None:
            raise ServerError(self._why)
        sampler.end()
        program = text_of(PROC / f"{self._pid}/comm").strip()
        stacks = folded(sampler.samples(), self._groups, program)
        if not stacks:
            raise ServerError("; ".join(filter(None, (sampler.silence, self._why))))
        if read_at_s := measured.server.status_at_s:
            begun_s = read_at_s[1]
        ended_s = begun_s + self._seconds
        before, after = (events_until(measured.intervals, at_s) for at_s in (begun_s, ended_s))
        return StackProfile(
            sampler=sampler.name,
            period_us=sampler.period_s * 1e6,
            window_s=max(0.0, ended_s - max(0.0, begun_s)),
            events=after - before,
            sampler_cpu_s=sampler.cpu_s,
            stacks=stacks,
        )


class _Perf:
    """`perf record` of all threads of a server, which ends by itself.

    Attributes:
        period_s: CPU time for which a sample stands.
        cpu_s: CPU of the record.
    """

    name: Final[Literal["perf"]] = "perf"
    silence: Final = "perf saw no thread of the server at work"

    def __init__(self, pid: int, folder: Path) -> None:
        self._pid, self._folder = pid, folder
        self._program = shutil.which(PERF) or PERF
        self._running: subprocess.Popen[bytes] | None = None
        self.period_s, self.cpu_s = 1 / FREQUENCY_HZ, 0.0

    def begin(self, seconds: float) -> None:
        """Start it; ServerError if it cannot be started."""
        affordable_hz = int(SAMPLES_MAX / (seconds * (os.cpu_count() or 1)))
        frequency_hz = min(FREQUENCY_HZ, max(1, affordable_hz))
        self.period_s = 1 / frequency_hz
        command = _record(self._program, "data", family(self._pid), frequency_hz, seconds)
        self._spawn(command, "said")

    def end(self) -> None:
        """Wait for its end; ServerError if it failed."""
        before_s = _children_cpu_s()
        self._wait(END_S_MAX, "said")
        self.cpu_s = _children_cpu_s() - before_s

    def samples(self) -> Iterator[StackSample]:
        """Unwind all samples; ServerError if that fails."""
        fields = ("--fields", "comm,tid,ip,sym", "--no-inline")  # inlined ones would take minutes
        self._spawn([self._program, "script", "--input", "data", *fields], "stacks")
        self._wait(READ_S_MAX, "stacks")
        with (self._folder / "stacks").open(encoding="utf-8", errors="replace") as text:
            yield from perf_samples(iter(lambda: text.readline(LINE_MAX), ""))

    def close(self) -> None:
        """Kill it if it still runs, with what it started."""
        if self._running is not None and self._running.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)
            self._running.wait()

    def _spawn(self, command: Sequence[str], output: str) -> None:
        self._running = process.spawn(command, self._folder, None, self._folder / output)

    def _wait(self, limit_s: float, output: str) -> None:
        assert self._running is not None
        try:
            status = self._running.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.close()
            raise ServerError(f"perf did not end within {limit_s:.0f} s") from None
        if status:
            said = _message(text_of(self._folder / output))
            raise ServerError(f"perf ended with status {status}: {said}")


class _Gdb:
    """Looks of `gdb` at all threads, with pauses between them.

    Attributes:
        cpu_s: CPU of all looks.
    """

    name: Final[Literal["gdb"]] = "gdb"

    def __init__(self, pid: int, folder: Path) -> None:
        self._pid, self._folder = pid, folder
        self._program = shutil.which(GDB) or GDB
        self._seconds = self.cpu_s = 0.0
        self._looks: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="stacks", daemon=True)

    @property
    def period_s(self) -> float:
        """Time for which a sample stands."""
        return self._seconds / max(1, len(self._looks))

    @property
    def silence(self) -> str:
        """Reason why there is no sample."""
        said = _message(self._looks[-1]) if self._looks else "no look ended in time"
        return f"gdb saw no thread of the server: {said}"

    def prepare(self) -> None:
        """Store an index of the program's symbols: without it each look reads them for seconds."""
        with suppress(OSError, subprocess.TimeoutExpired):
            _run(self._command("info line main"), self._folder, INDEX_S_MAX)

    def begin(self, seconds: float) -> None:
        """Start looking."""
        self._seconds = seconds
        self._thread.start()

    def end(self) -> None:
        """Wait for the end of the last look."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    close = end

    def samples(self) -> Iterator[StackSample]:
        """Stacks of all threads in all looks."""
        return gdb_samples(line[:LINE_MAX] for look in self._looks for line in look.splitlines())

    def _look(self) -> None:
        now_s = time.monotonic()
        ends_s, longest_s = now_s + self._seconds, 0.0
        while not self._over.is_set() and now_s + longest_s < ends_s:
            before_s = _children_cpu_s()
            if look := self._stacks_of(family(self._pid), ends_s - now_s):
                self._looks.append(look)
            self.cpu_s += _children_cpu_s() - before_s
            longest_s = max(longest_s, time.monotonic() - now_s)
            self._over.wait(PAUSE_S)
            now_s = time.monotonic()

    def _stacks_of(self, pids: Sequence[int], limit_s: float) -> str:
        """The stacks of a server's threads, as `gdb` prints them; empty if it cannot in time.

        The program is named, so that `gdb` reads its symbols once, before it halts a process.
        """
        look = [
            each
            for pid in pids
            for each in (f"attach {pid}", f"thread apply all bt {DEPTH_READ}", "detach")
        ]
        try:
            return _run(self._command(*look), self._folder, limit_s).stdout
        except (OSError, subprocess.TimeoutExpired):
            for pid in pids:
                with suppress(OSError):  # a `gdb` that is killed leaves the process halted
                    os.kill(pid, signal.SIGCONT)
            return ""

    def _command(self, *commands: str) -> list[str]:
        index = f"set index-cache directory {self._folder}", "set index-cache enabled on"
        return [
            self._program,
            *SETTINGS,
            *(word for each in index for word in ("-iex", each)),
            f"{PROC}/{self._pid}/exe",
            *(word for each in commands for word in ("-ex", each)),
        ]


DEPTH_READ: Final = 40
"""Frames of a stack that `gdb` prints."""
SETTINGS: Final = (
    *("-batch", "-nx", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"),
    *("-iex", "set exec-file-mismatch off", "-iex", "set print frame-arguments none"),
)
"""`gdb` runs no code that a program brings, asks no network, and prints no values."""


def _record(
    perf: str, output: str, pids: Iterable[int], frequency_hz: int, seconds: float
) -> list[str]:
    """Command for a record in the working folder; its end is that of `sleep`."""
    how = ("--event", "cpu-clock", "--freq", str(frequency_hz))
    stacks = ("--call-graph", f"dwarf,{STACK_BYTES}", "--no-buildid", "--max-size", DATA_MAX)
    whom = ("--pid", ",".join(map(str, pids)), "--", "sleep", f"{seconds:.3f}")
    return [perf, "record", "--quiet", "--output", output, *how, *stacks, *whom]


def _run(command: Sequence[str], folder: Path, limit_s: float) -> subprocess.CompletedProcess[str]:
    """Run a program to its end in a folder; it dies with the lab."""
    return process.run(
        [*process.launcher(None), *command],
        limit_s,
        folder=folder,
        env=process.environment(folder),
        merged=True,
        fds=process.passed(),
    )


def _children_cpu_s() -> float:
    """CPU of all children that the lab has waited for: grows by a child's whole CPU at its end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _message(text: str) -> str:
    """A program's message in one line, with base names in place of paths."""
    line = " ".join(text[: 10 * MESSAGE_MAX].split())
    return clean(re.sub(r"\S*/", "", line), MESSAGE_MAX) or "no reason given"
