"""Results of other tools become a run: a plan, and its measurements.

Every run in a file is imported whole (`recorded`). Unknown facts (settings, counters, the machine,
the order of runs) stay empty, so an imported run has numbers, ratios and charts, and no verdict.
Repeats of a cell become blocks, in the order in which they are read; runs of one name that did
different work are told apart (`apart`). Files in several folders are named by their folders.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from dbdyno.audit.folders import Folders, kind_of
from dbdyno.audit.logs.apart import told_apart
from dbdyno.audit.logs.other_logs import logs_in
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.read import TOOLS, foreign_text_of
from dbdyno.audit.recorded import TABLE, Recorded, recorded_in
from dbdyno.errors import UsageError
from dbdyno.measurement.measurement import Cell, EngineFacts, Measurement, ServerFacts, Trial
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import IMPORTED_SCHEME, SystemPlan, label_made_of
from dbdyno.plan.workload import WorkloadPlan

FILES_MAX: Final = 10_000
RUNS_MAX: Final = 10_000
NAMED_MAX: Final = 5
FIELDS: Final = ("system", "workload", "threads", "repeat")
"""Fields of a file name's pattern; all others name the system too."""
UNNAMED: Final = "unnamed workload"


@dataclass(frozen=True)
class ImportedRun:
    """A run made of other tools' results.

    Attributes:
        notes: facts on the files for the reader, by subject.
    """

    plan: Plan
    measurements: list[Measurement]
    notes: dict[str, str]


@dataclass(frozen=True)
class FileNames:
    """A pattern of file names.

    Attributes:
        folders: number of the folders before a name that the pattern has.
    """

    pattern: re.Pattern[str]
    folders: int


class ImportedTrial(NamedTuple):
    """A run of a file, with system, workload and threads from the file's name."""

    run: Recorded
    path: Path
    system: str
    workload: str
    threads: int


def imported(paths: Sequence[Path], title: str, mapping: Mapping, pattern: str = "") -> ImportedRun:
    """The plan and the measurements of all logs; their trials have no run's id yet.

    Args:
        paths: files, and folders of which every file is read.
        pattern: of file names, such as ``{workload}_{threads}_{port}``, with folders before them.

    Raises:
        UsageError: a file without results, or with a name that does not fit the pattern; a
            pattern without fields.
    """
    files = _files(paths)
    names = _names_of(pattern) if pattern else None
    folders = Folders(files, is_used=any(path.is_dir() for path in paths))
    every = [one for path in files for one in _found(path, mapping, names, folders)]
    trials = _named_by_files([trial for trial in every if not trial.run.test_without_sql])
    others = [trial for trial in every if trial.run.test_without_sql]
    if not trials:
        raise UsageError(
            f"there is no test of a database in {', '.join(map(str, paths[:NAMED_MAX]))}",
            wanted="runs that ask a database",
            found=_left_out(others),
        )
    workloads = told_apart([one.workload for one in trials], [one.run.work for one in trials])
    pairs = list(zip(trials, workloads, strict=True))
    apart = sorted({workload for trial, workload in pairs if workload != trial.workload})
    notes = {
        "left out, as it is no load on a database": _left_out(others),
        "told apart, as runs of one name did different work": "; ".join(apart),
    }
    trials = [trial._replace(workload=workload) for trial, workload in pairs]
    try:
        return ImportedRun(
            _plan_of(trials, title),
            list(_measurements(trials)),
            {subject: text for subject, text in notes.items() if text},
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"what stands in {', '.join(map(str, paths[:NAMED_MAX]))} is no run that can be stored",
            wanted=first["msg"],
            found=f"{'.'.join(map(str, first['loc']))}: {first['input']!r:.60}",
            hint="give only the files of one experiment, or mend the number",
        ) from error


def _named_by_files(trials: list[ImportedTrial]) -> list[ImportedTrial]:
    """Name unnamed workloads of logs by their files, if a system has files of several names."""
    kinds: dict[str, set[str]] = {}
    for trial in filter(_is_unnamed, trials):
        kinds.setdefault(trial.system, set()).add(kind_of(trial.path))
    if all(len(names) < 2 for names in kinds.values()):
        return trials
    return [
        one._replace(workload=kind_of(one.path) or UNNAMED) if _is_unnamed(one) else one
        for one in trials
    ]


def _is_unnamed(trial: ImportedTrial) -> bool:
    return trial.workload == UNNAMED and trial.run.tool != TABLE


def _left_out(others: Sequence[ImportedTrial]) -> str:
    places = [
        f"{one.path.name}, line {one.run.line}: sysbench {one.run.test_without_sql}"
        for one in others
    ]
    more = [f"and {len(places) - NAMED_MAX} more"] if len(places) > NAMED_MAX else []
    return "; ".join([*places[:NAMED_MAX], *more])


