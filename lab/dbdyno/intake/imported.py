"""Results of other tools become a run: a plan that says what was measured, and its measurements.

Logs of sysbench and pgbench are imported whole: seconds, totals, the histogram where one was
printed. Metrics that a tool printed count as it printed them. What nobody saw (settings, counters,
the machine, the order of runs) stays empty, so such a run has numbers, ratios and charts, and no
verdict. A tool's repeats of a cell become blocks, in the order in which they are read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from dbdyno._engine import Histogram
from dbdyno.errors import UsageError
from dbdyno.intake.columns import Mapping
from dbdyno.intake.other_logs import LoggedRow, rows_in
from dbdyno.intake.read import text_of
from dbdyno.intake.sysbench_log import LoggedRun, runs_in
from dbdyno.measurement.measurement import (
    EVENT,
    Cell,
    EngineFacts,
    Measurement,
    ServerFacts,
    Trial,
)
from dbdyno.measurement.parts import Interval, Phase
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import IMPORTED_SCHEME, SystemPlan, label_made_of
from dbdyno.plan.workload import WorkloadPlan

FILES_MAX: Final = 10_000
FIELDS: Final = ("system", "workload", "threads", "repeat")
"""What a field of a file name's pattern may say; any other one names the system too."""
WITHOUT_NAME: Final = "unnamed workload"
COUNT_MAX: Final = 2**40


class LoggedTrial(NamedTuple):
    """One run of a log, and what its file's name says of it."""

    log: LoggedRun | LoggedRow
    path: Path
    system: str
    workload: str
    threads: int


def imported(
    paths: Sequence[Path], title: str, mapping: Mapping, pattern: str = ""
) -> tuple[Plan, list[Measurement]]:
    """The plan and the measurements of all logs; their trials have no run's id yet.

    Args:
        paths: files, and folders of which every file is read.
        pattern: of file names, such as ``{workload}_{threads}_{port}``.

    Raises:
        UsageError: a file that is no log of a tool that is known, or whose name does not fit the
            pattern; a pattern that says nothing.
    """
    names = _named(pattern) if pattern else None
    found = [one for path in _files(paths) for one in _found(path, mapping, names)]
    plan = Plan(
        title=title,
        systems=tuple(
            SystemPlan(label=label, reference=f"{IMPORTED_SCHEME}{label}")
            for label in dict.fromkeys(one.system for one in found)
        ),
        workloads=tuple(
            WorkloadPlan(name=label, label=label)
            for label in dict.fromkeys(one.workload for one in found)
        ),
        load=LoadPlan(threads=tuple(sorted({one.threads for one in found}))),
        trial=TrialPlan(warmup_s=0, window_s=max(1.0, *(_seconds(one.log) for one in found))),
        design=DesignPlan(blocks=max(_repeats(found)) + 1, controls=False),
    )
    return plan, list(_measurements(found))


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        files += [one for one in inside if not (one.is_dir() or one.name.startswith("."))]
    if not files or len(files) > FILES_MAX:
        raise UsageError(
            "there is nothing to import" if not files else "these are too many files",
            wanted=f"logs of sysbench or pgbench, {FILES_MAX:,} files at most",
            found=f"{len(files):,} files in {', '.join(map(str, paths))}",
        )
    return files


def _named(pattern: str) -> re.Pattern[str]:
    """A pattern of file names as an expression: `{name}` is what stands there up to the next."""
    fields = re.findall(r"\{(\w+)\}", pattern)
    if not fields or len(set(fields)) != len(fields) or not all(map(str.isidentifier, fields)):
        raise UsageError(
            f"--pattern {pattern} names no fields",
            wanted="such as {workload}_{threads}_{port}, each field once",
            found=", ".join(fields) or "no {field}",
        )
    parts = re.split(r"\{(\w+)\}", pattern)
    texts = (
        (rf"(?P<{part}>\d+)" if part == "threads" else rf"(?P<{part}>.+?)")
        if place % 2
        else re.escape(part)
        for place, part in enumerate(parts)
    )
    return re.compile("".join(texts))


