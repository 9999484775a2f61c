"""Results of other tools become a run: a plan, and its measurements.

Every run in a file is imported whole (`recorded`). Unknown facts (settings, counters, the machine,
the order of runs) stay empty, so an imported run has numbers, ratios and charts, and no verdict.
Repeats of a cell become blocks, in the order in which they are read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.read import foreign_text_of
from dbdyno.audit.recorded import TABLE, Recorded, recorded_in
from dbdyno.errors import UsageError
from dbdyno.measurement.measurement import Cell, EngineFacts, Measurement, ServerFacts, Trial
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import IMPORTED_SCHEME, SystemPlan, label_made_of
from dbdyno.plan.workload import WorkloadPlan

FILES_MAX: Final = 10_000
NAMED_MAX: Final = 5
FIELDS: Final = ("system", "workload", "threads", "repeat")
"""Fields of a file name's pattern; all others name the system too."""


class ImportedTrial(NamedTuple):
    """A run of a file, with system, workload and threads from the file's name."""

    run: Recorded
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
        UsageError: a file without results, or with a name that does not fit the pattern; a
            pattern without fields.
    """
    names = _named(pattern) if pattern else None
    trials = [one for path in _files(paths) for one in _found(path, mapping, names)]
    try:
        return _plan_of(trials, title), list(_measurements(trials))
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"what stands in {', '.join(map(str, paths[:NAMED_MAX]))} is no run that can be stored",
            wanted=first["msg"],
            found=f"{'.'.join(map(str, first['loc']))}: {first['input']!r:.60}",
            hint="give only the files of one experiment, or mend the number",
        ) from error


def _plan_of(trials: Sequence[ImportedTrial], title: str) -> Plan:
    return Plan(
        title=title,
        systems=tuple(
            SystemPlan(label=label, reference=f"{IMPORTED_SCHEME}{label}")
            for label in dict.fromkeys(one.system for one in trials)
        ),
        workloads=tuple(
            WorkloadPlan(name=label, label=label)
            for label in dict.fromkeys(one.workload for one in trials)
        ),
        load=LoadPlan(threads=tuple(sorted({one.threads for one in trials}))),
        trial=TrialPlan(warmup_s=0, window_s=max(1.0, *(one.run.seconds for one in trials))),
        design=DesignPlan(blocks=max(_repeats(trials)) + 1),
    )


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        inside = sorted(filter(Path.is_file, path.rglob("*"))) if path.is_dir() else [path]
        files += [one for one in inside if not one.name.startswith(".")]
    if not files or len(files) > FILES_MAX:
        raise UsageError(
            "there is nothing to import" if not files else "these are too many files",
            wanted=f"logs or tables of results, {FILES_MAX:,} files at most",
            found=f"{len(files):,} files in {', '.join(map(str, paths))}",
        )
    return files


def _named(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of file names; `{name}` matches up to the next field."""
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


def _found(path: Path, mapping: Mapping, names: re.Pattern[str] | None) -> Iterator[ImportedTrial]:
    said = _said_by_name(path, names)
    workload = said.get("workload") or mapping.workload
    runs = recorded_in(
        foreign_text_of(path), str(path), mapping.model_copy(update={"workload": workload})
    )
    if not runs:
        raise UsageError(
            f"{path} holds no results that are known",
            wanted="a log of sysbench, pgbench or HammerDB, what `dbdyno sysbench --output` writes,"
            " or a table with load levels and metrics (HTML, Markdown, CSV, a cell a line)",
            hint="write its numbers into a CSV file with the columns threads, system, tps",
        )
    others = [text for name, text in said.items() if name not in FIELDS]
    by_name = said.get("system") or " ".join(others)
    is_page_of_several = len({run.system for run in runs}) > 1
    for run in runs:
        label = by_name or mapping.system or run.system or path.stem
        if is_page_of_several:
            label = f"{by_name} {run.system}".strip()
        system = label_made_of(mapping.systems.get(label, label))
        if not system:
            raise UsageError(
                f"{path}: what is its system called?",
                wanted="a label of letters and digits",
                found=label,
                hint="say it in the mapping: systems: {" + label + ": NAME}",
            )
        yield ImportedTrial(
            run=run,
            path=path,
            system=system,
            workload=(run.workload if run.tool == TABLE else workload or run.workload)
            or "unnamed workload",  # a table's has its further conditions
            threads=_threads(path, said, run),
        )


def _threads(path: Path, said: dict[str, str], run: Recorded) -> int:
    threads = int(said.get("threads", run.threads))
    if run.threads != threads:
        raise UsageError(
            f"{path}: its name and its text have different threads",
            wanted=f"{threads}, as the name says",
            found=f"{run.threads} in the text",
            hint="correct the name, or leave {threads} out of the pattern",
        )
    return threads


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


def _repeats(trials: Iterable[ImportedTrial]) -> list[int]:
    """For each trial the number of earlier trials of its cell."""
    seen: Counter[tuple[str, str, int]] = Counter()
    repeats = []
    for trial in trials:
        place = trial.system, trial.workload, trial.threads
        repeats.append(seen[place])
        seen[place] += 1
    return repeats


def _measurements(trials: Sequence[ImportedTrial]) -> Iterator[Measurement]:
    blocks: Counter[int] = Counter()
    for number, (recorded, block) in enumerate(zip(trials, _repeats(trials), strict=True)):
        trial = Trial(
            run_id="",
            sequence=number,
            block=block,
            position=blocks[block],
            system=recorded.system,
            cell=Cell(workload=recorded.workload, threads=recorded.threads),
            seed=0,
        )
        blocks[block] += 1
        written = datetime.fromtimestamp(recorded.path.stat().st_mtime, UTC)
        yield Measurement(
            trial=trial,
            started_at=written.isoformat("T", "seconds"),
            warmup_s=0,
            window_s=recorded.run.seconds,
            engine=EngineFacts(
                version=recorded.run.tool,
                reactor="unknown",
                threads=recorded.threads,
                cpu_s=0,
                cpu_share_max=0,
                distribution="unknown",
                prepared_statements=False,
            ),
            server=ServerFacts(version="", settings={}, status={}, cpu_s=0),
            intervals=recorded.run.intervals,
            failure=recorded.run.failure,
            reported=recorded.run.reported,
        )
