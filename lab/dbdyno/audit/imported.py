"""Results of other tools become a run: a plan, and its measurements.

Every run in a file is imported whole (`recorded`). Unknown facts (settings, counters, the machine,
the order of runs) stay empty, so an imported run has numbers, ratios and charts, and no verdict.
Systems, workloads and load levels have their names from a pattern, the text, or the names of files
and folders (`names`), and `ImportedRun.files` tells them. Repeats of a cell become blocks, in the
order in which they are read; runs of one name with other work or set-ups are told apart (`apart`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from dbdyno.audit.logs.apart import set_ups_apart, told_apart
from dbdyno.audit.names import UNKNOWN, NamedLog, Names, crossed, names_of, parts_of
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.recorded import TABLE, Recorded
from dbdyno.audit.results import ResultFile, results_in
from dbdyno.errors import UsageError
from dbdyno.language.words import in_utf8
from dbdyno.measurement.measurement import Cell, EngineFacts, Measurement, ServerFacts, Trial
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import IMPORTED_SCHEME, SystemPlan, label_made_of
from dbdyno.plan.workload import WorkloadPlan

RUNS_MAX: Final = 10_000
NAMED_MAX: Final = 5
LABEL_MAX: Final = 64
"""Characters of a label; a longer name of a set-up is a number."""
SYSTEM_MAX: Final = 48
FIELDS: Final = ("system", "workload", "threads", "repeat")
"""Fields of a file name's pattern; all others name the system too."""
UNNAMED: Final = "unnamed workload"


@dataclass(frozen=True)
class ImportedFile:
    """Runs of a file with one system and workload.

    Attributes:
        name: of the file, with its folders below the folder of all files.
        repeats: the number of each run's repeat of its cell, from 1.
    """

    name: str
    system: str
    workload: str
    threads: tuple[int, ...]
    repeats: tuple[int, ...]


@dataclass(frozen=True)
class ImportedRun:
    """A run made of other tools' results.

    Attributes:
        notes: facts on the files for the reader, by subject.
        files: the names of their runs.
        patterns: forms of the files' names as understood, without a pattern of the user, the most
            frequent first.
        unclear: a system whose name may have the workload in it; empty if all are clear.
    """

    plan: Plan
    measurements: list[Measurement]
    notes: dict[str, str]
    files: tuple[ImportedFile, ...]
    patterns: tuple[str, ...]
    unclear: str