def _plan_of(trials: Sequence[ImportedTrial], title: str) -> Plan:
    if len(trials) > RUNS_MAX:  # each is a transaction of the store
        raise UsageError(
            "these are too many runs for an import",
            wanted=f"{RUNS_MAX:,} at most",
            found=f"{len(trials):,}",
            hint="import parts of them, each under a title of its own",
        )
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
        files += [one for one in _below(path) if not one.name.startswith(".")]
    if not files or len(files) > FILES_MAX:
        raise UsageError(
            "there is nothing to import" if not files else "these are too many files",
            wanted=f"logs or tables of results, {FILES_MAX:,} files at most",
            found=f"{len(files):,} files in {', '.join(map(str, paths))}",
        )
    return files


def _below(path: Path) -> list[Path]:
    """The path, or all files in the folder."""
    try:
        return sorted(filter(Path.is_file, path.rglob("*"))) if path.is_dir() else [path]
    except (OSError, RecursionError) as error:
        raise UsageError(
            f"the files in {path} cannot be listed",
            found=getattr(error, "strerror", None) or "folders in folders without end",
            hint="name the folder of the results itself",
        ) from error


def _names_of(pattern: str) -> FileNames:
    """Compile a pattern of file names and folders; `{name}` matches up to the next field, `*` any
    text."""
    fields = re.findall(r"\{(\w+)\}", pattern)
    if not fields or len(set(fields)) != len(fields) or not all(map(str.isidentifier, fields)):
        raise UsageError(
            f"--pattern {pattern} names no fields",
            wanted="such as {workload}_{threads}_{port}, each field once",
            found=", ".join(fields) or "no {field}",
        )
    bare = pattern.removeprefix("./").strip("/")
    texts = (
        (rf"(?P<{part}>\d+)" if part == "threads" else rf"(?P<{part}>[^/]+?)")
        if place % 2
        else re.escape(part).replace(r"\*", "[^/]*")
        for place, part in enumerate(re.split(r"\{(\w+)\}", bare))
    )
    return FileNames(re.compile("".join(texts)), bare.count("/"))


def _found(
    path: Path, mapping: Mapping, names: FileNames | None, folders: Folders
) -> Iterator[ImportedTrial]:
    text, said = foreign_text_of(path), _said_by_name(path, names)
    workload = said.get("workload") or mapping.workload
    runs = recorded_in(text, str(path), mapping.model_copy(update={"workload": workload}))
    if not runs:
        raise UsageError(
            f"{path} holds no results that are known",
            wanted=f"a log of {TOOLS}, the plain log of `dbdyno sysbench`,"
            " or a table with load levels and metrics (HTML, Markdown, CSV, a cell a line)",
            found=logs_in(text, str(path)).begun or None,
            hint="write its numbers into a CSV file with the columns threads, system, tps",
        )
    own, in_pattern = (path.absolute().parent.name, names.folders) if names else ("", 0)
    by_name = said.get("system") or _other_fields(said)
    differing = _differing(runs)
    for run in runs:
        threads = _threads(path, said, run)
        is_table = run.tool == TABLE
        if is_table and differing:
            label = f"{by_name} {run.system}".strip()
        elif is_table:
            label = by_name or mapping.system or run.system
        else:
            label = by_name or mapping.system or folders.system(path, {threads}, in_pattern)
            if differing:
                label = f"{label or own or path.stem} {getattr(run, differing)}".strip()
        label = label or own or path.stem
        system = label_made_of(mapping.systems.get(label, label))
        if not system:
            raise UsageError(
                f"{path}: what is its system called?",
                wanted="a label of letters and digits",
                found=label,
                hint="say it in the mapping: systems: {" + label + ": NAME}",
            )
        # the workload of a table has its further conditions
        named = run.workload if is_table else workload or run.workload or folders.workload(path)
        yield ImportedTrial(run, path, system, named or UNNAMED, threads)


def _other_fields(said: dict[str, str]) -> str:
    return " ".join(text for name, text in said.items() if name not in FIELDS)


def _differing(runs: Sequence[Recorded]) -> str:
    """The attribute by which the systems of a file are told apart; empty if it has one system."""
    for name in ("system", "server"):
        if len({getattr(run, name) for run in runs} - {""}) > 1:
            return name
    return ""


def _threads(path: Path, said: dict[str, str], run: Recorded) -> int:
    threads = int(said.get("threads", run.threads))
    if threads < 1 and not run.test_without_sql:
        raise UsageError(
            f"line {run.line} of {path}: how many connections had this run?",
            wanted="the head of its log, which says so, or a file name that does",
            hint="say where in the name: --pattern '{workload}_{threads}.log'",
        )
    if run.threads not in (0, threads):
        raise UsageError(
            f"{path}: its name and its text have different threads",
            wanted=f"{threads}, as the name says",
            found=f"{run.threads} in the text",
            hint="correct the name, or leave {threads} out of the pattern",
        )
    return threads


def _said_by_name(path: Path, names: FileNames | None) -> dict[str, str]:
    """Fields of the file's name and of the folders before it."""
    if names is None:
        return {}
    parts = path.absolute().parts
    folders = parts[len(parts) - 1 - names.folders : -1]
    for text in (path.stem, path.name):
        if match := names.pattern.fullmatch("/".join([*folders, text])):
            return match.groupdict()
    raise UsageError(
        f"{path.name} does not fit the pattern",
        wanted=names.pattern.pattern,
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
