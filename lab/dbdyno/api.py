"""A run for notebooks and scripts: `run = dbdyno.load("latest")`.

A report's content as values: tables as polars frames, verdicts, charts shown by Jupyter. Values are
computed on first use; no run is measured or changed. The command line imports this module too, so
packages of a notebook are loaded on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbdyno.errors import BundleError, UsageError
from dbdyno.judge.judgement import JudgedRun, Judgement, judge
from dbdyno.judge.uses.gate import Gate, gate, gate_against
from dbdyno.language.catalogues import Language
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.outcome import RunFacts
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import Plan
from dbdyno.report import story, write
from dbdyno.report.charts.drawing import Drawing, draw
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.formats.summary import Summary
from dbdyno.report.parts import Figure
from dbdyno.report.rows import attempts
from dbdyno.report.tell import findings as tell
from dbdyno.report.tell.measured import cell_title
from dbdyno.report.tell.verdicts import reason
from dbdyno.report.write import Written
from dbdyno.store import evidence
from dbdyno.store.evidence import Evidence

if TYPE_CHECKING:
    import polars

WORKSPACE: Final = "dbdyno-runs"


def load(run: str | Path = "latest", workspace: str | Path = WORKSPACE) -> Run:
    """A stored run or a bundle.

    Args:
        run: a run's id or `latest`, a bundle's file, a run's own folder, or a workspace's folder
            for its newest run.
        workspace: the folder in which ids are looked up, and reports of bundles are written.

    Raises:
        StoreError: the run is missing. BundleError: the file is no sound bundle.
    """
    return Run(evidence.load(run, Path(workspace).expanduser()))


class Run:
    """A run, its judgement and its report.

    Attributes:
        evidence: the run as stored, with all its measurements.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    @property
    def id(self) -> str:
        return self.evidence.run.run_id

    @property
    def plan(self) -> Plan:
        return self.evidence.plan

    @property
    def facts(self) -> RunFacts:
        """Time, machine and command of the run, and its completeness."""
        return self.evidence.facts

    @property
    def trials(self) -> tuple[Measurement, ...]:
        """Every stored attempt, failed attempts too."""
        return self.evidence.measurements

    @cached_property
    def judgement(self) -> Judgement:
        """Findings, values, estimates and verdicts, judged now from the store."""
        with _bundle_errors(self.evidence):
            return judge(self.trials, self.plan)

    @property
    def side(self) -> JudgedRun:
        """The run as a side of a comparison of runs."""
        return JudgedRun(self.plan, self.trials, self.judgement, self.facts)

    def measurements(self) -> polars.DataFrame:
        """A row for each attempt; select `state = "valid"` before computing."""
        return self.table("trials")

    def intervals(self) -> polars.DataFrame:
        """A row for each second of load of each attempt."""
        return self.table("intervals")

    def table(self, name: str) -> polars.DataFrame:
        """A table of `dbdyno export` by its name.

        Raises:
            UsageError: the name is unknown; lists the tables.
        """
        from dbdyno.export.frames import frame  # noqa: PLC0415 - see above
        from dbdyno.export.tables import TABLES, parts_of  # noqa: PLC0415 - see above

        tables = {table.name: table for table in TABLES}
        if name not in tables:
            raise _unknown("table", name, list(tables))
        every = attempts(self.trials, self.judgement)
        return frame(tables[name], parts_of(tables[name], every, self.judgement))

    def verdicts(self) -> polars.DataFrame:
        """A row for each comparison: word, ratio with its 95 % interval, blocks, reasons.

        A comparison under a latency limit has the metric `rate_at_limit_per_s` and no rate of its
        own.
        """
        rows = []
        for verdict in self.judgement.all_verdicts:
            flat = {**_flat(verdict.estimate), **_flat(verdict)}
            rows.append({**flat, "reasons": [str(reason(one)) for one in verdict.reasons]})
        return _frame(rows)

    def estimates(self) -> polars.DataFrame:
        """A row for each metric of each comparison: the ratio with its 95 % interval."""
        return _frame([_flat(estimate) for estimate in self.judgement.estimates])

    def values(self) -> polars.DataFrame:
        """A row for each metric of each system and cell, with the interval over its blocks."""
        return _frame([_flat(value) for value in self.judgement.values])

    def findings(self) -> polars.DataFrame:
        """A row for each finding, with its evidence and advice as sentences."""
        rows = [
            {
                "check": finding.check,
                "level": finding.level.value,
                "evidence": str(tell.evidence(finding)),
                "advice": str(tell.advice(finding, self.judgement.known)),
                "system": finding.system,
                "cell": None if finding.cell is None else str(cell_title(finding.cell)),
                "trial": finding.trial,
            }
            for finding in self.judgement.findings
        ]
        return _frame(rows, FINDING_COLUMNS)

    def charts(self) -> list[str]:
        """The names of the report's charts."""
        return [figure.name for figure in self._figures]

    def chart(self, name: str) -> Drawing:
        """A chart of the report, by its name or words of its title ("throughput").

        Jupyter shows it; `svg` and `png` are its files, `figure.spec` is its Vega-Lite.

        Raises:
            UsageError: no chart matches; lists the charts.
        """
        wanted = name.casefold()
        named = [figure for figure in self._figures if figure.name == name]
        meant = [figure for figure in self._figures if wanted in figure.title.casefold()]
        if not (named or meant):
            raise _unknown("chart", name, self.charts())
        return draw((named or meant)[0])

    def gate(self, slower_max: float, *, strict: bool = False, against: Run | None = None) -> Gate:
        """The run held against a limit: how much slower a system may be, 0.03 = 3 %.

        Args:
            against: an earlier run, whose ratios this run's may not fall behind; by default the
                systems are held against the baseline of this run.

        Raises:
            UsageError: `against` is this run itself.
        """
        if against is None:
            return gate(self.judgement.all_verdicts, slower_max, strict=strict)
        if against.id == self.id:
            raise UsageError(
                "a run cannot be held against itself",
                found=f"run {self.id} twice",
                hint="give the bundle of an earlier run",
            )
        return gate_against(against.side, self.side, slower_max, strict=strict)

    def report(self, folder: str | Path | None = None, language: str = "en") -> Written:
        """Write the report into a folder, by default the run's own.

        Args:
            language: `en` or `zh`.

        Raises:
            UsageError: the language is unknown.
        """
        if language not in list(Language):
            raise UsageError(f"there is no language {language!r}", wanted=", ".join(Language))
        where = self.evidence.folder if folder is None else Path(folder)
        judgement = self.judgement
        with _bundle_errors(self.evidence):
            return write.write(
                where, self.plan, self.trials, judgement, self.facts, Language(language)
            )

    def __repr__(self) -> str:
        return f"<dbdyno run {self.id}: {len(self.trials)} measurements>"

    def _repr_markdown_(self) -> str:
        """Verdicts as a table, then the doubts, for Jupyter."""
        return render(Summary(self.plan, self.judgement, self.facts), Output.MARKDOWN)

    @cached_property
    def _figures(self) -> tuple[Figure, ...]:
        return story.story_of(self.plan, self.trials, self.judgement, self.facts).figures


