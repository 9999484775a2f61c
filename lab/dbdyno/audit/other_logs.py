"""Parser of logs of pgbench and HammerDB with any number of runs; pure.

pgbench's report begins with "transaction type:" and ends with its "tps = …"; HammerDB prints a line
for each run, "System achieved N NOPM from M … TPM", after the number of its virtual users. An
incomplete report is refused with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dbdyno.audit.sysbench_log import NUMBER, WHOLE
from dbdyno.errors import UsageError

BEGINS: Final = re.compile(r"^\s*transaction type: (?P<workload>.+)$")
PGBENCH: Final = {
    "threads": re.compile(rf"^number of clients: {WHOLE}\s*$"),
    "seconds": re.compile(rf"^duration: {WHOLE} s\s*$"),
    "events": re.compile(rf"^number of transactions actually processed: {WHOLE}"),
    "latency_ms_avg": re.compile(rf"^latency average(?: =|:) {NUMBER} ms\s*$"),
    "latency_ms_stddev": re.compile(rf"^latency stddev(?: =|:) {NUMBER} ms\s*$"),
    "tps": re.compile(
        rf"^tps = {NUMBER} \((?:without initial connection time|including connections establishing"
        r"|including reconnection times)\)\s*$"
    ),
}
LENGTH: Final = ("seconds", "events")
"""By which it is known how long a run took."""
WITHOUT_CONNECTING: Final = re.compile(
    rf"^tps = {NUMBER} \(excluding connections establishing\)\s*$"
)
USERS: Final = re.compile(rf"{WHOLE} Active Virtual Users configured")
ACHIEVED: Final = re.compile(
    rf"TEST RESULT : System achieved {WHOLE} NOPM(?: from {WHOLE} .{{1,60}}? TPM)?\s*(?:at|$)"
)


class LoggedRow(NamedTuple):
    """A run: its connections and its printed numbers, by metric.

    Attributes:
        line: its last line.
        seconds: its duration; 0 if it was not printed.
    """

    threads: int
    workload: str
    values: dict[str, str]
    line: int
    seconds: float = 0.0


def rows_in(text: str, source: str) -> list[LoggedRow]:
    """Every run of a text, in order; empty for other programs, UsageError for half a report."""
    lines = [(n, line.rstrip("\r\n")) for n, line in enumerate(text.splitlines(), 1)]
    return [*_pgbench(lines, source), *_hammerdb(lines, source)]


def _pgbench(lines: list[tuple[int, str]], source: str) -> Iterator[LoggedRow]:
    values: dict[str, str] = {}
    begun, workload, ended = 0, "", 0
    for number, line in lines:
        if match := BEGINS.match(line):
            if begun:
                yield _whole(values, workload, begun, ended, source)
            begun, workload, values = number, match["workload"], {}
        if not begun:
            continue
        for name, pattern in PGBENCH.items():
            if match := pattern.match(line):
                values[name], ended = match[1], number
        # before 14 it printed both; the one without connecting is the one that newer ones print
        if match := WITHOUT_CONNECTING.match(line):
            values["tps"], ended = match[1], number
    if begun:
        yield _whole(values, workload, begun, ended, source)


def _whole(values: dict[str, str], workload: str, begun: int, ended: int, source: str) -> LoggedRow:
    if missing := [name for name in ("threads", "tps") if name not in values]:
        raise UsageError(
            f"line {begun} of {source}: a report of pgbench that is not whole",
            wanted="its number of clients and its tps",
            found=f"no {' and no '.join(missing)}",
            hint="was the run cut off? remove it, or run it again",
        )
    rest = {name: text for name, text in values.items() if name not in ("threads", *LENGTH)}
    name = re.sub(r"[<>]|builtin: ?", "", workload).strip()
    seconds, events, tps = (float(values.get(one, 0)) for one in (*LENGTH, "tps"))
    seconds = seconds or (events / tps if tps > 0 else 0.0)
    return LoggedRow(int(values["threads"]), name, rest, ended, seconds)


def _hammerdb(lines: list[tuple[int, str]], source: str) -> Iterator[LoggedRow]:
    users = 0
    for number, line in lines:
        if match := USERS.search(line):
            users = int(match[1])
        if match := ACHIEVED.search(line):
            if not users:
                raise UsageError(
                    f"line {number} of {source}: a result of HammerDB without its virtual users",
                    wanted='a line "… Active Virtual Users configured" before it',
                    hint="keep the whole log of a run, not only its result",
                )
            values = {"nopm": match[1]}
            if match[2]:
                values["tpm"] = match[2]
            yield LoggedRow(users, "hammerdb_tprocc", values, number)
