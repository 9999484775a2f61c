"""How often does an audit accuse an honest publication, and how often does it find a planted fault?

Publications are made of simulated closed loops: throughput along a ladder with noise, mean latency
by Little's law, percentiles of lognormal latency on sysbench's grid, everything rounded as
published, zeros at the end now and then dropped as spreadsheets do. A fault is then planted in
each.

Others are logs that sysbench (where it is installed) and dbdyno printed of reference servers.

    .venv/bin/python -m validation.audit_rates --honest 1000 --planted 200 --served 20
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from validation.truth import PROGRAMS, Question, report_of

from dbdyno import _engine
from dbdyno.audit.audit import audit
from dbdyno.audit.ledger import Severity
from dbdyno.audit.read import read
from dbdyno.audit.rules.cells import GRID_LEAST_MS, GRID_STEP
from dbdyno.audit.tables import Printed, Publication, PublishedTable, pairs
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.publication import Claim

LADDERS: Final = ((8, 16, 32, 64, 128), (1, 4, 16, 64, 256), (50, 100, 200, 400), (16, 64, 256))
WORKLOADS: Final = {"oltp_read_write": 20, "oltp_read_only": 16, "oltp_point_select": 1}
NETWORK_MS: Final = 0.2
HONEST_MAX, PLANTED_MIN = 0.01, 0.9


def honest(dice: random.Random) -> Publication:
    """Two or three systems on one ladder, at two sizes of memory."""
    workload, each = dice.choice(list(WORKLOADS.items()))
    ladder, decimals = dice.choice(LADDERS), dice.choice((1, 2, 2, 2))
    tables = [
        _table(dice, f"system {label}", workload, each, ladder, {"buffer_pool_gb": size}, decimals)
        for label in "ABC"[: dice.choice((2, 3))]
        for size in ("16", "64")
    ]
    made = Publication(
        title="made",
        tool="sysbench 1.0.20",
        systems={table.system: "8.0" for table in tables},
        workload=workload,
        environment={"memory_gb": "128", "network_ms": str(NETWORK_MS)},
        tables=tuple(tables),
    )
    return made.model_copy(update={"claims": tuple(_claims(made, dice))})


def _claims(publication: Publication, dice: random.Random) -> Iterator[Claim]:
    """True claims of two systems, as a careful author would write them down."""
    first, second = dice.sample(list(publication.systems), 2)
    beside = pairs(publication.cells(), first, second)
    cell, other = dice.choice(beside)
    for metric, name in (("tps", PRIMARY.name), ("latency_ms_avg", "latency_ms_avg")):
        low, high = _rounded(cell.values[metric].value / other.values[metric].value, 3)
        yield Claim(
            text=f"{first} against {second} in one cell",
            of=first,
            than=second,
            threads=(cell.threads,),
            at=cell.at,
            metric=name,
            ratio_min=low,
            ratio_max=high,
        )
    ratios = [a.values["tps"].value / b.values["tps"].value for a, b in beside]
    whole = sum(_rates(publication, first)) / sum(_rates(publication, second))
    yield _claim(first, second, whole, holds="average")
    yield _claim(first, second, max(ratios), holds="some")
    yield Claim(
        text=f"{first} is never farther from {second}",
        of=first,
        than=second,
        ratio_min=_rounded(min(ratios), 3)[0],
        ratio_max=_rounded(max(ratios), 3)[1],
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
    each: int,
    ladder: tuple[int, ...],
    at: dict[str, str],
    decimals: int,
) -> PublishedTable:
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
            "tps": tps,
            "qps": tps * each * (1 + dice.uniform(0, 0.0005)),
            "latency_ms_avg": mean_ms,
            "latency_ms_p95": _on_grid(median_ms * math.exp(1.645 * sigma)),
            "latency_ms_p99": _on_grid(median_ms * math.exp(2.326 * sigma)),
        }
        for metric, number in numbers.items():
            values.setdefault(metric, []).append(_printed(number, decimals, drops))
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
    metric = dice.choice(("tps", "qps"))
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
            other = next(t for t in tables if t.system == first and t.at == table.at)
            columns = [other.values["tps"], table.values["tps"], table.values["latency_ms_avg"]]
            moved = [_moved(*row) for row in zip(*columns, strict=True)]
            tables[place] = _changed(
                table.model_copy(
                    update={"values": {k: v for k, v in table.values.items() if k != "qps"}}
                ),
                tps=tuple(tps for tps, _ in moved),
                latency_ms_avg=tuple(mean for _, mean in moved),
            )
    return publication.model_copy(update={"tables": tuple(tables), "claims": ()})


def _moved(other: Printed, own: Printed, mean: Printed) -> tuple[Printed, Printed]:
    """A throughput with another's last digits, and the mean that goes with it."""
    places = max(other.decimals, own.decimals)
    digits, its = (round(one.value * 10**places) for one in (own, other))
    tps = (digits // 1000 * 1000 + 1000 + its % 1000) / 10**places
    ms = mean.value * own.value / tps
    return Printed(text=f"{tps:.{places}f}"), Printed(text=f"{ms:.{mean.decimals}f}")


def _mistyped_latency(publication: Publication, dice: random.Random) -> Publication:
    """Two digits of a mean change places, or its point moves."""
    place = dice.randrange(len(publication.tables))
    table = publication.tables[place]
    column = list(table.values["latency_ms_avg"])
    level = dice.randrange(len(column))
    column[level] = _times(column[level], dice.choice((0.1, 10.0, 1.5, 2.0)))
    return _with(publication, place, _changed(table, latency_ms_avg=tuple(column)))


def _selected_mean(publication: Publication, dice: random.Random) -> Publication:
    """The mean of the best cells only, said of all."""
    first, second = publication.tables[0].system, publication.tables[2].system
    one, other = (_rates(publication, label) for label in (first, second))
    ratios = [a / b for a, b in zip(one, other, strict=True)]
    best = max(ratios)
    claim = _claim(first, second, best, holds="average")
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
    labels = list(publication.systems)
    first, second = labels[0], labels[1]
    tables = [
        _slower(table, publication, first) if table.system == second else table
        for table in publication.tables
    ]
    last = tables[-1] if tables[-1].system == second else tables[3]
    place = tables.index(last)
    tables[place] = _changed(
        last,
        **{m: (_times(last.values[m][0], 1.5), *last.values[m][1:]) for m in ("tps", "qps")},
    )
    claim = Claim(text="always faster", of=first, than=second, ratio_min=1)
    return publication.model_copy(update={"tables": tuple(tables), "claims": (claim,)})


def _slower(table: PublishedTable, publication: Publication, than: str) -> PublishedTable:
    """The other system's rates, each a fifth less."""
    same = next(t for t in publication.tables if t.system == than and t.at == table.at)
    rates = {m: tuple(_times(n, 0.8) for n in same.values[m]) for m in ("tps", "qps")}
    return same.model_copy(update={"system": table.system, "values": rates})


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
        key=lambda two: abs(two[0].values["tps"].value / two[1].values["tps"].value - 1),
    )
    slower = first if cell.values["tps"].value < other.values["tps"].value else second
    faster = second if slower == first else first
    claim = Claim(
        text=f"{slower} outperforms {faster}",
        of=slower,
        than=faster,
        threads=(cell.threads,),
        at=cell.at,
        ratio_min=1,
    )
    return publication.model_copy(update={"claims": (claim,)})