@dataclass(frozen=True)
class FileNames:
    """A pattern of file names.

    Attributes:
        folders: number of folders before the name in the pattern.
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
    said_by = _names_of(pattern) if pattern else None

    def mapping_of(path: Path) -> Mapping:
        workload = _matched(path, said_by).get("workload") or mapping.workload
        return mapping.model_copy(update={"workload": workload})

    files, left_out = results_in(paths, mapping_of)
    patterns = Counter[str]()
    every = list[ImportedTrial]()
    for file, names in zip(files, _names_by_file(files, mapping, said_by), strict=True):
        every += _trials(file, mapping, _said_by_name(file.path, said_by), names)
        patterns.update([names.pattern] if names.pattern and not pattern else [])
    trials = [trial for trial in every if not trial.run.test_without_sql]
    others = [trial for trial in every if trial.run.test_without_sql]
    if not trials:
        raise UsageError(
            f"there is no test of a database in {', '.join(map(str, paths[:NAMED_MAX]))}",
            wanted="runs that ask a database",
            found="; ".join(filter(None, (_left_out(others), _some(left_out)))) or None,
        )
    unclear = "" if pattern else _unclear(trials)
    trials, apart = _told_apart(trials)
    notes = {
        "left out, as they hold no results": _some(left_out),
        "left out, as it is no load on a database": _left_out(others),
        **apart,
    }
    try:
        return ImportedRun(
            _plan_of(trials, title),
            list(_measurements(trials)),
            {subject: text for subject, text in notes.items() if text},
            tuple(_files_of(trials)),
            tuple(text for text, _ in patterns.most_common()),
            unclear,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"what stands in {', '.join(map(str, paths[:NAMED_MAX]))} is no run that can be stored",
            wanted=first["msg"],
            found=f"{'.'.join(map(str, first['loc']))}: {first['input']!r:.60}",
            hint="give only the files of one experiment, or mend the number",
        ) from error


def _told_apart(trials: Sequence[ImportedTrial]) -> tuple[list[ImportedTrial], dict[str, str]]:
    """Runs with other work or another set-up under names of their own, and notes on them."""
    workloads = told_apart([one.workload for one in trials], [one.run.work for one in trials])
    pairs = list(zip(trials, workloads, strict=True))
    by_work = sorted({workload for trial, workload in pairs if workload != trial.workload})
    named = [trial._replace(workload=workload) for trial, workload in pairs]
    set_ups = list(_set_ups(named))
    by_set_up = dict.fromkeys(f"{system}: {words}" for system, words in set_ups if words)
    named = [
        trial._replace(system=system) for trial, (system, _) in zip(named, set_ups, strict=True)
    ]
    return named, {
        "told apart, as runs of one name did different work": "; ".join(by_work),
        "told apart, as settings or headings in their log differ": _some(list(by_set_up)),
        "taken for repeats, as nothing in their log tells them apart": _some(list(_alike(named))),
    }


def _set_ups(trials: Sequence[ImportedTrial]) -> Iterator[tuple[str, str]]:
    """For each run its system and its set-up in words, which is part of the system's name if
    set-ups of a cell differ in a log."""
    for _, group in groupby(trials, key=lambda trial: trial.path):
        runs = list(group)
        cells = [(one.system, one.workload, one.threads) for one in runs]
        words = set_ups_apart(cells, [one.run.set_up for one in runs])
        pairs = [(one.system, text) for one, text in zip(runs, words, strict=True)]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(words), 1)}
        labels = {pair: label_made_of(" ".join(pair)) for pair in pairs}
        is_long = any(len(" ".join(pair).strip()) > LABEL_MAX for pair in labels)
        if any(words) and (is_long or len(set(labels.values())) < len(labels)):
            labels = {
                (system, text): label_made_of(f"{system[:SYSTEM_MAX]} set-up {numbers[text]}")
                for system, text in labels
            }
        yield from ((labels[pair], pair[1]) for pair in pairs)


def _alike(trials: Sequence[ImportedTrial]) -> Iterator[str]:
    """Cells with several runs of a log, unless commands prove the same work."""
    runs: dict[tuple[Path, str, str, int], list[Recorded]] = {}
    for trial in trials:
        if trial.run.tool != TABLE and trial.run.failure is None:
            cell = trial.path, trial.system, trial.workload, trial.threads
            runs.setdefault(cell, []).append(trial.run)
    for (path, _, workload, threads), alike in runs.items():
        if len(alike) > 1 and any(run.work.options is None for run in alike):
            yield f"{in_utf8(path.name)}: {len(alike)} runs of {workload}, threads {threads}"


def _left_out(others: Sequence[ImportedTrial]) -> str:
    return _some(
        [
            f"{in_utf8(one.path.name)}, line {one.run.line}: sysbench {one.run.test_without_sql}"
            for one in others
        ]
    )


def _some(texts: Sequence[str]) -> str:
    """A few of many texts, and the number of the others."""
    more = [f"and {len(texts) - NAMED_MAX} more"] if len(texts) > NAMED_MAX else []
    return "; ".join([*texts[:NAMED_MAX], *more])


def _unclear(trials: Sequence[ImportedTrial]) -> str:
    """A system of logs without workload whose name may have it; empty without."""
    systems = [
        one.system for one in trials if one.run.tool != TABLE and one.workload.startswith(UNNAMED)
    ]
    return systems[0] if crossed(systems) else ""


def _files_of(trials: Sequence[ImportedTrial]) -> Iterator[ImportedFile]:
    """Each file's runs by system and workload, in order."""
    paths = list(dict.fromkeys(trial.path for trial in trials))
    folders = (parts[:-1] for parts in parts_of(paths))
    shown = {
        path: "/".join([*parts, in_utf8(path.name)])
        for path, parts in zip(paths, folders, strict=True)
    }
    runs: dict[tuple[Path, str, str], list[tuple[int, int]]] = {}
    for trial, repeat in zip(trials, _repeats(trials), strict=True):
        of_file = runs.setdefault((trial.path, trial.system, trial.workload), [])
        of_file.append((trial.threads, repeat + 1))
    for (path, system, workload), numbers in runs.items():
        threads, repeats = zip(*numbers, strict=True)
        yield ImportedFile(shown[path], system, workload, threads, repeats)


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


