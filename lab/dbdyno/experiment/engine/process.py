"""Parent's side of the engine's child process: start it, read its messages, stop or kill it.

Two threads read the child's pipes into a queue, so waiting for a message can time out, and Ctrl-C
cannot interrupt the reading of a line. The child has its own session: the terminal's Ctrl-C reaches
the lab only, which then asks the child to stop and send its record.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import dbdyno
from dbdyno.errors import LoadError
from dbdyno.experiment.engine import generators, record
from dbdyno.experiment.engine.child import ERROR, FINAL, STOP
from dbdyno.experiment.watch.proc import family

COMMAND: Final = generators.COMMAND
"""Command of the child."""
STOP_GRACE_S: Final = 1.0
"""Longest wait for a child's record after a request to stop."""
ANSWER_S_MAX: Final = 3600.0
"""Longest wait for an answer, such as from a script's check of its rows."""
LAST_LINES: Final = 20


class Message(NamedTuple):
    """A line of the child, as named by `child`: kind and content."""

    kind: str
    value: dict[str, Any]


class Engine(ABC):
    """Driver of a load; a context manager that ends it if it still runs.

    Attributes:
        pid: its process on this machine; 0 if the load comes from others.
    """

    pid: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def message(self, timeout_s: float | None = None) -> Message | None:
        """The next message; None after `timeout_s` without any.

        The final message (record or report) is repeated at further calls.

        Raises:
            LoadError: the engine sent an error, or died.
        """

    @abstractmethod
    def stop(self) -> None:
        """Asks it to stop; its final message follows soon."""

    @abstractmethod
    def close(self) -> None:
        """End the child for certain and wait for it; no effect at a second call."""

    def answer(self, limit_s: float = ANSWER_S_MAX) -> dict[str, Any]:
        """The value of the final message, whatever comes before it.

        Raises:
            LoadError: as `message`, or it did not come within `limit_s`.
        """
        ends = time.monotonic() + limit_s
        while (left_s := ends - time.monotonic()) > 0:
            message = self.message(left_s)
            if message is not None and message.kind in FINAL:
                return message.value
        raise LoadError(
            "the engine did not answer in time",
            wanted=f"an answer within {limit_s:.0f} s",
            hint="does a script run for ever, or a server not answer it?",
        )

    def drain(self, grace_s: float = STOP_GRACE_S) -> tuple[list[Message], Message | None]:
        """Stop the child; returns its last messages, and its record if it came in time.

        Takes little more than `grace_s`; a child still busy then is killed.
        """
        self.stop()
        messages: list[Message] = []
        ends = time.monotonic() + grace_s
        with suppress(LoadError):
            while (left := ends - time.monotonic()) > 0:
                message = self.message(left)
                if message is not None and message.kind in FINAL:
                    return messages, message
                if message is not None:
                    messages.append(message)
        self.close()
        return messages, None


class EngineProcess(Engine):
    """The engine in a child process of the lab."""

    def __init__(
        self,
        do: str,
        spec: Mapping[str, Any],
        *,
        system: str = "",
        cores: Sequence[int] = (),
        command: Sequence[str] = COMMAND,
    ) -> None:
        """Starts the child and sends it `spec`.

        Args:
            do: one of `child.REQUESTS`.
            system: label of the system, for messages.
            cores: the child is kept on these; empty for all.

        Raises:
            LoadError: the child cannot be started, or not on these cores.
        """
        self._do = do
        self._system = system
        self._ended: Message | None = None
        self._process = _start(command)
        self.pid = self._process.pid
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._errors: deque[str] = deque(maxlen=LAST_LINES)
        self._readers = [
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        try:
            set_affinity(self._process.pid, cores)
            self._send(json.dumps({"do": do, "spec": spec}))
        except BaseException:
            self.close()
            raise

    def message(self, timeout_s: float | None = None) -> Message | None:
        """As `Engine.message`."""
        if self._ended is not None:
            return self._ended
        try:
            line = self._lines.get(timeout=None if timeout_s is None else max(0.0, timeout_s))
        except queue.Empty:
            return None
        if line is None:
            raise self._death()
        return self._parsed(line)

    def stop(self) -> None:
        """As `Engine.stop`."""
        self._send(STOP)

    def close(self) -> None:
        """As `Engine.close`."""
        self._kill()
        for reader in self._readers:
            if reader.ident is not None:
                reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _parsed(self, line: str) -> Message:
        try:
            ((kind, value),) = json.loads(line).items()
        except (ValueError, AttributeError) as error:
            raise LoadError(
                "the engine's child said something that is no message",
                found=line[:200].strip(),
                hint="something prints to the child's stdout; report this",
            ) from error
        if kind == ERROR:
            raise record.refused(value, self._do, self._system)
        message = Message(kind, value)
        if kind in FINAL:
            self._ended = message
        return message

    def _death(self) -> LoadError:
        if self._process.returncode is None:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        status = self._kill()
        self._readers[1].join()
        how = f"it ended with status {status}"
        if status < 0:
            how = f"it was killed by {signal.Signals(-status).name}"
        return record.died(how, self._do, self._system, list(self._errors))

    def _kill(self) -> int:
        """Kill the child's process group, with all that scripts started in it; its exit status.

        The group's number is its own as long as the child was not waited for.
        """
        if self._process.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it died; `message` raises that
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _read_stdout(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line.strip())


def set_affinity(pid: int, cores: Sequence[int]) -> None:
    """Pin a process, its descendants and all their threads to `cores`; no effect without cores.

    Raises:
        LoadError: the cores are not available, or the process is another user's.
    """
    if not cores:
        return
    allowed = os.sched_getaffinity(0)
    if not set(cores) <= allowed:
        raise LoadError(
            "the load cannot be kept on the cores that the plan names",
            wanted=f"cores {', '.join(map(str, sorted(cores)))}",
            found=f"cores {', '.join(map(str, sorted(allowed)))}",
            hint="correct procedure.pin in the plan",
        )
    try:
        for member in family(pid):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                for thread in Path(f"/proc/{member}/task").iterdir():
                    with suppress(ProcessLookupError):
                        os.sched_setaffinity(int(thread.name), cores)
    except PermissionError as error:
        raise LoadError(
            "a process of another user cannot be kept on cores, as the plan asks by procedure.pin",
            wanted=f"cores {', '.join(map(str, sorted(cores)))}",
            found=f"process {pid}, as a container's is",
            hint="run dbdyno as root, or leave pin out of the plan",
        ) from error


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    ours = str(Path(dbdyno.__file__).parents[1])
    there = os.environ.get("PYTHONPATH")
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": f"{ours}{os.pathsep}{there}" if there else ours},
        )
    except OSError as error:
        raise LoadError(
            "the engine's child cannot be started",
            wanted=" ".join(command),
            found=str(error),
            hint="check the installation: python -m dbdyno.experiment.engine.child",
        ) from error
