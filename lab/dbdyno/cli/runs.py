"""`dbdyno runs`: a workspace's runs, their disk space, and their removal.

`rm` removes runs from the store with their reports. `clean` removes servers' data, shared data too,
and keeps all results; the next run loads data again. Both list the removals and ask first.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from dbdyno.cli import options
from dbdyno.cli.progress import note
from dbdyno.errors import StoreError, UsageError
from dbdyno.experiment.data import loads
from dbdyno.experiment.data.dataset import SYSTEMS
from dbdyno.files import locked, occupied_bytes
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, count, listed, name, say
from dbdyno.plan.known import Fact, known_of
from dbdyno.report.formats.stdout import Output, Result, render
from dbdyno.report.numbers import mebibytes
from dbdyno.report.parts import Table, numeric, table
from dbdyno.report.rows import title_of
from dbdyno.report.tell.plan import TOPICS, facts_of, on_topic
from dbdyno.servers.programs import places
from dbdyno.store import evidence
from dbdyno.store.reading import StoredRun, UnreadableRun
from dbdyno.store.resolved import resolved_run
from dbdyno.store.store import Store, find, opened

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_runs(
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """List all runs, newest first: systems, progress, disk space."""
    with opened(workspace) as store:
        data_bytes = sum(occupied_bytes(home / SYSTEMS) for home in _homes(workspace))
        data_bytes += occupied_bytes(places.cache_folder() / places.INSTANCES)
        program_bytes = sum(map(occupied_bytes, places.programs()))
        runs = tuple(_kept(store, workspace, store.listed()))
    kept = KeptRuns(runs, data_bytes, program_bytes)
    sys.stdout.write(render(kept, output, lang))


@app.command()
def show(
    run_id: options.Run = "latest",
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Show a run's command, systems, workloads, progress and report."""
    with opened(workspace) as store:
        run = resolved_run(store, find(store, run_id))
        (kept,) = _kept(store, workspace, [run])
        shown = ShownRun(run, kept, store.verified(run.run_id), workspace / run.run_id)
    sys.stdout.write(render(shown, output, lang))


@app.command("rm")
def remove(
    run_ids: options.RunIds,
    yes: options.Yes = False,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Remove runs with their measurements and reports."""
    with opened(workspace) as store, ExitStack() as held:
        chosen = dict.fromkeys(run_ids)
        if unknown := [one for one in chosen if one not in store.run_ids()]:
            raise StoreError(
                f"no run {', '.join(unknown)} in this workspace",
                wanted="ids of runs that are stored",
                found=", ".join(store.run_ids()) or "an empty store",
                hint=options.next_command("runs", "list", workspace=workspace),
            )
        for run_id in chosen:
            held.enter_context(store.locked(run_id))
        runs = [run for run in store.listed() if run.run_id in chosen]
        sizes = {kept.run_id: kept.bytes for kept in _kept(store, workspace, runs)}
        confirm(
            sizes,
            "these runs go, with their reports; there is no way back",
            yes=yes,
        )
        for run_id in chosen:
            store.remove(run_id)
            shutil.rmtree(workspace / run_id, ignore_errors=True)
    note(f"{count(len(chosen), 'run')} removed")


@app.command()
def clean(
    yes: options.Yes = False,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Delete loaded data sets and keep all results. The next run loads its data set again."""
    with ExitStack() as held:
        free: dict[Path, list[Path]] = {}
        for home in _homes(workspace):
            free |= _unused(home, held)
        if not free:
            note(f"nothing to clean in {workspace}")
            return
        sizes = {folder: occupied_bytes(folder) for folder in free}
        confirm(sizes, "servers' data go, results stay", yes=yes)
        for folder, parts in free.items():
            with loads.choosing(folder.parents[1], note):
                for part in parts:
                    loads.remove(part) if part.is_dir() else part.unlink()
                with suppress(OSError):  # another lab has put a new load there meanwhile
                    folder.rmdir()
    places.clear()  # folders of the cache that stood for those
    note(f"{mebibytes(sum(sizes.values()))} freed")


def _homes(workspace: Path) -> list[Path]:
    """Folders with loads that the workspace's runs can use, and those of a fleet's hosts here."""
    cache = places.cache_folder()
    return [workspace, cache, *sorted(cache.glob(f"{places.FLEET}/*"))]


def _unused(home: Path, held: ExitStack) -> dict[Path, list[Path]]:
    """Unused folders of servers' data, with their content.

    Args:
        held: holds their locks against new users.
    """
    folders: dict[Path, list[Path]] = {}
    if not (home / SYSTEMS).is_dir():
        return folders
    with loads.choosing(home, note):
        for folder in sorted(one for one in (home / SYSTEMS).glob("*") if one.is_dir()):
            parts = sorted(folder.iterdir())
            inner = [part.name for part in parts if part.is_dir()]
            locks = [loads.lock_of(home, folder.name)]
            locks += [loads.lock_of(home, folder.name, one) for one in inner]
            try:
                with ExitStack() as taken:
                    for lock in locks:
                        taken.enter_context(locked(lock, folder.name))
                    held.enter_context(taken.pop_all())
            except StoreError as error:
                note(f"{folder.name} stays: {error.message}")
            else:
                folders[folder] = parts
    return folders


def confirm(sizes: Mapping[str, int] | Mapping[Path, int], question: str, *, yes: bool) -> None:
    """List the removals with their sizes and ask; without a terminal --yes is needed."""
    lines = [f"{place}  {mebibytes(size)}" for place, size in sizes.items()]
    total = f"{mebibytes(sum(sizes.values()))} in all"
    note("\n".join([*lines, total]))
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"nothing was removed: {question}",
            wanted="an answer, or --yes",
            found="no terminal to ask",
        )
    typer.confirm(f"{question}. Remove?", abort=True, err=True)


