"""A published comparison as data: its tables, claims and set-up.

Numbers keep their printed text, as their last digit shows the rounding. A publication is written
down as YAML (docs/how-to/audit.md), or read from its own pages and logs (`audit.read`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Final, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from dbdyno.errors import UsageError
from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.document import parse, place
from dbdyno.plan.publication import Claim

TPS: Final = "tps"
QPS: Final = "qps"
NOPM: Final = "nopm"
MEAN: Final = "latency_ms_avg"
LATENCY: Final = "latency_ms_"
SECTION: Final = "section"
"""Condition of tables that print other numbers for the same cells under other headings."""
HIDDEN: Final = {"in": "a comment"}
"""Condition of tables that a page has in a comment."""
DIGITS_MAX: Final = 24
"""Before and behind the point; no measured number has more."""
NUMBER: Final = re.compile(rf"[+-]?\d{{1,{DIGITS_MAX}}}(?:\.\d{{1,{DIGITS_MAX}}})?")
QUANTILE: Final = re.compile(r"latency_ms_p(\d{1,9})")


def quantile_of(percent: str) -> str:
    """The metric of a percentile: of "99.9" `latency_ms_p999`."""
    return f"{LATENCY}p{percent.replace('.', '')}"


class Printed(FiniteNoun):
    """A number as it was printed.

    Attributes:
        dropped: decimals missing in comparison with its column: "503.6" among "12.34" is 503.60, as
            a spreadsheet drops zeros at the end; below 0, digits before the point that were
            rounded away: three of "3.2万".
    """

    text: Annotated[str, Field(pattern=f"^{NUMBER.pattern}$")]
    dropped: Annotated[int, Field(ge=-DIGITS_MAX, le=DIGITS_MAX)] = 0

    @property
    def value(self) -> float:
        """The number itself."""
        return float(self.text)

    @property
    def decimals(self) -> int:
        """Decimals to which it was rounded; below 0 for tens, hundreds and so on."""
        _, _, digits = self.text.partition(".")
        return len(digits) + self.dropped

    @property
    def half(self) -> float:
        """Half a unit of its last place: how much rounding may have changed."""
        return 0.5 * 10.0**-self.decimals

    @property
    def low(self) -> float:
        """The lower limit by rounding."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """The upper limit by rounding."""
        return self.value + self.half

    def may_be(self, other: Printed) -> bool:
        """True if both may be the same number, rounded differently."""
        return self.low <= other.high and other.low <= self.high


def as_printed(value: object) -> object:
    """A number as it was written; anything else is left for the type to refuse."""
    if isinstance(value, str | int | float) and NUMBER.fullmatch(str(value).strip()):
        return {"text": str(value).strip()}
    return value


Number = Annotated[Printed, BeforeValidator(as_printed)]


class PublishedTable(FiniteNoun):
    """Rows of a system under a workload, its load levels in order.

    Attributes:
        at: further conditions, for example `buffer_pool_gb: "48"`.
        values: by metric (`tps`, `qps`, `latency_ms_avg`, `latency_ms_p95`, …), one for each level.
        lines: of the source, by metric, for each number; empty if they are not known.
        place: its place in the source.
        is_mean_said: False if `latency_ms_avg` is a latency without further words, which may be a
            percentile.
        is_hidden: True if it stands in a comment of the page, which a browser does not show.
    """

    system: str
    workload: str = ""
    threads: tuple[int, ...]
    at: dict[str, str] = {}
    values: dict[str, tuple[Number, ...]]
    lines: dict[str, tuple[int, ...]] = {}
    place: str = ""
    is_mean_said: bool = True
    is_hidden: bool = False

    @model_validator(mode="after")
    def _as_many_values_as_levels(self) -> PublishedTable:
        for kind, columns in (("values", self.values), ("lines", self.lines)):
            for metric, column in columns.items():
                if len(column) != len(self.threads):
                    raise ValueError(
                        f"{metric} of {self.system} has {len(column)} {kind} for"
                        f" {len(self.threads)} load levels"
                    )
        return self


class PublishedChange(FiniteNoun):
    """A printed change between the systems of the two columns beside it: "+39.1 %", "1.39".

    Attributes:
        threads: 0 in a table of ratios over all load levels.
        metric: empty if its table does not say.
        mean_of: the printed ratios beside it, if it is called their mean.
    """

    systems: tuple[str, str]
    workload: str = ""
    threads: int
    at: dict[str, str] = {}
    metric: str
    text: str
    mean_of: tuple[Number, ...] = ()
    place: str = ""


class PublishedCell(FiniteNoun):
    """A load level of a table: all its printed metrics.

    Attributes:
        replaced: earlier, different numbers for it, each with its metric.
        is_mean_said: as in its table.
    """

    system: str
    workload: str
    threads: int
    at: dict[str, str]
    values: dict[str, Printed]
    place: str
    is_mean_said: bool = True
    replaced: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, int, tuple[tuple[str, str], ...]]:
        """The part of the identity that other systems share."""
        return self.workload, self.threads, tuple(sorted(self.at.items()))

    @property
    def title(self) -> str:
        """Its name for people: "MySQL, oltp_read_write, 32 threads, buffer_pool_gb 48"."""
        at = (f"{name.replace('_', ' ')} {value}" for name, value in self.at.items())
        parts = (self.system, self.workload, f"{self.threads} threads", *at)
        return ", ".join(part for part in parts if part)

    def quantiles(self) -> list[tuple[float, str, Printed]]:
        """Its percentiles, rising: share, metric, number. `p999` is 99.9 %."""
        quantiles = []
        for metric, number in self.values.items():
            if match := QUANTILE.fullmatch(metric):
                digits = match[1]
                quantiles.append((int(digits) / 10 ** len(digits.rjust(2, "0")), metric, number))
        return sorted(quantiles, key=lambda one: one[0])


def _or_empty(value: object) -> object:
    """A list of which all items are still commented out is empty."""
    return () if value is None else value


class Publication(FiniteNoun):
    """A whole publication.

    Attributes:
        systems: versions by label, in the order of the source.
        dataset: `tables`, `rows_per_table`, `size_gb` of all or `gb_per_table`.
        environment: machine and network: `memory_gb`, `network_ms` between client and server,
            `round_trip_ms` of a network that may lie elsewhere, `instance_type.` with a component,
            …
        settings: of the servers, as printed.
        load: of its printed commands: `threads`, `time_s`, `warm_up_s`, `rate_per_s`, `percentile`,
            `distribution`.
        statements: of a transaction of a workload, by the options of its printed command.
        places: of facts found on a page, such as `settings.sync_binlog`: the file and the line.
        changes: columns of its tables that compare two others.
        disclosed: its method, by the names of `design.DISCLOSURES`.
        unread: tables of its pages without results, or the reasons why they cannot be read.
        is_partly_read: tables or rows with results are among the unread.
        assumed: headings, load levels and workloads taken from elsewhere on its pages.
        has_prose: its pages have sentences, which are not read, and no YAML discloses the method.
        is_set_up_of_prose: its set-up was found in the words of a page.
        is_record: logs or an imported run, in which nobody tells a method.
    """

    title: str = ""
    source: str = ""
    tool: str = ""
    systems: dict[str, str] = {}
    workload: str = ""
    dataset: dict[str, float] = {}
    environment: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    load: dict[str, str] = {}
    statements: dict[str, Annotated[int, Field(ge=1)]] = {}
    places: dict[str, str] = {}
    disclosed: dict[str, str] = {}
    claims: Annotated[tuple[Claim, ...], BeforeValidator(_or_empty)] = ()
    unread: tuple[str, ...] = ()
    is_partly_read: bool = False
    assumed: tuple[str, ...] = ()
    changes: tuple[PublishedChange, ...] = ()
    tables: tuple[PublishedTable, ...] = ()
    has_prose: bool = False
    is_set_up_of_prose: bool = False
    is_record: bool = False

    @property
    def has_rate(self) -> bool:
        """True for a load at a fixed rate, whose latency may have the wait for a connection."""
        return bool(self.disclosed.get("rate") or self.load.get("rate_per_s"))

    def cells(self) -> list[PublishedCell]:
        """Every cell, with its metrics from all tables.

        If a cell is printed several times, the last numbers count. A column with fewer decimals in
        some numbers was written by a program that drops zeros at the end.
        """
        cells: dict[tuple[object, ...], PublishedCell] = {}
        replaced: dict[tuple[object, ...], list[str]] = {}
        for cell in self._cells():
            place = (cell.system, *cell.key)
            known = cells.get(place, cell)
            values = {**known.values, **cell.values}
            replaced.setdefault(place, []).extend(
                f"{metric} {before.text}"
                for metric, before in known.values.items()
                if before.value != values[metric].value
            )
            said = cell.is_mean_said if MEAN in cell.values else known.is_mean_said
            cells[place] = cell.model_copy(update={"values": values, "is_mean_said": said})
        return [
            cell.model_copy(update={"replaced": tuple(replaced[place])})
            if replaced[place]
            else cell
            for place, cell in cells.items()
        ]

    def _cells(self) -> Iterator[PublishedCell]:
        decimals = self._decimals()
        for table in self.tables:
            for level, threads in enumerate(table.threads):
                yield PublishedCell(
                    system=table.system,
                    workload=table.workload or self.workload,
                    threads=threads,
                    at=table.at,
                    values={
                        metric: _restored(values[level], decimals[metric])
                        for metric, values in table.values.items()
                    },
                    place=table.place,
                    is_mean_said=table.is_mean_said,
                )

    def _decimals(self) -> dict[str, int]:
        """The most decimals of each metric."""
        most: dict[str, int] = {}
        for table in self.tables:
            for metric, values in table.values.items():
                most[metric] = max(most.get(metric, 0), *(one.decimals for one in values))
        return most


def _restored(number: Printed, decimals: int) -> Printed:
    if number.dropped < 0:
        return number
    return number.model_copy(update={"dropped": max(0, decimals - number.decimals)})


Read = TypeVar("Read", bound=FiniteNoun)


def publication_of(text: str, source: str) -> Publication:
    """A publication from its YAML; UsageError with the line of each mistake."""
    return read_as(
        Publication, text, source, wanted="tables of values by system, threads and metric; claims"
    )


def read_as(kind: type[Read], text: str, source: str, *, wanted: str) -> Read:
    """YAML as a noun of this kind, numbers as written; UsageError with the line of each mistake."""
    document = parse(text, as_printed=True)
    mistakes = [f"line {one.line}: {one.place}: {one.message}" for one in document.mistakes]
    if not mistakes:
        try:
            return kind.model_validate(document.value)
        except ValidationError as error:
            mistakes = [
                f"line {document.line(one['loc'])}: {place(one['loc'])}: {one['msg']}"
                for one in error.errors()
            ]
    raise UsageError(
        f"{source} is no {kind.__name__.lower()}",
        wanted=wanted,
        found="; ".join(mistakes),
        hint="docs/how-to/audit.md shows the form",
    )


def pairs(
    cells: list[PublishedCell], first: str, second: str
) -> list[tuple[PublishedCell, PublishedCell]]:
    """The cells common to two systems."""
    others = {cell.key: cell for cell in cells if cell.system == second}
    return [
        (cell, others[cell.key]) for cell in cells if cell.system == first and cell.key in others
    ]


def subsets(cells: list[PublishedCell]) -> Iterator[tuple[str, list[PublishedCell]]]:
    """Every subset a headline may mean: all, a value of an axis, a load level, both."""
    names = dict.fromkeys(name for cell in cells for name in cell.at)
    axes = {name: dict.fromkeys(cell.at.get(name, "") for cell in cells) for name in names}
    values = [[None, *((name, value) for value in known)] for name, known in axes.items()]
    levels = [None, *dict.fromkeys(cell.threads for cell in cells)]
    workloads = [None, *dict.fromkeys(cell.workload for cell in cells)]
    for workload, level, chosen in product(workloads, levels, product(*values)):
        wanted = dict(one for one in chosen if one)
        kept = [
            cell
            for cell in cells
            if workload in (None, cell.workload)
            and level in (None, cell.threads)
            and all(cell.at.get(name) == value for name, value in wanted.items())
        ]
        said = [workload, f"{level} threads" if level else None, *wanted.values()]
        if kept:
            yield ", ".join(part for part in said if part) or "all cells", kept
