"""How often does an audit accuse an honest publication, and how often does it find a planted fault?

Publications are made of simulated closed loops: throughput along a ladder with noise, mean latency
by Little's law, percentiles of lognormal latency on sysbench's grid, everything rounded as
published, zeros at the end now and then dropped as spreadsheets do. A fault is then planted in
each. All are printed as pages in eight forms (`printed_forms`), read back and audited, so that a
wrong reading counts, too.

Others are logs that sysbench (where it is installed) and dbdyno printed of reference servers.

    .venv/bin/python -m validation.audit_rates --honest 1000 --planted 200 --served 20
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Final, Literal

from validation.printed_forms import FORMS, MACHINES, Form, printed, shown_by
from validation.truth import PROGRAMS, Question, report_of

from dbdyno import _engine
from dbdyno.audit.audit import audit
from dbdyno.audit.ledger import Severity
from dbdyno.audit.page.columns import BUFFER_POOL
from dbdyno.audit.read import read
from dbdyno.audit.rules.cells import GRID_LEAST_MS, GRID_STEP
from dbdyno.audit.tables import (
    HIDDEN,
    LATENCY,
    MEAN,
    QPS,
    TPS,
    Printed,
    Publication,
    PublishedTable,
    pairs,
)
from dbdyno.errors import UsageError
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.publication import Claim

LADDERS: Final = ((8, 16, 32, 64, 128), (1, 4, 16, 64, 256), (50, 100, 200, 400), (16, 64, 256))
WORKLOADS: Final = {"oltp_read_write": 20, "oltp_read_only": 16, "oltp_point_select": 1}
SYSTEMS: Final = (
    ("MySQL 8.0.36", "MariaDB 10.11.6", "Percona Server 8.0.35"),
    ("GreatSQL-thdpool", "GreatSQL", "MySQL"),
    ("开源 MySQL", "MariaDB", "TDSQL"),
    ("v2.1", "v3.0", "v4.0"),
    ("system A", "system B", "system C"),
)
METRICS: Final = (TPS, QPS, MEAN, "latency_ms_p95", "latency_ms_p99")
FEWER: Final = ((QPS, "latency_ms_p95"), (TPS, MEAN), (TPS, QPS, "latency_ms_p99"), (TPS,))
"""Metrics of authors who print less; most print all."""
NETWORK_MS: Final = 0.2
HONEST: Final = "honest"
HONEST_MAX, PLANTED_MIN = 0.01, 0.95


def honest(dice: random.Random, metrics: tuple[str, ...] = METRICS) -> Publication:
    """Two or three systems on one ladder, under one or two workloads, at two sizes of memory."""
    workloads = dice.sample(list(WORKLOADS), dice.choice((1, 1, 2)))
    ladder, decimals = dice.choice(LADDERS), dice.choice((1, 2, 2, 2))
    labels = dice.choice(SYSTEMS)[: dice.choice((2, 3))]
    tables = [
        _table(dice, label, workload, ladder, {BUFFER_POOL: size}, decimals, metrics)
        for workload in workloads
        for label in labels
        for size in ("16", "64")
    ]
    publication = Publication(
        tool="sysbench 1.0.20",
        systems=dict.fromkeys(labels, "8.0"),
        environment={"memory_gb": "128", "network_ms": str(NETWORK_MS)},
        tables=tuple(tables),
    )
    return publication.model_copy(update={"claims": tuple(_claims(publication, dice))})


def any_honest(dice: random.Random) -> Publication:
    """An honest publication, perhaps of fewer metrics, perhaps with a table in a comment."""
    publication = honest(dice, METRICS if dice.random() < 0.5 else dice.choice(FEWER))
    if dice.random() < 0.8:
        return publication
    tables = (*publication.tables, _hidden(publication, dice))
    return publication.model_copy(update={"tables": tables})


def _hidden(publication: Publication, dice: random.Random) -> PublishedTable:
    """A first table as measured under other settings, in a comment of the page."""
    shown = publication.tables[0]
    other = _table(
        dice, shown.system, shown.workload, shown.threads, shown.at, 2, tuple(shown.values)
    )
    return other.model_copy(update={"at": {**shown.at, **HIDDEN}, "is_hidden": True})


def _rate(of: Mapping[str, Printed]) -> float:
    """Throughput: transactions, or else queries."""
    return (of.get(TPS) or of[QPS]).value


def _claims(publication: Publication, dice: random.Random) -> Iterator[Claim]:
    """True claims of two systems, as a careful author would write them down."""
    first, second = dice.sample(list(publication.systems), 2)
    beside = pairs(publication.cells(), first, second)
    cell, other = dice.choice(beside)
    ratios = {PRIMARY.name: _rate(cell.values) / _rate(other.values)}
    if MEAN in cell.values:
        ratios[MEAN] = cell.values[MEAN].value / other.values[MEAN].value
    for metric, ratio in ratios.items():
        low, high = _rounded(ratio, 3)
        yield Claim(
            text=f"{first} against {second} in one cell",
            of=first,
            than=second,
            workloads=(cell.workload,),
            threads=(cell.threads,),
            at=cell.at,
            metric=metric,
            ratio_min=low,
            ratio_max=high,
        )
    each = [_rate(a.values) / _rate(b.values) for a, b in beside]
    whole = sum(_rates(publication, first)) / sum(_rates(publication, second))
    yield _claim(first, second, whole, holds="average")
    yield _claim(first, second, max(each), holds="some")
    yield Claim(
        text=f"{first} is never farther from {second}",
        of=first,
        than=second,
        ratio_min=_rounded(min(each), 3)[0],
        ratio_max=_rounded(max(each), 3)[1],
    )


def _claim(
    of: str, than: str, ratio: float, holds: Literal["each", "some", "average"] = "each"
) -> Claim:
    """A ratio as an author prints it, with three decimals."""
    low, high = _rounded(ratio, 3)
    text = f"{of} reaches {ratio:.1%} of {than}"
    return Claim(text=text, of=of, than=than, holds=holds, ratio_min=low, ratio_max=high)


def _rounded(ratio: float, decimals: int) -> tuple[float, float]:
    """The least and the most that is printed so."""
    half = 0.5 * 10**-decimals
    return round(ratio, decimals) - half, round(ratio, decimals) + half


def _table(
    dice: random.Random,
    system: str,
    workload: str,
    ladder: tuple[int, ...],
    at: dict[str, str],
    decimals: int,
    metrics: tuple[str, ...],
) -> PublishedTable:
    each = WORKLOADS[workload]
    service_ms = dice.uniform(1.0, 20.0) if each > 1 else dice.uniform(0.4, 2.0)
    most = dice.uniform(8, 60)
    sigma, values = dice.uniform(0.2, 0.9), {}
    drops = dice.random() < 0.5
    for threads in ladder:
        parallel = threads / (1 + threads / most)
        tps = 1e3 * parallel / (service_ms + NETWORK_MS) * math.exp(dice.gauss(0, 0.03))
        busy = dice.uniform(0.975, 1.0)
        mean_ms = 1e3 * threads * busy / tps
        median_ms = mean_ms / math.exp(sigma**2 / 2)
        numbers = {
            TPS: tps,
            QPS: tps * each * (1 + dice.uniform(0, 0.0005)),
            MEAN: mean_ms,
            "latency_ms_p95": _on_grid(median_ms * math.exp(1.645 * sigma)),
            "latency_ms_p99": _on_grid(median_ms * math.exp(2.326 * sigma)),
        }
        for metric in metrics:
            values.setdefault(metric, []).append(_printed(numbers[metric], decimals, drops))
    return PublishedTable(
        system=system,
        workload=workload,
        threads=ladder,
        at=at,
        values={metric: tuple(column) for metric, column in values.items()},
    )


def _on_grid(ms: float) -> float:
    return GRID_LEAST_MS * math.exp(round(math.log(ms / GRID_LEAST_MS) / GRID_STEP) * GRID_STEP)


def _printed(number: float, decimals: int, drops: bool) -> Printed:
    text = f"{number:.{decimals}f}"
    return Printed(text=text.rstrip("0").rstrip(".") if drops and "." in text else text)


# Faults.


def _changed(table: PublishedTable, **columns: tuple[Printed, ...]) -> PublishedTable:
    return table.model_copy(update={"values": {**table.values, **columns}})


def _with(publication: Publication, place: int, table: PublishedTable) -> Publication:
    tables = list(publication.tables)
    tables[place] = table
    return publication.model_copy(update={"tables": tuple(tables)})


def _scaled_column(publication: Publication, dice: random.Random) -> Publication:
    """Throughput of one table 10 % higher than it was."""
    place = dice.randrange(len(publication.tables))
    table = publication.tables[place]
    metric = dice.choice((TPS, QPS))
    column = tuple(_times(one, 1.1) for one in table.values[metric])
    return _with(publication, place, _changed(table, **{metric: column}))


def _copied_row(publication: Publication, dice: random.Random) -> Publication:
    """Another system's throughput, queries and latency in the place of its own."""
    from_place, place = dice.sample(range(len(publication.tables)), 2)
    return _with(
        publication,
        place,
        publication.tables[place].model_copy(
            update={"values": publication.tables[from_place].values}
        ),
    )


