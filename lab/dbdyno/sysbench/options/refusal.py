"""The one way in which the sysbench command line ends early: lines for a stream, an exit status."""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818 - it carries lines for the user, not a program's mistake
    """What cannot be done, in sysbench's words.

    Args:
        lines: printed as they are, one after the other.
        to_stderr: sysbench tells argument errors on stderr, everything else on stdout.
        exit_status: 1, but for a run that a signal ended.
    """

    def __init__(self, *lines: str, to_stderr: bool = False, exit_status: int = 1) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.to_stderr = to_stderr
        self.exit_status = exit_status


def fatal(*messages: str) -> Refusal:
    """Each message as a FATAL line on stdout."""
    return Refusal(*(f"FATAL: {message}" for message in messages))


def argument_error(*lines: str) -> Refusal:
    """Lines on stderr, without a prefix."""
    return Refusal(*lines, to_stderr=True)