def _found(path: Path, mapping: Mapping, names: re.Pattern[str] | None) -> Iterator[LoggedTrial]:
    text = text_of(path)
    logs: list[LoggedRun | LoggedRow] = [*runs_in(text, str(path)), *rows_in(text, str(path))]
    logs = [one for one in logs if isinstance(one, LoggedRun) or "tps" in one.values]
    if not logs:
        raise UsageError(
            f"{path} is no log of sysbench or pgbench",
            wanted="what the tool printed, from its first line to its last",
            hint="tables and HammerDB's results can be audited: dbdyno audit FILE",
        )
    said = _said_by_name(path, names)
    others = [text for name, text in said.items() if name not in FIELDS]
    label = said.get("system") or " ".join(others) or mapping.system or path.stem
    system = label_made_of(mapping.systems.get(label, label))
    if not system:
        raise UsageError(
            f"{path}: what is its system called?",
            wanted="a label of letters and digits",
            found=label,
            hint="say it in the mapping: systems: {" + label + ": NAME}",
        )
    for log in logs:
        threads = int(said.get("threads", log.threads))
        if threads != log.threads:
            raise UsageError(
                f"{path}: its name and its text have different threads",
                wanted=f"{threads}, as the name says",
                found=f"{log.threads} in the text",
                hint="mend the name, or leave {threads} out of the pattern",
            )
        own = log.workload if isinstance(log, LoggedRow) else ""
        yield LoggedTrial(
            log=log,
            path=path,
            system=system,
            workload=said.get("workload") or mapping.workload or own or WITHOUT_NAME,
            threads=threads,
        )


def _said_by_name(path: Path, names: re.Pattern[str] | None) -> dict[str, str]:
    if names is None:
        return {}
    for text in (path.stem, path.name):
        if match := names.fullmatch(text):
            return match.groupdict()
    raise UsageError(
        f"{path.name} does not fit the pattern",
        wanted=names.pattern,
        hint="give only the files that do, or another --pattern",
    )


def _repeats(found: Iterable[LoggedTrial]) -> list[int]:
    """How often each one's cell had been read before it."""
    seen: Counter[tuple[str, str, int]] = Counter()
    repeats = []
    for one in found:
        place = one.system, one.workload, one.threads
        repeats.append(seen[place])
        seen[place] += 1
    return repeats


def _measurements(found: Sequence[LoggedTrial]) -> Iterator[Measurement]:
    blocks: Counter[int] = Counter()
    for number, (one, block) in enumerate(zip(found, _repeats(found), strict=True)):
        trial = Trial(
            run_id="",
            sequence=number,
            block=block,
            position=blocks[block],
            system=one.system,
            cell=Cell(workload=one.workload, threads=one.threads),
            seed=0,
        )
        blocks[block] += 1
        written = datetime.fromtimestamp(one.path.stat().st_mtime, UTC)
        seconds, reported = _seconds(one.log), _reported(one.log)
        yield Measurement(
            trial=trial,
            started_at=written.isoformat("T", "seconds"),
            warmup_s=0,
            window_s=seconds,
            engine=EngineFacts(
                version=_tool(one.log),
                reactor="unknown",
                threads=one.threads,
                cpu_s=0,
                cpu_share_max=0,
                distribution="unknown",
                prepared_statements=False,
            ),
            server=ServerFacts(version="", settings={}, status={}, cpu_s=0),
            intervals=tuple(_intervals(one.log, seconds, reported)),
            failure=_failure(one.log),
            reported=reported,
        )


def _failure(log: LoggedRun | LoggedRow) -> str | None:
    if isinstance(log, LoggedRow) or (log.has_report and not log.failure):
        return None
    return log.failure or "the log ends before its report"


def _tool(log: LoggedRun | LoggedRow) -> str:
    if isinstance(log, LoggedRow):
        return "pgbench"
    return f"sysbench {log.version}".strip()


def _seconds(log: LoggedRun | LoggedRow) -> float:
    """How long it ran; a row that does not tell counts as a second."""
    if isinstance(log, LoggedRow):
        return log.seconds or 1.0
    last = log.intervals[-1].at_s if log.intervals else 1.0
    return float(log.seconds or last)