# Lists of runs, and the facts of a run.


@dataclass(frozen=True)
class KeptRun:
    """A run in a list, or the reason for an unreadable run."""

    run_id: str
    created_at: str
    title: Text
    state: Text
    bytes: int


def _kept(
    store: Store, workspace: Path, runs: Sequence[StoredRun | UnreadableRun]
) -> Iterator[KeptRun]:
    sizes = store.sizes()
    for run in runs:
        size = sizes.get(run.run_id, 0) + occupied_bytes(workspace / run.run_id)
        if isinstance(run, UnreadableRun):
            why = say("cannot be read: {reason}", reason=run.reason)
            yield KeptRun(run.run_id, run.created_at, name("?"), why, size)
        else:
            state = _state(store, run)
            yield KeptRun(run.run_id, run.created_at, title_of(run.plan), state, size)


def _state(store: Store, run: StoredRun) -> Text:
    try:
        completion = evidence.completion(store, run.run_id)
    except StoreError as error:
        return say("damaged: {reason}", reason=error.found or error.message)
    trials = say("{done} of {planned} trials", done=completion.done, planned=completion.planned)
    if known_of(run.plan).has(Fact.ELSEWHERE):
        trials = say("{trials}, imported", trials=count(completion.done, "trial"))
    return trials if completion.complete else say("{trials}, not complete", trials=trials)


@dataclass(frozen=True)
class KeptRuns(Result):
    """All runs of a workspace, and the sizes of servers' data and of downloaded programs."""

    runs: tuple[KeptRun, ...]
    data_bytes: int
    program_bytes: int

    def plain(self, language: Language) -> Iterator[Text | Table]:
        """The table, then the sizes."""
        yield from self.markdown()
        yield say("servers' data: {size} (dbdyno runs clean)", size=mebibytes(self.data_bytes))
        programs = mebibytes(self.program_bytes)
        yield say("servers' programs: {size} (dbdyno servers clean)", size=programs)

    def markdown(self) -> Iterator[Table]:
        """A line for each run."""
        yield table(
            say("Runs, the newest first"),
            self.runs,
            (say("Run"), lambda one: one.run_id),
            (say("When"), lambda one: one.created_at[:16].replace("T", " ")),
            (say("What"), lambda one: one.title),
            (say("Trials"), lambda one: one.state),
            (numeric(say("Size")), lambda one: mebibytes(one.bytes)),
        )

    def document(self) -> dict[str, Any]:
        """The same, sizes in bytes."""
        sizes = {"data_bytes": self.data_bytes, "program_bytes": self.program_bytes}
        return {"runs": [_values(one) for one in self.runs], **sizes}


def _values(kept: KeptRun) -> dict[str, Any]:
    return {
        "run_id": kept.run_id,
        "created_at": kept.created_at,
        "title": str(kept.title),
        "state": str(kept.state),
        "bytes": kept.bytes,
    }


@dataclass(frozen=True)
class ShownRun(Result):
    """A run with all facts short of a judgement."""

    run: StoredRun
    kept: KeptRun
    digest: str
    folder: Path

    def plain(self, language: Language) -> Iterator[Table]:
        """A line for each fact."""
        yield from self.markdown()

    def markdown(self) -> Iterator[Table]:
        """A table of two columns."""
        yield table(
            self.kept.title,
            list(self._facts()),
            (say("What"), lambda row: row[0]),
            (say("This run"), lambda row: row[1]),
        )

    def document(self) -> dict[str, Any]:
        """The facts, with the whole plan."""
        plan = self.run.plan.model_dump(mode="json", exclude_defaults=True)
        return {**_values(self.kept), "digest": self.digest, "plan": plan}

    def _facts(self) -> Iterator[tuple[Text, Text]]:
        run, plan = self.run, self.run.plan
        page = self.folder / "report.html"
        yield say("run"), name(run.run_id)
        yield say("begun"), name(run.created_at)
        yield say("command"), name(run.command)
        yield say("systems"), listed(system.label for system in plan.systems)
        yield say("workloads"), listed(workload.label for workload in plan.workloads)
        yield TOPICS["load"], on_topic(facts_of(plan), "load")
        yield say("trials"), self.kept.state
        yield say("size"), mebibytes(self.kept.bytes)
        yield say("digest"), name(self.digest or "-")
        yield say("report"), name(str(page) if page.is_file() else "-")
