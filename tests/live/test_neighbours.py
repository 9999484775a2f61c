"""Processes beside a trial are named by the CPU that they used."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from dbdyno.experiment.watch.neighbours import busiest

pytestmark = [pytest.mark.live, pytest.mark.alone]  # other workers of the tests would be busier


def test_a_busy_process_of_others_is_named_and_a_child_is_not() -> None:
    started = "yes > /dev/null 2> /dev/null & echo $!"
    other = int(subprocess.run(["sh", "-c", started], stdout=subprocess.PIPE, check=True).stdout)
    with subprocess.Popen(["yes"], stdout=subprocess.DEVNULL) as child:
        try:
            busy = busiest(0)
        finally:
            os.kill(other, signal.SIGKILL)
            child.kill()
    assert any(line.startswith(f"yes (pid {other}, ") for line in busy)
    assert not any(f"pid {child.pid}," in line for line in busy)
