"""Processes beside a trial are named by the CPU that they used."""

from __future__ import annotations

import os
import signal
import subprocess

from dbdyno.experiment.watch.neighbours import busiest

LOOKS_MAX = 20
"""Other workers of the tests may be busier for some looks."""


def test_a_busy_process_of_others_is_named_and_a_child_is_not() -> None:
    started = "yes > /dev/null 2> /dev/null & echo $!"
    other = int(subprocess.run(["sh", "-c", started], stdout=subprocess.PIPE, check=True).stdout)
    with subprocess.Popen(["yes"], stdout=subprocess.DEVNULL) as child:
        busy: list[str] = []
        try:
            for _ in range(LOOKS_MAX):
                busy += busiest(0)
                if any(line.startswith(f"yes (pid {other}, ") for line in busy):
                    break
        finally:
            os.kill(other, signal.SIGKILL)
            child.kill()
    assert any(line.startswith(f"yes (pid {other}, ") for line in busy)
    assert not any(f"pid {child.pid}," in line for line in busy)
