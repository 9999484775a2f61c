"""Logs within wrappers are read as the bare log, and two containers' logs are not mixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.audit.logs.sysbench_log import LoggedRun
from dbdyno.audit.logs.wrappers import streams_in
from dbdyno.audit.read import text_of
from support.published_logs import V1, runs_in


def lines(prefix: str) -> Callable[[str], str]:
    """Each line behind a prefix, in which N is the line's number of two digits."""
    return lambda text: "".join(
        f"{prefix.replace('NN', f'{number % 60:02}')}{line}\n"
        for number, line in enumerate(text.splitlines())
    )


def ansible(text: str) -> str:
    output = {"changed": True, "stdout": text, "stdout_lines": text.splitlines()}
    return "ok: [db] => " + json.dumps({"result": output}, indent=4) + "\n"


def of_docker(text: str) -> str:
    """The file of a container's runtime, a JSON object a line."""
    return "".join(
        json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-01-04T21:59:00Z"}) + "\n"
        for line in text.splitlines()
    )


WRAPPERS: dict[str, Callable[[str], str]] = {
    "ISO": lines("2026-01-04T21:59:NN.123456Z "),
    "ISO with a zone": lines("2026-01-04 21:59:NN,123 +0100 "),
    "ISO in brackets": lines("[2026-01-04 21:59:NN] "),
    "ISO with a colon": lines("2026/01/04 21:59:NN: "),
    "American": lines("01/04/2026 09:59:NN PM "),
    "clock": lines("[21:59:NN] "),
    "Jenkins": lines("21:59:NN  "),
    "Jenkins' pipeline": lines("[2026-01-04T21:59:NN.123Z] [mysql57] "),
    "ts": lines("Jan 04 21:59:NN "),
    "date": lines("Sun Jan  4 09:59:NN PM UTC 2026 | "),
    "epoch": lines("17675639NN.123456 "),
    "since the start": lines("[    NN.123456] "),
    "syslog": lines("Jan  4 21:59:NN db1 sysbench[4711]: "),
    "syslog without a process": lines("Jan  4 21:59:NN db1 bench: "),
    "journal": lines("2026-01-04T21:59:NN+0000 db1 bench.sh[4711]: "),
    "docker compose": lines("sysbench-1  | "),
    "docker compose with times": lines("sysbench-1  | 2026-01-04T21:59:NN.123456789Z "),
    "colours": lines("\x1b[36msysbench-1  |\x1b[0m "),
    "kubectl": lines("[pod/bench-7d9f/sysbench] "),
    "stern": lines("bench-7d9f sysbench "),
    "container runtime": lines("2026-01-04T21:59:NN.123456789Z stdout F "),
    "a paste's numbers": lines("  NN. "),
    "a blog's notes": lambda text: "".join(f"{line} --总数\n" for line in text.splitlines()),
    "GitHub": lines("bench\tRun sysbench\t2026-01-04T21:59:NN.1234567Z "),
    "pdsh": lines("client1: "),
    "a logger": lines("2026-01-04 21:59:NN.123 | INFO     | bench:run:42 - "),
    "quoted": lines("> "),
    "indented": lines("        "),
    "annotated": lambda text: "".join(f"{line}   # 说明\n" for line in text.splitlines()),
    "stripped": lambda text: "\n".join(map(str.strip, text.splitlines())),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "byte order marks": lambda text: f"\ufeff{text}",
    "ansible": ansible,
    "ansible as YAML": lambda text: "".join(
        f"  - '{line}'\n" if line.startswith(" ") else f"  - {line}\n" for line in text.splitlines()
    ),
    "docker's file": of_docker,
}


def numbers(run: LoggedRun) -> tuple[object, ...]:
    return (run.version, run.threads, run.tps, run.qps, run.counts, run.latency_ms, run.intervals)


@pytest.mark.parametrize("wrapped", WRAPPERS.values(), ids=WRAPPERS)
def test_a_log_within_wrappers_is_the_same_log(wrapped: Callable[[str], str]) -> None:
    (bare,), (run,) = runs_in(V1, "log"), runs_in(wrapped(V1), "log")
    assert numbers(run) == numbers(bare)
    assert run.has_report


def test_lines_of_two_containers_and_a_server_are_read_apart() -> None:
    """The server's complaint is of no run, and the runs' lines alternate."""
    slow = V1.replace("505.07", "250.00")
    mixed = "db-1 | 2026-01-04 21:59:00.123 UTC [66] FATAL:  the system is starting up\n" + "".join(
        f"bench57-1 | {one}\nbench80-1 | {other}\n"
        for one, other in zip(V1.splitlines(), slow.splitlines(), strict=True)
    )
    runs = runs_in(mixed, "log")
    assert [(run.stream, run.tps, run.failure) for run in runs] == [
        ("bench57-1", "505.07", ""),
        ("bench80-1", "250.00", ""),
    ]


@pytest.mark.parametrize("is_parallel", [True, False])
def test_branches_are_read_apart_if_they_ran_at_the_same_time(is_parallel: bool) -> None:
    """As Jenkins prints parallel branches; one after the other, they are runs of a log."""
    old = [f"[21:59:00] [old] {line}\n" for line in V1.splitlines()]
    new = [line.replace("[old]", "[new]").replace("505.07", "250.00") for line in old]
    pairs = zip(old, new, strict=True)
    text = "".join(a + b for a, b in pairs) if is_parallel else "".join(old + new)
    runs = runs_in(text, "log")
    assert [(run.stream, run.tps) for run in runs] == [
        ("old" if is_parallel else "", "505.07"),
        ("new" if is_parallel else "", "250.00"),
    ]


def test_a_line_keeps_its_number() -> None:
    (stream,) = streams_in("\n\n10:00:00 Number of threads: 8\n")
    assert [(line.number, line.text) for line in stream.lines][-1] == (3, "Number of threads: 8")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_of_windows_are_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(V1.replace("\n", "\r\n").encode(encoding))
    (run,) = runs_in(text_of(path), "a.log")
    assert run.tps == "505.07"
