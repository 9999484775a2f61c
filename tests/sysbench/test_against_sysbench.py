"""Our texts beside those of sysbench 1.0.20, of its binary and recorded ones: numbers may differ.

Lines that need no server are compared with the binary where it is installed: ours are answered by
the fake engine, theirs by ``--mysql-dry-run``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.sysbench import interval, shape

PROGRAM = shutil.which("sysbench", path="/usr/bin:/usr/local/bin")
DRY = "--mysql-dry-run --db-driver=mysql "
SAME = (
    "--test=oltp_read_write --events=1 run",
    "oltp_read_only --test=oltp_read_write --events=1 run",
    "oltp_read_write --num-threads=2 --max-requests=3 --max-time=1 run",
    "oltp_read_write --num-threads=2 --max-requests=3 --verbosity=1 run",
    "oltp_read_write --max-requests=0 --max-time=0 --num-threads=1 --events=1 run",
    "oltp_read_write --num-threads=1K run",
    "--test oltp_read_write run",
    "oltp_read_write.lux run",
    "otlp run",
    "oltp_read_write --time=1 run twice",
    "oltp_read_write --tabel-size=5 run",
    "oltp_read_write walk",
    "oltp_read_write --compat-of=1 run",
    "oltp_common",
    "/usr/share/sysbench/oltp_read_write.lua --events=1 run",
)
OURS_ALONE = ("note: ", "  hint: ", "Initializing random number", "sysbench 1.0.20 ")


def lines(text):
    """Without what is one program's own; numbers measured are replaced."""
    text = re.sub(r"/usr/share/sysbench/\w+\.lua:\d+: ", "", text)
    kept = [it for it in text.splitlines() if it and not it.startswith(OURS_ALONE)]
    report = next((at for at, it in enumerate(kept) if it == "SQL statistics:"), len(kept))
    return kept[:report]


@pytest.mark.parametrize("line", SAME)
def test_both_say_the_same(sysbench, line):
    if PROGRAM is None:
        pytest.skip("sysbench is not installed: apt-get install sysbench")
    command = [PROGRAM, *(DRY + line).split()]
    theirs = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    status = sysbench(DRY + line)
    assert lines(sysbench.stderr) == lines(theirs.stderr)
    assert lines(sysbench.stdout) == lines(theirs.stdout)
    assert status == theirs.returncode


# Recorded texts. Where we differ on purpose (docs/reference/sysbench.md) they are edited first.


REAL = Path(__file__).parents[1] / "golden" / "real_sysbench"
FAIRNESS = re.compile(r"\nThreads fairness:\n.*\n.*\n")
COMMAND = "oltp_point_select --threads=2 --rand-seed=7"
RUNS = {
    "histogram": "oltp_point_select --events=60 --histogram --rand-seed=7",
    "rate": f"{COMMAND} --time=2 --report-interval=1 --rate=50 --validate",
    "no_percentile": f"{COMMAND} --time=2 --rate=50 --percentile=0",
    "forced_shutdown": f"{COMMAND} --time=2 --forced-shutdown=50%",
    "checkpoints": f"{COMMAND} --time=3 --report-interval=1 --report-checkpoints=2,1 --rate=40",
    "debug": f"{COMMAND} --time=2 --debug",
}


def real(name):
    text = (REAL / f"{name}.txt").read_text().replace("\n<blank>\n", "\n \n")
    if name == "forced_shutdown":
        # The seed was not given when this was recorded.
        text = text.replace("from current time", "from seed (7).")
    if name == "checkpoints":
        # Reports in the middle have no fairness, and follow the interval line of their second.
        *middle, last = text.split("SQL statistics:")
        text = "SQL statistics:".join([*(FAIRNESS.sub("", part) for part in middle), last])
        late = re.findall(r"^\[ 2s \] (?:thds|queue).*\n", text, re.MULTILINE)
        for line in late:
            text = text.replace(line, "")
        second = "[ 2s ] Checkpoint report:"
        text = text.replace(second, "".join(late) + second)
    if name == "debug":
        # No line for each thread, neither as it starts nor at the end.
        text = text.replace("(last message repeated 1 times)\n", "")
        text = re.sub(r"^DEBUG: .*\n", "", text, flags=re.MULTILINE).rstrip("\n") + "\n\n"
    return text


@pytest.mark.parametrize("name", RUNS)
def test_only_numbers_differ(sysbench, engine, name):
    if name == "checkpoints":
        engine.intervals.insert(2, interval(2.0, 3.0, [1], "measured"))
        engine.intervals[3] |= {"start_s": 3.0, "end_s": 3.1}
    if name == "forced_shutdown":
        engine.more = {"unfinished": 2}
    sysbench(f"{RUNS[name]} run")
    ours = re.sub(r"^DEBUG: .*\n", "", sysbench.stdout, flags=re.MULTILINE)
    assert shape(ours) == shape(real(name))
