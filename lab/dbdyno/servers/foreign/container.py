"""A running container with a MySQL or MariaDB in it.

A container belongs to its engine and would outlive the lab. So a small process waits on a pipe from
the lab; when the pipe closes, however the lab ended, it removes the container by its id.
"""

from __future__ import annotations

import subprocess
import time
from typing import Final

import psutil

from dbdyno.errors import ServerError
from dbdyno.servers.base import STOP_S, Credentials, Endpoint
from dbdyno.servers.foreign.container_program import ContainerProgram
from dbdyno.servers.foreign.endpoint import EndpointServer
from dbdyno.servers.mysql.accounts import DATABASE
from dbdyno.servers.mysql.client import Client

START_S_MAX: Final = 300.0
LINES_SHOWN: Final = "12"
REMOVE_WHEN_THE_LAB_IS_GONE: Final = 'read -r _; exec "$0" rm --force --volumes "$1"'


class ContainerServer(EndpointServer):
    """Asked like any server of MySQL's protocol; started and stopped by its id."""

    def __init__(
        self,
        label: str,
        program: ContainerProgram,
        container: str,
        endpoint: Endpoint,
        load: Credentials,
    ) -> None:
        super().__init__(label, endpoint, load, DATABASE)
        self.container = container
        self.stopped_cleanly = False
        self._program = program
        self.pid = int(self._inspect("{{.State.Pid}}") or 0)

    def alive(self) -> bool:
        """Whether the container runs; its process is looked at where it can be seen."""
        if self.pid and psutil.pid_exists(self.pid):
            return True
        return self._inspect("{{.State.Running}}") == "true"

    def last_words(self) -> str:
        """The end of what the container printed."""
        return words_of(self._program, self.container)

    def stop(self, patience_s: float = STOP_S) -> None:
        """Ask it to end, wait, and remove the container; its data stay in their volume.

        Raises:
            ServerError: it had ended before, or did not end cleanly.
        """
        self._log_out()
        if self.stopped_cleanly:
            return
        was_alive, words = self.alive(), self.last_words()
        try:
            seconds = str(int(patience_s))
            self._program.call("stop", "-t", seconds, self.container, seconds_max=patience_s + 60)
            code = self._inspect("{{.State.ExitCode}}")
        finally:
            self._program.says("rm", "--force", "--volumes", self.container)
        if not was_alive or code != "0":
            what = f"stop cleanly (exit code {code})" if was_alive else "live until it was stopped"
            raise ServerError(f"{self.label}: the container did not {what}", found=words or None)
        self.stopped_cleanly = True

    def kill(self) -> None:
        """Remove the container while it runs; for one whose data will not be used again."""
        self._log_out()
        self._program.says("rm", "--force", "--volumes", self.container)

    def wait_ready(self, who: Credentials) -> None:
        """Wait until a login works; ServerError with its last words if the container ends."""
        ends = time.monotonic() + START_S_MAX
        with Client(self.label, self.endpoint, who) as client:
            while not client.try_login():
                if not self.alive():
                    words = self.last_words()
                    raise ServerError(f"{self.label}: its container ended", found=words or None)
                if time.monotonic() > ends:
                    raise ServerError(
                        f"{self.label}: no answer within {START_S_MAX:.0f} s of its start",
                        found=self.last_words() or None,
                    )
                time.sleep(0.1)

    def _inspect(self, what: str) -> str | None:
        return self._program.says("inspect", "--format", what, self.container)


class Leash:
    """Removes a container when the lab is gone, or when it is let go."""

    def __init__(self, program: ContainerProgram, container: str) -> None:
        self._waiting = subprocess.Popen(
            ["sh", "-c", REMOVE_WHEN_THE_LAB_IS_GONE, program.path, container],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # it may be gone already
            start_new_session=True,  # what ends the lab's group shall not end it
        )

    def let_go(self) -> None:
        """Remove the container now, if it is still there."""
        with self._waiting:
            pass


def words_of(program: ContainerProgram, container: str) -> str:
    """The end of what a container printed, on either stream; empty if it is gone."""
    done = subprocess.run(
        [program.path, "logs", "--tail", LINES_SHOWN, container],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else ""
