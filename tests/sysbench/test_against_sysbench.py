"""Lines that need no server, side by side with the sysbench 1.0.20 binary where it is installed.

Ours are answered by the fake engine, theirs by ``--mysql-dry-run``: what is compared is everything
but the numbers that are measured.
"""

import re
import shutil
import subprocess

import pytest

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