def _moved_digits(publication: Publication, dice: random.Random) -> Publication:
    """A system's throughput is another's, moved by whole thousands of the last place."""
    first, second = list(publication.systems)[:2]
    tables = list(publication.tables)
    for place, table in enumerate(tables):
        if table.system == second:
            other = _beside(table, tables, first)
            columns = [other.values[TPS], table.values[TPS], table.values[MEAN]]
            moved = [_moved(*row) for row in zip(*columns, strict=True)]
            tables[place] = _changed(
                table,
                tps=tuple(tps for tps, _ in moved),
                latency_ms_avg=tuple(mean for _, mean in moved),
            )
        without = {k: v for k, v in tables[place].values.items() if k != QPS}
        tables[place] = tables[place].model_copy(update={"values": without})
    return publication.model_copy(update={"tables": tuple(tables), "claims": ()})


def _moved(other: Printed, own: Printed, mean: Printed) -> tuple[Printed, Printed]:
    """A throughput with another's last digits, and the mean that goes with it."""
    places = max(other.decimals, own.decimals)
    digits, its = (round(one.value * 10**places) for one in (own, other))
    tps = (digits // 1000 * 1000 + 1000 + its % 1000) / 10**places
    ms = mean.value * own.value / tps
    return Printed(text=f"{tps:.{places}f}"), Printed(text=f"{ms:.{mean.decimals}f}")


def _beside(table: PublishedTable, tables: Iterable[PublishedTable], system: str) -> PublishedTable:
    """The table of another system in the same cells."""
    return next(
        other
        for other in tables
        if (other.system, other.workload, other.at) == (system, table.workload, table.at)
    )


def _mistyped_latency(publication: Publication, dice: random.Random) -> Publication:
    """The point of a mean moves, or its first digit is another."""
    place = dice.randrange(len(publication.tables))
    table = publication.tables[place]
    column = list(table.values[MEAN])
    level = dice.randrange(len(column))
    column[level] = _times(column[level], dice.choice((0.1, 10.0, 1.5, 2.0)))
    return _with(publication, place, _changed(table, latency_ms_avg=tuple(column)))


def _selected_mean(publication: Publication, dice: random.Random) -> Publication:
    """The ratio of the best cell, said of all on average."""
    first, second = list(publication.systems)[:2]
    ratios = zip(_rates(publication, first), _rates(publication, second), strict=True)
    claim = _claim(first, second, max(a / b for a, b in ratios), holds="average")
    return publication.model_copy(update={"claims": (claim,)})


def _cherry_picked(publication: Publication, dice: random.Random) -> Publication:
    """A ratio to another system than the one that is named."""
    labels = list(publication.systems)
    subject, named = labels[0], labels[1]
    picked = labels[2] if len(labels) > 2 else labels[1]
    own, other = (sum(_rates(publication, label)) for label in (subject, picked))
    factor = 1.0 if len(labels) > 2 else 1.07
    claim = _claim(subject, named, factor * own / other, holds="average")
    return publication.model_copy(update={"claims": (claim,)})


def _absolute_word(publication: Publication, dice: random.Random) -> Publication:
    """ "Always faster", and one cell where it is not."""
    first, second = list(publication.systems)[:2]
    tables = [
        _sped(_beside(table, publication.tables, first), 0.8, second)
        if table.system == second
        else table
        for table in publication.tables
    ]
    place = dice.choice([n for n, table in enumerate(tables) if table.system == second])
    whole, faster = tables[place], _sped(tables[place], 1.5, second)
    level = dice.randrange(len(whole.threads))
    values = {
        metric: (*column[:level], faster.values[metric][level], *column[level + 1 :])
        for metric, column in whole.values.items()
    }
    tables[place] = whole.model_copy(update={"values": values})
    claim = Claim(text="always faster", of=first, than=second, ratio_min=1)
    return publication.model_copy(update={"tables": tuple(tables), "claims": (claim,)})


def _sped(table: PublishedTable, factor: float, system: str) -> PublishedTable:
    """A table of a system that is faster by a factor."""
    values = {
        metric: tuple(
            _times(n, 1 / factor if metric.startswith(LATENCY) else factor) for n in column
        )
        for metric, column in table.values.items()
    }
    return table.model_copy(update={"system": system, "values": values})


def _wrong_share(publication: Publication, dice: random.Random) -> Publication:
    """A percentage ten points off what any cells give."""
    first, second = list(publication.systems)[:2]
    ratio = sum(_rates(publication, first)) / sum(_rates(publication, second))
    beside = zip(_rates(publication, first), _rates(publication, second), strict=True)
    most = max(a / b for a, b in beside)
    claim = _claim(first, second, max(most, ratio, 1) + 0.1, holds="average")
    return publication.model_copy(update={"claims": (claim,)})


def _wrong_order(publication: Publication, dice: random.Random) -> Publication:
    """The slower of two in a cell, said to be the faster one there."""
    first, second = list(publication.systems)[:2]
    cell, other = max(
        pairs(publication.cells(), first, second),
        key=lambda two: abs(_rate(two[0].values) / _rate(two[1].values) - 1),
    )
    slower = first if _rate(cell.values) < _rate(other.values) else second
    faster = second if slower == first else first
    claim = Claim(
        text=f"{slower} outperforms {faster}",
        of=slower,
        than=faster,
        workloads=(cell.workload,),
        threads=(cell.threads,),
        at=cell.at,
        ratio_min=1,
    )
    return publication.model_copy(update={"claims": (claim,)})


def _below_network(publication: Publication, dice: random.Random) -> Publication:
    """A stated round trip longer than the shortest latency, as of a network that was not used."""
    latencies = [
        min(table.values[metric][level].value for metric in METRICS[2:])
        for table in publication.tables
        for level in range(len(table.threads))
    ]
    network_ms = min(latencies) * dice.uniform(1.5, 5)
    return publication.model_copy(update={"environment": {"network_ms": f"{network_ms:.2f}"}})


def _rates(publication: Publication, label: str) -> list[float]:
    of_it = [table.values for table in publication.tables if table.system == label]
    return [number.value for values in of_it for number in values.get(TPS) or values[QPS]]


def _times(number: Printed, factor: float) -> Printed:
    return Printed(text=f"{number.value * factor:.{number.decimals}f}")


FAULTS: Final[Mapping[str, Callable[[Publication, random.Random], Publication]]] = {
    "a column scaled by 1.1": _scaled_column,
    "a row copied into another table": _copied_row,
    "throughput of another system, changed by whole thousands": _moved_digits,
    "a mistyped latency": _mistyped_latency,
    "an average of the best cells, claimed for all cells": _selected_mean,
    "a claimed ratio that is true against another system only": _cherry_picked,
    "always faster, as claimed, but slower in a cell": _absolute_word,
    "a latency below the network's round trip": _below_network,
    "a claimed percentage that no cells give": _wrong_share,
    "the slower system, claimed to be faster": _wrong_order,
}


def accused(publication: Publication) -> bool:
    """Whether an audit says that something cannot be true, or that a claim says too much."""
    ledger = audit(publication)
    return any(ledger.count(one) for one in (Severity.CONTRADICTION, Severity.OVER_CLAIM))


def served(dice: random.Random) -> Publication:
    """Two reference servers under a ladder, as one of the programs told of them."""
    program = dice.choice([one for one in PROGRAMS.values() if shutil.which(one[0])])
    with tempfile.TemporaryDirectory() as folder:
        logs = []
        for system in ("A", "B"):
            law = dice.choice(("fixed", "exponential", "lognormal"))
            workers = dice.choice((None, 4))
            service = {"law": law, "time_s": dice.uniform(0.001, 0.01), "workers": workers}
            texts = [
                report_of(
                    program,
                    Question(system, service, (f"--threads={threads}",)),
                    _engine.Reference(**service),
                    seconds=1,
                    percentile=95,
                )
                for threads in (2, 8, 32)
            ]
            logs.append(Path(folder) / f"{system}.log")
            logs[-1].write_text("".join(texts))
        (publication,) = read(logs)
        return publication


@dataclass(frozen=True)
class Reading:
    """A printed publication, read back and audited.

    Attributes:
        cells: `exact`; `left out`, of which the ledger names the reason; `refused` as a whole, or
            `wrong`: a number in a cell that has another, or none, or a loss without a reason.
        is_accused: the audit reports a fault.
    """

    form: str
    cells: Literal["exact", "left out", "refused", "wrong"]
    is_accused: bool


def reading(publication: Publication, form: Form, dice: random.Random, folder: Path) -> Reading:
    """Print a publication in a form, its claims and set-up beside it as YAML, and audit both."""
    page = (folder / "page").with_suffix(form.suffix)
    page.write_text(printed(publication, form, dice), encoding="utf-8")
    beside = publication.model_copy(update={"tables": ()}).model_dump_json(exclude_defaults=True)
    claims = folder / "claims.yaml"
    claims.write_text(beside, encoding="utf-8")
    try:
        (audited,) = read([page, claims])
    except UsageError:
        return Reading(form.name, "refused", is_accused=False)
    truth, seen = _numbers(shown_by(publication, form)), _numbers(audited)
    no_losses = (MACHINES.heading[0], ": not understood: ")  # as of a row of means
    lost = [words for words in audited.unread if not any(part in words for part in no_losses)]
    if seen == truth:
        cells = "exact"
    else:
        cells = "left out" if lost and seen.items() <= truth.items() else "wrong"
    return Reading(form.name, cells, accused(audited))


def _numbers(publication: Publication) -> dict[object, tuple[float, float]]:
    """Every number of a publication with its rounding, by cell and metric."""
    return {
        (cell.system, cell.key, metric): (round(number.value, 6), number.half)
        for cell in publication.cells()
        for metric, number in cell.values.items()
    }


def readings(honest_count: int, planted_count: int) -> dict[str, list[Reading]]:
    """Readings of honest publications, then of those with each fault; all forms take turns."""
    dice, forms = random.Random(16), cycle(FORMS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        read_back = {
            HONEST: [
                reading(any_honest(dice), next(forms), dice, folder) for _ in range(honest_count)
            ]
        }
        for fault, plant in FAULTS.items():
            read_back[fault] = [
                reading(plant(honest(dice), dice), next(forms), dice, folder)
                for _ in range(planted_count)
            ]
    return read_back


def share_accused(pages: Sequence[Reading]) -> float:
    """Share of publications with a reported fault."""
    return sum(page.is_accused for page in pages) / len(pages)


def main() -> int:
    """Prints both tables; exit status 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--honest", type=int, default=1000)
    parser.add_argument("--planted", type=int, default=200)
    parser.add_argument("--served", type=int, default=0)
    options = parser.parse_args()
    by_fault = readings(options.honest, options.planted)
    every = [page for pages in by_fault.values() for page in pages]
    print("| form of page | pages | read exactly | left out, and said so | refused | read wrong |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for form in FORMS:
        cells = Counter(page.cells for page in every if page.form == form.name)
        counts = (cells[kind] for kind in ("exact", "left out", "refused", "wrong"))
        print(f"| {form.name} | {cells.total()} | {' | '.join(map(str, counts))} |")
    shares = {name: share_accused(pages) for name, pages in by_fault.items()}
    print("\n| publications | share with a reported fault | target |\n| --- | ---: | ---: |")
    for name, share in shares.items():
        target = f"{HONEST_MAX:.0%} at most" if name == HONEST else f"{PLANTED_MIN:.0%} at least"
        print(f"| {name} | {share:.1%} | {target} |")
    if options.served:
        dice = random.Random(7)
        wrong = sum(accused(served(dice)) for _ in range(options.served))
        print(f"| honest, logs of {options.served} pairs of servers | {wrong} | none |")
    is_missed = shares.pop(HONEST) > HONEST_MAX or min(shares.values()) < PLANTED_MIN
    return int(is_missed or any(page.cells == "wrong" for page in every))


if __name__ == "__main__":
    raise SystemExit(main())