def _names_by_file(
    files: Sequence[ResultFile], mapping: Mapping, said_by: FileNames | None
) -> list[Names]:
    """The names in each log's path; of a system only in folders without fields of a pattern."""
    logs = [file for file in files if file.is_log]
    paths = [
        NamedLog(
            parts,
            frozenset(run.threads for run in file.runs if run.threads),
            has_workload=bool(mapping.workload) or all(run.workload for run in file.runs),
        )
        for file, parts in zip(logs, parts_of([file.path for file in logs]), strict=True)
    ]
    names = names_of(paths)
    if said_by:
        ends = (max(0, len(path.parts) - 1 - said_by.folders) for path in paths)
        bare = [
            replace(one, parts=(*one.parts[:end], "")) for one, end in zip(paths, ends, strict=True)
        ]
        pairs = zip(names, names_of(bare), strict=True)
        names = [replace(one, system=folder.system) for one, folder in pairs]
    elif mapping.system and len({one.system for one in names}) > 1:
        names = [replace(one, workload=one.workload or one.system) for one in names]
    by_path = {file.path: one for file, one in zip(logs, names, strict=True)}
    return [by_path.get(file.path, UNKNOWN) for file in files]


def _trials(
    file: ResultFile, mapping: Mapping, said: dict[str, str], names: Names
) -> Iterator[ImportedTrial]:
    """The runs of a file, named by a pattern, the mapping, the text, and its path."""
    path, runs = file.path, file.runs
    by_name = said.get("system") or _other_fields(said)
    own = names.system or in_utf8(path.absolute().parent.name) if said else names.label(path)
    differing = _differing(runs)
    for run in runs:
        threads = _threads(path, said, run, names)
        is_table = run.tool == TABLE
        if is_table and differing:
            label = f"{by_name} {run.system}".strip()
        elif is_table:
            label = by_name or mapping.system or run.system
        else:
            label = by_name or mapping.system or own
            if differing:
                label = f"{label} {getattr(run, differing)}".strip()
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
        by_pattern = said.get("workload") or mapping.workload
        workload = run.workload if is_table else by_pattern or run.workload or names.workload
        yield ImportedTrial(run, path, system, workload or UNNAMED, threads)


def _other_fields(said: dict[str, str]) -> str:
    return " ".join(text for name, text in said.items() if name not in FIELDS)


def _differing(runs: Sequence[Recorded]) -> str:
    """The attribute by which the systems of a file are told apart; empty if it has one system."""
    for name in ("system", "server"):
        if len({getattr(run, name) for run in runs} - {""}) > 1:
            return name
    return ""


def _threads(path: Path, said: dict[str, str], run: Recorded, names: Names) -> int:
    is_table = run.tool == TABLE
    threads = int(said.get("threads") or (0 if said or is_table else names.threads) or run.threads)
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
            hint="correct the name, or give a --pattern without {threads}",
        )
    return threads


def _said_by_name(path: Path, names: FileNames | None) -> dict[str, str]:
    """Fields of the file's name and of the folders before it; UsageError without a match."""
    said = _matched(path, names)
    if names is None or said:
        return said
    raise UsageError(
        f"{path.name} does not fit the pattern",
        wanted=names.pattern.pattern,
        hint="give only the files that do, or another --pattern",
    )


def _matched(path: Path, names: FileNames | None) -> dict[str, str]:
    if names is None:
        return {}
    parts = path.absolute().parts
    folders = parts[len(parts) - 1 - names.folders : -1]
    texts = (in_utf8("/".join([*folders, text])) for text in (path.stem, path.name))
    match = next(filter(None, map(names.pattern.fullmatch, texts)), None)
    return match.groupdict() if match else {}


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