def _below_network(publication: Publication, dice: random.Random) -> Publication:
    """A latency that the stated network does not allow."""
    return publication.model_copy(update={"environment": {"network_ms": "1000000"}})


def _rates(publication: Publication, label: str) -> list[float]:
    of_it = [table for table in publication.tables if table.system == label]
    return [number.value for table in of_it for number in table.values["tps"]]


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


def rates(honest_count: int, planted_count: int) -> dict[str, float]:
    """The share of accused publications: honest ones, then those with each fault."""
    dice = random.Random(16)
    made = [honest(dice) for _ in range(honest_count)]
    found = {"honest": sum(map(accused, made)) / honest_count}
    for name, plant in FAULTS.items():
        tried = [plant(honest(dice), dice) for _ in range(planted_count)]
        found[name] = sum(map(accused, tried)) / planted_count
    return found


def main() -> int:
    """Prints the table; exit status 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--honest", type=int, default=1000)
    parser.add_argument("--planted", type=int, default=200)
    parser.add_argument("--served", type=int, default=0)
    options = parser.parse_args()
    found = rates(options.honest, options.planted)
    print("| publications | share with a reported fault | target |\n| --- | ---: | ---: |")
    for name, share in found.items():
        target = f"{HONEST_MAX:.0%} at most" if name == "honest" else f"{PLANTED_MIN:.0%} at least"
        print(f"| {name} | {share:.1%} | {target} |")
    if options.served:
        dice = random.Random(7)
        wrong = sum(accused(served(dice)) for _ in range(options.served))
        print(f"| honest, logs of {options.served} pairs of servers | {wrong} | none |")
    missed = found.pop("honest") > HONEST_MAX or min(found.values()) < PLANTED_MIN
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
