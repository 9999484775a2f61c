"""Ctrl-C and SIGTERM while a run is judged and reported: the end within 2 s, and no half file.

Each step waits for ever here, in a program of its own that is signalled then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import cycle
from pathlib import Path
from typing import cast

import pytest

from dbdyno import __main__
from dbdyno.cli import workload
from dbdyno.experiment.engine import ceiling
from dbdyno.servers.base import MYSQL, Endpoint, Server
from dbdyno.servers.process import LOOPBACK
from support.stored_run import store_made

LAB = """
import os, sys, time
from dbdyno import __main__, api
from dbdyno.report.charts import converter
from dbdyno.report.formats import html

def wait(*_):
    sys.stderr.write("waiting\\n")
    sys.stderr.flush()
    time.sleep(600)

def wait_to_flush(name):
    def flush(handle):
        if name in os.readlink(f"/proc/self/fd/{handle}"):
            wait()
    os.fsync = flush

"""
NO_CHARTS = "html.program = str\nconverter.drawn = lambda *_: ('<svg></svg>', b'')\n"
SILENT = "import sys, time; sys.stderr.write('waiting\\n'); sys.stderr.flush(); time.sleep(600)"
STEPS = {
    "judging": ("report", "api.judge = wait"),
    "drawing": ("report", f"converter.COMMAND = (sys.executable, '-c', {SILENT!r})"),
    "writing": ("report", f"{NO_CHARTS}wait_to_flush('report.html')"),
    "exporting": ("export --csv out", "wait_to_flush('trials.csv')"),
    "bundling": ("bundle --out run.zip", "wait_to_flush('run.zip')"),
}
"""What is typed, and what waits then."""
AT_ONCE_S = 10.0
"""Two seconds, and the rest for a busy machine."""


@pytest.mark.parametrize(
    ("step", "number"),
    [
        *zip(STEPS, cycle([signal.SIGINT, signal.SIGTERM]), strict=False),
        ("writing", signal.SIGTERM),
    ],
)
def test_a_signal_wins_and_leaves_whole_files(
    step: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = store_made(tmp_path, (0.9, 0.9, 0.9))
    words, planted = STEPS[step]
    command, *others = words.split()
    typed = [command, run.run_id, *others, "--workspace", str(tmp_path)]
    code = f"{LAB}{planted}\nsys.exit(__main__.main(sys.argv[1:]))\n"
    with subprocess.Popen(
        [sys.executable, "-c", code, *typed],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__main__.__file__).parents[1])},
    ) as lab:
        assert lab.stderr is not None
        assert lab.stderr.readline() == "waiting\n"
        began = time.monotonic()
        lab.send_signal(number)
        said = lab.communicate(timeout=60)[1]
        took_s = time.monotonic() - began
    page = tmp_path / run.run_id / "report.html"
    assert (lab.returncode, said.strip()) == (1, "dbdyno: interrupted")
    assert took_s < AT_ONCE_S
    assert [path for path in tmp_path.rglob("*") if path.name.startswith(".")] == []
    assert [page.exists(), Path("run.zip").exists()] == [False, False]
    assert __main__.main(typed) == 0
    assert page.is_file() == (command == "report")


SLOW = """
ffi.cdef "int usleep(unsigned int);"
local function prepare() for _ = 1, 300 do ffi.C.usleep(50000) end end
sysbench.cmdline.commands = { prepare = { prepare } }
"""
"""Fifteen seconds in which no Python runs."""


def test_ctrl_c_wins_while_a_template_is_tried() -> None:
    nobody = ceiling._Nobody(MYSQL, Endpoint(LOOPBACK, 1, None), ceiling.ANYBODY)
    ctrl_c = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    ctrl_c.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        workload._run(SLOW, "slow.yaml", cast(Server, nobody), "prepare", 1)
    assert 0.9 < time.monotonic() - began < AT_ONCE_S
    ctrl_c.join()