@contextmanager
def _bundle_errors(evidence: Evidence) -> Iterator[None]:
    """Raise BundleError for impossible numbers in a bundle with matching sums."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        if not evidence.digest:
            raise
        raise BundleError(
            "the bundle holds numbers that nothing can have measured",
            found=f"{type(error).__name__}: {error}"[:120],
            hint="ask for it where it was made",
        ) from error


def _flat(noun: Noun) -> dict[str, Any]:
    """A noun's plain fields, its cell as columns of its own."""
    row: dict[str, Any] = {}
    for name, value in noun:
        if isinstance(value, Cell):
            row |= value.model_dump()
        elif isinstance(value, str):
            row[name] = str.__str__(value)
        elif isinstance(value, (bool, int, float)) or (value is None and name != "cell"):
            row[name] = value
    return row


FINDING_COLUMNS: Final = ("check", "level", "evidence", "advice", "system", "cell", "trial")
"""Texts, in a run without findings too."""


def _frame(rows: list[dict[str, Any]], texts: Sequence[str] = ()) -> polars.DataFrame:
    from dbdyno.export.frames import of_rows  # noqa: PLC0415 - see above

    return of_rows(rows, texts)


def _unknown(kind: str, name: str, known: Sequence[str]) -> UsageError:
    return UsageError(f"there is no {kind} {name!r} in this run", wanted=", ".join(known) or "none")
