"""Our texts beside what sysbench 1.0.20 really printed: only numbers may differ.

Where we differ on purpose (docs/reference/sysbench.md) the real text is edited first, by hand.
"""

import re
from pathlib import Path

import pytest

from support.made_intervals import interval

REAL = Path(__file__).parents[1] / "golden" / "real_sysbench"
LATENCY = re.compile(r"( +(?:min|avg|max|sum|\d+th percentile):)( +[\d.]+)")
FAIRNESS = re.compile(r"\nThreads fairness:\n.*\n.*\n")
BANNER = re.compile(r"\(using .*\)")
COMMAND = "oltp_point_select --threads=2 --rand-seed=7"
RUNS = {
    "histogram": "oltp_point_select --events=60 --histogram --rand-seed=7",
    "rate": f"{COMMAND} --time=2 --report-interval=1 --rate=50 --validate",
    "no_percentile": f"{COMMAND} --time=2 --rate=50 --percentile=0",
    "forced_shutdown": f"{COMMAND} --time=2 --forced-shutdown=50%",
    "checkpoints": f"{COMMAND} --time=3 --report-interval=1 --report-checkpoints=2,1 --rate=40",
    "debug": f"{COMMAND} --time=2 --debug",
}


def shape(text):
    """The text with every number as a sign; columns that numbers end in are kept."""
    lines = []
    for line in BANNER.sub("(using)", text).splitlines():
        if match := LATENCY.fullmatch(line):
            lines.append(f"{match[1]} ends in column {len(line)}")
        elif re.fullmatch(r" {5,9}[\d.]+ \|[* ]{40} \d+", line):
            if lines[-1] != "a row":
                lines.append("a row")
        else:
            lines.append(re.sub(r"# +\(", "# (", re.sub(r"\d[\d.]*", "#", line)))
    return lines


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
