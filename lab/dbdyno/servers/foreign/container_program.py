"""Docker or Podman as a command line: the one place that runs it, and the words of its failures.

Both take the same words for all that is done here, so whichever answers is used. Passwords never
stand in a command: they go into a container by files.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final

from dbdyno.errors import ProvisionError, ServerError, UnknownSystemError

SCHEME: Final = "container:"
PROGRAMS: Final = ("docker", "podman")
ANSWER_S_MAX: Final = 120.0
PULL_S_MAX: Final = 3600.0
STDERR_SHOWN: Final = 600

_IMAGE = re.compile(r"container:([a-z0-9][a-z0-9._/:-]*)@(sha256:[0-9a-f]{64})")


def is_container(reference: str) -> bool:
    """Whether a reference is of this form, well written or not."""
    return reference.startswith(SCHEME)


def image_of(reference: str) -> str:
    """``IMAGE@sha256:HEX`` of a reference; UnknownSystemError if it is not well formed."""
    match = _IMAGE.fullmatch(reference)
    if match is None:
        raise UnknownSystemError(
            "an image is named with its digest, since a tag is another image next month",
            wanted=f"{SCHEME}IMAGE@sha256: and 64 digits, as in container:docker.io/library/mysql",
            found=repr(reference),
            hint="docker pull IMAGE:TAG prints the digest",
        )
    return f"{match[1]}@{match[2]}"


@dataclass(frozen=True)
class ContainerProgram:
    """The program that runs containers.

    Attributes:
        path: of docker or podman.
    """

    path: str

    def call(self, *arguments: str, seconds_max: float = ANSWER_S_MAX) -> str:
        """What it prints; ServerError with what it complained of, if it fails."""
        try:
            done = subprocess.run(
                [self.path, *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds_max,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ServerError(
                f"{self.path} {arguments[0]} did not end within {seconds_max:.0f} s",
                hint="look whether its service runs",
            ) from error
        if done.returncode != 0:
            raise ServerError(
                f"{self.path} {arguments[0]} failed (exit {done.returncode})",
                found=done.stderr.strip()[-STDERR_SHOWN:] or None,
            )
        return done.stdout.strip()

    def says(self, *arguments: str) -> str | None:
        """What it prints, None if it fails."""
        try:
            return self.call(*arguments)
        except ServerError:
            return None


def find() -> ContainerProgram:
    """Docker or Podman, whichever answers.

    Raises:
        ProvisionError: neither does; quotes why.
    """
    complaints = []
    for name in PROGRAMS:
        path = shutil.which(name)
        if path is None:
            complaints.append(f"{name} is not on PATH")
            continue
        program = ContainerProgram(path)
        try:
            program.call("version")
        except ServerError as error:
            complaints.append(f"{name}: {error.found or error.message}")
        else:
            return program
    raise ProvisionError(
        "no containers can be run here",
        wanted="docker or podman with its service running",
        found="; ".join(complaints),
        hint="start its service, or name a folder with the server's programs: path:/folder",
    )