def _reported(log: LoggedRun | LoggedRow) -> dict[str, float]:
    """Metrics as they were printed, by dbdyno's names."""
    if isinstance(log, LoggedRow):
        printed = {"transactions_per_s": log.values["tps"]}
        printed["latency_ms_avg"] = log.values.get("latency_ms_avg", "")
    else:
        percentiles = {
            f"latency_ms_p{name.replace('.', '')}": text
            for name, text in log.latency_ms.items()
            if name[:1].isdigit()
        }
        printed = {
            "transactions_per_s": log.tps,
            "queries_per_s": log.qps,
            "latency_ms_avg": log.latency_ms.get("avg", ""),
            "latency_ms_max": log.latency_ms.get("max", ""),
            **percentiles,
        }
    return {name: float(text) for name, text in printed.items() if text}


def _intervals(
    log: LoggedRun | LoggedRow, seconds: float, reported: dict[str, float]
) -> Iterator[Interval]:
    """What each printed line says, so that all of them come to the report's totals."""
    lines = log.intervals if isinstance(log, LoggedRun) else []
    ends = [*(one.at_s for one in lines if one.at_s < seconds), seconds]
    rates = [*(float(one.tps) for one in lines), 1.0]
    done = [(end - start) * rate for (start, end), rate in zip(_spans(ends), rates, strict=False)]
    parts = {
        name: _dealt(total, done) for name, total in _totals(log, seconds, sum(done), reported)
    }
    for number, (start, end) in enumerate(_spans(ends)):
        is_last = number == len(ends) - 1
        yield Interval(
            phase=Phase.MEASURED,
            start_s=start,
            end_s=end,
            **{name: column[number] for name, column in parts.items()},
            latency_ns_min=_ns(log, "min"),
            latency_ns_max=_ns(log, "max"),
            histograms=_histograms(log) if is_last else {},
        )


def _totals(
    log: LoggedRun | LoggedRow, seconds: float, seen: float, reported: dict[str, float]
) -> Iterator[tuple[str, int]]:
    """Events, statements and latency of the whole run."""
    counts: dict[str, int] = {}
    if isinstance(log, LoggedRow):
        events = round(reported["transactions_per_s"] * seconds)
    else:
        events, counts = round(seen) if log.events is None else log.events, log.counts
    unnamed = 0 if counts else round(reported.get("queries_per_s", 0) * seconds)
    yield "events", events
    yield "reads", counts.get("read", 0)
    yield "writes", counts.get("write", 0)
    yield "others", counts.get("other", unnamed)
    yield "latency_ns_sum", round(reported.get("latency_ms_avg", 0) * events * 1e6)


def _spans(ends: Sequence[float]) -> list[tuple[float, float]]:
    return list(pairwise([0.0, *ends]))


def _dealt(total: int, shares: Sequence[float]) -> list[int]:
    """A whole number dealt out by shares, none of it lost to rounding."""
    whole = sum(shares)
    weights = [one / whole for one in shares] if whole > 0 else [1 / len(shares)] * len(shares)
    edges = [0, *(round(total * share) for share in accumulate(weights[:-1])), total]
    return [max(0, after - before) for before, after in pairwise(edges)]


def _ns(log: LoggedRun | LoggedRow, name: str) -> int:
    text = log.latency_ms.get(name, "") if isinstance(log, LoggedRun) else ""
    return round(float(text) * 1e6) if text else 0


def _histograms(log: LoggedRun | LoggedRow) -> dict[str, bytes]:
    """The printed histogram, if there is one: counts are added up by doubling."""
    if not isinstance(log, LoggedRun) or not log.histogram:
        return {}
    made = Histogram()
    for ms, times in log.histogram:
        power = Histogram()
        power.record(round(ms * 1e6))
        for bit in bin(min(times, COUNT_MAX))[:1:-1]:
            if bit == "1":
                made.add(power)
            power.add(Histogram.decode(power.encode()))
    return {EVENT: made.encode()}
