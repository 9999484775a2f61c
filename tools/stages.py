"""Run the tests in stages, each whatever became of the one before, and end with one summary.

usage: python tools/stages.py STAGE...        the stages are named in STAGES

Times of the stages and of their slowest tests are printed and written to target/test-times.json.
The exit status is the worst of the stages' own. Ctrl-C ends the running stage, and the rest is
reported as not run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

PYTEST = [sys.executable, "-m", "pytest", "-q"]
BESIDE = [*PYTEST, "--dist", "loadfile", "--no-loadscope-reorder"]
"""One worker has the tests of a file or of a shared server, so that what they share is made once;
tests/conftest.py groups and orders them."""
LIVE = ["tests/live", "tests/browser/test_live_run.py"]
"""Where live tests are: each worker would take seconds to read all the others."""
STAGES = {
    "cargo": [
        *("cargo", "test", "--profile", "ci", "--quiet", "--locked", "--no-fail-fast"),
        *("--workspace", "--tests"),  # the extension too, so that crates have the same features
        *("--", "--test-threads=8"),  # many wait for a clock: more threads than cores
    ],
    # Many wait for a child.
    "quick": [*BESIDE, "-n", "3", "-m", "not live and not nightly", "--ignore=tests/live"],
    # They wait for servers most of the time.
    "live": [*BESIDE, "-n", "4", "-m", "live and not alone and not nightly", *LIVE],
    # One after the other, as they measure.
    "alone": [*PYTEST, "-m", "alone and not nightly", *LIVE],
    "nightly": [*PYTEST, "-m", "nightly"],
}
# Rewritten tests are kept as bytecode: compiling them takes each worker half of its start.
ENVIRONMENT = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
SAYS = {"ignored": "skipped", "error": "failed", "errors": "failed"}
"""The tools' words for what the summary calls otherwise."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
TOTALS = re.compile(r"^(test result: .*|=* ?\d+ (passed|failed|skipped|error|deselected).* in .*)$")
COUNT = re.compile(r"(\d+) (passed|failed|skipped|ignored|errors?)\b")
FAILURE = re.compile(r"^(?:FAILED|ERROR) .*|^---- .* stdout ----$")
SLOW = re.compile(r"^(\d+\.\d+)s (?:setup|call|teardown) +(\S.*)$")
"""A line of pytest's slowest durations."""
TIMES = Path("target/test-times.json")
SLOWEST_MAX = 5
"""Slowest tests that the summary names for each stage; the file has all that pytest printed."""


@dataclass
class Outcome:
    """What a stage came to; `status` is as a shell has it, None if the stage did not run."""

    status: int | None = None
    seconds: float = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)

    def read(self, line: str) -> None:
        """Adds what a line of the tool's output tells."""
        line = COLOUR.sub("", line).rstrip()
        if TOTALS.match(line):
            for number, word in COUNT.findall(line):
                self.counts[SAYS.get(word, word)] += int(number)
        elif FAILURE.match(line):
            self.failures.append(line)
        elif slow := SLOW.match(line):
            self.slowest.append((float(slow[1]), slow[2]))


def run(command: list[str], outcome: Outcome) -> None:
    """Runs a stage to its end; its output is passed on as it comes, progress dots too."""
    began = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT
    )
    assert process.stdout is not None
    rest = b""
    try:
        with process.stdout as output:
            while piece := output.read1():  # type: ignore[attr-defined]
                sys.stdout.buffer.write(piece)
                sys.stdout.flush()
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    outcome.read(line.decode("utf-8", "replace"))
    finally:  # after Ctrl-C too, which reached the process as well
        ended = process.wait()
        outcome.status = 128 - ended if ended < 0 else ended
        outcome.seconds = time.monotonic() - began


def summary(outcomes: dict[str, Outcome]) -> str:
    """A line for each stage, then its slowest tests, then the names of all failed tests."""
    lines = []
    for name, outcome in outcomes.items():
        if outcome.status is None:
            lines.append(f"{name:<8} not run")
            continue
        told = "".join(
            f"{outcome.counts[word]:>6} {word}" for word in ("passed", "failed", "skipped")
        )
        verdict = "ok" if outcome.status == 0 else f"FAILED (exit status {outcome.status})"
        lines.append(f"{name:<8}{told}{outcome.seconds:>7.0f} s  {verdict}")
    slowest = [
        f"  {name}: {seconds:.1f} s {test}"
        for name, outcome in outcomes.items()
        for seconds, test in outcome.slowest[:SLOWEST_MAX]
    ]
    failures = [f"  {name}: {line}" for name in outcomes for line in outcomes[name].failures]
    return "\n".join(["", *lines, *slowest, *failures, ""])


def write_times(outcomes: dict[str, Outcome]) -> None:
    """Write each stage's seconds and slowest tests to `TIMES`."""
    times = {
        name: {"seconds": round(outcome.seconds, 1), "slowest": outcome.slowest}
        for name, outcome in outcomes.items()
        if outcome.status is not None
    }
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps(times, indent=1) + "\n")


def main(names: list[str]) -> int:
    """Runs the named stages; the worst exit status."""
    unknown = [name for name in names if name not in STAGES]
    if unknown or not names:
        sys.stderr.write(
            f"wanted stages of {', '.join(STAGES)}; found {' '.join(names) or 'none'}\n"
        )
        return 2
    outcomes = {name: Outcome() for name in names}
    interrupted = False
    try:
        for name in names:
            run(STAGES[name], outcomes[name])
    except KeyboardInterrupt:
        interrupted = True
    write_times(outcomes)
    sys.stdout.write(summary(outcomes))
    worst = max(outcome.status or 0 for outcome in outcomes.values())
    return 130 if interrupted else worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
