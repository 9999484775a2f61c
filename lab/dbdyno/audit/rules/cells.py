"""Consistency of the numbers within a cell.

concurrency    throughput × mean latency is the number of requests in flight (Little 1961), and a
               closed loop of N connections never has more. A latency without further words may be
               a percentile; equal load generators may print the connections of each
statements     queries over transactions is the number of statements in a transaction; of an unknown
               workload with queries only, queries × mean latency gives it if most rows agree on a
               whole number; a few queries more or less are a note, as of transactions rolled back
               or of rates from other seconds
percentiles    they rise; a share 1 - q of requests takes at least as long as the q-th, so it is
               at most mean / (1 - q) (Markov), and a closed loop's mean is at most its
               connections over its throughput; a mean above them needs a greatest latency far
               above it; sysbench 1.0 and later print them on a grid
repeats        a cell that is printed several times with different numbers
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from dbdyno.audit.ledger import LedgerEntry, Severity
from dbdyno.audit.tables import MEAN, QPS, TPS, Printed, Publication, PublishedCell
from dbdyno.language.words import Said, count, listed, say

ABOVE: Final = 1.005
"""Requests in flight as a share of connections, beyond rounding."""
ABOVE_OF_MEANS: Final = 1.03
"""The product of two means over runs that lie 17 % apart (standard deviation) is so far above."""
BELOW: Final = 0.97
"""A closed loop has all connections in flight but for the client's own time."""
ALONE: Final = 0.8
ALONE_AT_END: Final = 0.5
"""A misprint is further off than a client that limits a single cell, as at the most connections."""
CLIENTS_MIN: Final = 3
"""Cells that must agree on a number of load generators."""
STATEMENTS: Final = {"read_write": 20, "read_only": 16, "write_only": 6}
"""Of a transaction with sysbench's defaults; other workloads send a single statement."""
SINGLE: Final = re.compile(r"point_select|update_(non_)?index|insert|delete|select_random")
STATEMENTS_OFF: Final = 0.001
RETRIED_MAX: Final = 0.05
"""Further queries may belong to transactions that were rolled back; fewer, to other seconds."""
AGREEING_MIN: Final = 0.5
"""Share of a workload's rows with sysbench's statements; below it, it is another workload."""
GRID_LEAST_MS: Final = 0.001
GRID_STEP: Final = math.log(1e8) / 1023
"""sysbench 1.0: 1024 sizes from 0.001 to 100,000 ms, in a geometric series."""
GRID_TOOL: Final = re.compile(r"sysbench[^0-9]*1\.[01]")
OFF_GRID_MIN: Final = 3
STATEMENTS_MAX: Final = 60
"""Of a transaction of an unknown workload; rounding blurs larger numbers."""
AGREE_SHARE: Final = 0.8
AGREE_MIN: Final = 4
"""Rows, and their share, that must agree on the statements of an unknown workload."""
OTHER_SHARE: Final = 0.6
"""Of the statements of a known workload, above which the client may be why fewer are in flight."""
FAR_ABOVE: Final = 1.25
"""Distance of a faulty row from inferred statements; less may be an error of the inference."""


def check(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """All rules on every cell."""
    closed = not publication.has_rate
    by_options = publication.statements
    each = _statements_by_workload(cells, by_options, closed=closed)
    yield from _other_options(publication)
    if closed:
        yield from _concurrency(cells, each)
    known = {workload: one for workload, one in each.items() if not one.rows}
    for cell in cells:
        yield from _percentiles(cell, known, closed=closed)
        if cell.replaced:
            yield LedgerEntry(
                severity=Severity.NOTE,
                rule="repeats",
                sentence=say(
                    "the cell is printed more than once, with different numbers: the audit uses "
                    "the last"
                ),
                arithmetic=listed(cell.replaced),
                place=cell.title,
            )
    yield from _statements(cells, by_options)
    if GRID_TOOL.search(publication.tool):
        yield from _grid(cells)


class _Each(NamedTuple):
    """Statements of a workload's transaction, and in how many of how many rows they were seen.

    Both are 0 where sysbench's workload is known.
    """

    statements: int
    rows: int = 0
    of: int = 0


def _statements_by_workload(
    cells: Sequence[PublishedCell], by_options: Mapping[str, int], *, closed: bool
) -> Mapping[str, _Each]:
    """Statements by workload: known ones, or inferred from most rows with queries and a mean.

    A known workload may run with other options and far fewer statements; slightly fewer requests in
    flight are due to the client.

    Args:
        by_options: statements by printed options.
    """
    each: dict[str, _Each] = {}
    cells_by_workload: dict[str, list[PublishedCell]] = {}
    for cell in cells:
        cells_by_workload.setdefault(cell.workload, []).append(cell)
    for workload, of_workload in cells_by_workload.items():
        known = by_options.get(workload) or statements_of(workload)
        if known is not None:
            each[workload] = _Each(known)
        in_flight = [
            (qps.low * mean.low / 1e3 / cell.threads, qps.high * mean.high / 1e3 / cell.threads)
            for cell in of_workload
            if cell.threads > 0
            and TPS not in cell.values
            and (qps := cell.values.get(QPS))
            and (mean := cell.values.get(MEAN))
        ]
        agree = {
            count: sum(low <= ABOVE * count and high >= BELOW * count for low, high in in_flight)
            for count in range(1, STATEMENTS_MAX + 1)
        }
        count = max(agree, key=lambda one: agree[one])
        is_other = known is None or count <= OTHER_SHARE * known
        if closed and is_other and agree[count] >= max(AGREE_MIN, AGREE_SHARE * len(in_flight)):
            each[workload] = _Each(count, agree[count], len(in_flight))
    return each


def _concurrency(cells: list[PublishedCell], each: Mapping[str, _Each]) -> Iterator[LedgerEntry]:
    """Cells with more requests in flight than connections, or far fewer."""
    flights = [(cell, in_flight) for cell in cells if (in_flight := _in_flight(cell, each))]
    clients = _clients([flight for _, flight in flights])
    seen = [(cell, flight.shared(clients)) for cell, flight in flights]
    around = _around(seen)
    if clients > 1:
        yield LedgerEntry(
            severity=Severity.NOTE,
            rule="concurrency",
            sentence=say(
                "throughput and mean latency fit {clients} times the printed connections: "
                "perhaps {clients} load generators had as many each",
                clients=clients,
            ),
            arithmetic=flights[0][1].arithmetic(flights[0][0]),
            place=flights[0][0].title,
        )
    for workload, statements in each.items():
        if statements.rows and statements.statements > 1:
            yield LedgerEntry(
                severity=Severity.NOTE,
                rule="statements",
                sentence=say(
                    "a transaction of {workload} seems to have {count} statements",
                    workload=workload or "?",
                    count=statements.statements,
                ),
                arithmetic=say(
                    "queries × mean latency over connections, in {rows} of {of}",
                    rows=statements.rows,
                    of=count(statements.of, "row"),
                ),
            )
    for cell, flight in seen:
        is_inferred = bool(each.get(cell.workload, _Each(0)).rows)
        if judged := _of_flight(
            cell, flight, around, most=FAR_ABOVE if is_inferred else ABOVE_OF_MEANS
        ):
            severity, sentence = judged
            yield LedgerEntry(
                severity=severity,
                rule="concurrency",
                sentence=sentence,
                arithmetic=flight.arithmetic(cell),
                place=cell.title,
            )


def _of_flight(
    cell: PublishedCell,
    flight: _InFlight,
    around: _Around,
    *,
    most: float,
) -> tuple[Severity, Said] | None:
    """The weight and the sentence of a cell; None if its requests in flight are as usual."""
    if flight.low > ABOVE and not cell.is_mean_said:
        return Severity.NOTE, say(
            "throughput and latency need more requests in flight than the {threads} connections "
            "can have: the latency is not a mean, or does not belong to this run",
            threads=cell.threads,
        )
    if ABOVE < flight.low <= ABOVE_OF_MEANS:
        return Severity.NOTE, say(
            "throughput and mean latency need a few more requests in flight than the {threads}"
            " connections can have, perhaps because they are means over runs that differ much",
            threads=cell.threads,
        )
    if flight.low > most:
        return Severity.CONTRADICTION, say(
            "throughput and mean latency need more requests in flight than the {threads} "
            "connections can have",
            threads=cell.threads,
        )
    if flight.high >= BELOW:
        return None
    if cell.is_mean_said and _is_alone(cell, flight, around):
        return Severity.CONTRADICTION, say(
            "throughput and mean latency do not belong to the same run: in this cell only, far "
            "fewer requests were in flight than there are connections ({threads})",
            threads=cell.threads,
        )
    return Severity.NOTE, say(
        "fewer requests were in flight than there were {threads} connections: the client was "
        "too slow, waited between requests, or mean latency and throughput do not belong to the "
        "same run",
        threads=cell.threads,
    )


def _clients(flights: Sequence[_InFlight]) -> int:
    """Number of equal load generators in whose connections most cells agree; 1 without."""
    shares = sorted(flight.share for flight in flights)
    clients = max(1, round(shares[len(shares) // 2])) if len(shares) >= CLIENTS_MIN else 1
    usual = [flight for flight in flights if _is_usual(flight.shared(clients))]
    return clients if len(usual) >= AGREE_SHARE * len(flights) else 1


class _InFlight(NamedTuple):
    """Requests in flight as a share of the connections, and the least and most by rounding."""

    tps: float
    share: float
    low: float
    high: float

    def shared(self, clients: int) -> _InFlight:
        """The share of the connections of so many load generators."""
        return _InFlight(self.tps, self.share / clients, self.low / clients, self.high / clients)

    def arithmetic(self, cell: PublishedCell) -> Said:
        """The computation from the printed numbers."""
        mean, threads = cell.values[MEAN], cell.threads
        rate = f"{self.tps:.6g}/s"
        if TPS not in cell.values and (statements := round(cell.values[QPS].value / self.tps)) > 1:
            rate = f"{cell.values[QPS].text}/s / {statements}"
        return say(
            "{rate} × {mean} ms = {in_flight:.4g} in flight, {least:.4g} to {most:.4g} with"
            " rounding",
            rate=rate,
            mean=mean.text,
            in_flight=self.share * threads,
            least=self.low * threads,
            most=self.high * threads,
        )


def _in_flight(cell: PublishedCell, each: Mapping[str, _Each]) -> _InFlight | None:
    rate, mean = _transactions(cell, each), cell.values.get(MEAN)
    if rate is None or mean is None or cell.threads <= 0 or mean.low <= 0:  # rounded to nothing
        return None
    shares = zip(rate, (mean.value, mean.low, mean.high), strict=True)
    return _InFlight(rate[0], *(tps * ms / 1e3 / cell.threads for tps, ms in shares))


@dataclass(frozen=True)
class _Around:
    """Facts of all cells with requests in flight, for judging a single cell.

    Attributes:
        steady: systems with at most two cells that are not as usual, and at least two that are.
        ends: system, workload and threads of the first and last load levels.
    """

    steady: frozenset[str]
    ends: frozenset[tuple[str, str, int]]


def _around(seen: Sequence[tuple[PublishedCell, _InFlight]]) -> _Around:
    every = Counter(cell.system for cell, _ in seen)
    usual = Counter(cell.system for cell, flight in seen if _is_usual(flight))
    levels: dict[tuple[str, str], set[int]] = {}
    for cell, _ in seen:
        levels.setdefault((cell.system, cell.workload), set()).add(cell.threads)
    return _Around(
        frozenset(name for name, cells in usual.items() if cells >= max(2, every[name] - 2)),
        frozenset((*at, end) for at, of in levels.items() for end in (min(of), max(of))),
    )


def _is_alone(cell: PublishedCell, flight: _InFlight, around: _Around) -> bool:
    """Recognises the system's only cell that contradicts Little's law."""
    is_end = (cell.system, cell.workload, cell.threads) in around.ends
    is_far = flight.high < (ALONE_AT_END if is_end else ALONE)
    return is_far and cell.system in around.steady


def _is_usual(flight: _InFlight) -> bool:
    return flight.high >= BELOW and flight.low <= ABOVE_OF_MEANS


def _transactions(
    cell: PublishedCell, each: Mapping[str, _Each]
) -> tuple[float, float, float] | None:
    """Transactions a second with their limits by rounding, printed or from queries."""
    if (tps := cell.values.get(TPS)) is not None:
        return tps.value, tps.low, tps.high
    qps, known = cell.values.get(QPS), each.get(cell.workload)
    if qps is None or known is None:
        return None
    return qps.value / known.statements, qps.low / known.statements, qps.high / known.statements


def statements_of(workload: str) -> int | None:
    """Statements of a transaction of sysbench's workload; None if unknown."""
    for name, statements in STATEMENTS.items():
        if name in workload:
            return statements
    return 1 if SINGLE.search(workload) else None


def _other_options(publication: Publication) -> Iterator[LedgerEntry]:
    """Workloads with another number of statements by printed options than by default."""
    for workload, statements in publication.statements.items():
        if statements_of(workload) != statements:
            yield LedgerEntry(
                severity=Severity.NOTE,
                rule="statements",
                sentence=say(
                    "a transaction of {workload} has {statements} by the printed options",
                    workload=workload,
                    statements=count(statements, "statement"),
                ),
                arithmetic=say("the audit counts with these, not with sysbench's defaults"),
                place=publication.places.get(f"statements.{workload}", ""),
            )


def _statements(cells: list[PublishedCell], by_options: Mapping[str, int]) -> Iterator[LedgerEntry]:
    """Rows with another ratio than their workload; a single entry if all agree on another."""
    rows_by_workload: dict[tuple[str, str], list[tuple[PublishedCell, float, float, float]]] = {}
    for cell in cells:
        tps, qps = cell.values.get(TPS), cell.values.get(QPS)
        if tps is not None and qps is not None and tps.low > 0:
            low, high = qps.low / tps.high, qps.high / tps.low
            alike = cell.workload, str(sorted(cell.at.items()))  # others may have other options
            rows_by_workload.setdefault(alike, []).append((cell, qps.value / tps.value, low, high))
    for (workload, _), rows in rows_by_workload.items():
        usual = by_options.get(workload) or statements_of(workload)
        known = usual or round(sorted(ratio for _, ratio, _, _ in rows)[len(rows) // 2])
        off = [row for row in rows if not _is_near(known, row[2], row[3])]
        if usual is None and len(rows) - len(off) < max(AGREE_MIN, AGREE_SHARE * len(rows)):
            continue  # as of TPC-C, whose transactions are not alike
        other = round(rows[0][1])
        is_other = len(rows) - len(off) < AGREEING_MIN * len(rows)
        if len(off) == len(rows) and all(_is_near(other, low, high) for _, _, low, high in rows):
            yield LedgerEntry(
                severity=Severity.NOTE,
                rule="statements",
                sentence=say(
                    "a transaction of {workload} has {other} here and {known} by the"
                    " printed options: they are of another run",
                    workload=workload,
                    other=count(other, "statement"),
                    known=known,
                )
                if workload in by_options
                else say(
                    "a transaction of {workload} has {other} here and {known} with"
                    " sysbench's defaults: its options were changed",
                    workload=workload or "?",
                    other=count(other, "statement"),
                    known=known,
                ),
                arithmetic=say("queries over transactions in {rows}", rows=count(len(rows), "row")),
            )
            continue
        yield from (_of_ratio(*row, known=known, is_other=is_other) for row in off)


def _of_ratio(
    cell: PublishedCell, ratio: float, low: float, high: float, *, known: int, is_other: bool
) -> LedgerEntry:
    """A row with another number of statements a transaction."""
    severity = Severity.NOTE
    is_near = (1 - RETRIED_MAX) * known <= high and low <= (1 + RETRIED_MAX) * known
    if is_near and known < low:
        sentence = say(
            "more than {known} queries per transaction: some transactions were rolled back, or "
            "the numbers do not belong to the same run",
            known=known,
        )
    elif is_near or is_other:
        sentence = say(
            "queries are not {known} times the transactions: they were counted over another "
            "time, or sent with other options",
            known=known,
        )
    else:
        severity = Severity.CONTRADICTION
        sentence = say(
            "queries and transactions do not belong to the same run: a transaction has "
            "{statements}",
            statements=count(known, "statement"),
        )
    return LedgerEntry(
        severity=severity,
        rule="statements",
        sentence=sentence,
        arithmetic=say(
            "{qps} / {tps} = {ratio:.4f}, {low:.4f} to {high:.4f} with rounding",
            qps=cell.values[QPS].text,
            tps=cell.values[TPS].text,
            ratio=ratio,
            low=low,
            high=high,
        ),
        place=cell.title,
    )


def _is_near(known: int, low: float, high: float) -> bool:
    """Tests if the ratio fits within rounding; retried transactions add a few."""
    return low <= known * (1 + STATEMENTS_OFF) and high >= known * (1 - STATEMENTS_OFF)


def _percentiles(
    cell: PublishedCell, each: Mapping[str, _Each], *, closed: bool
) -> Iterator[LedgerEntry]:
    known = cell.quantiles()
    rising = [("min", cell.values.get("latency_ms_min")), *((m, n) for _, m, n in known)]
    rising.append(("max", cell.values.get("latency_ms_max")))
    there = [(name.removeprefix("latency_ms_"), number) for name, number in rising if number]
    for (less, small), (more, large) in pairwise(there):
        if small.low > large.high:
            yield _impossible(
                cell,
                say("{less} is above {more}", less=less, more=more),
                say("{small} ms > {large} ms", small=small.text, large=large.text),
            )
    mean = _mean(cell, each, closed=closed)
    if mean is None:
        return
    low_ms, high_ms, said = mean
    for share, metric, number in known:
        bound_ms, percentile = high_ms / (1 - share), metric.removeprefix("latency_ms_")
        if number.low > bound_ms:
            yield _impossible(
                cell,
                say("{metric} is above what the mean allows", metric=percentile),
                say(
                    "{number} ms > {bound:.4g} ms: if a share of {rest:.3g} of the requests took"
                    " so long, the mean would be above {said}",
                    number=number.text,
                    bound=bound_ms,
                    rest=1 - share,
                    said=said,
                ),
            )
        if share >= 0.99 and number.high < low_ms:
            least_ms = (low_ms - share * number.high) / (1 - share)
            most = cell.values.get("latency_ms_max")
            is_impossible = most is not None and most.high < least_ms
            yield LedgerEntry(
                severity=Severity.CONTRADICTION if is_impossible else Severity.NOTE,
                rule="percentiles",
                sentence=say("{metric} is below the mean", metric=percentile),
                arithmetic=say(
                    "{number} ms < {said}, so the slowest {rest:.3g} of requests took {least:.4g}"
                    " ms on average",
                    number=number.text,
                    said=said,
                    rest=1 - share,
                    least=least_ms,
                ),
                place=cell.title,
            )


def _mean(
    cell: PublishedCell, each: Mapping[str, _Each], *, closed: bool
) -> tuple[float, float, str] | None:
    """Limits of the mean latency, ms, and their origin.

    Without a printed mean, a closed loop's is at most its connections over its throughput.
    """
    if (mean := cell.values.get(MEAN)) and cell.is_mean_said:
        return mean.low, mean.high, f"{mean.text} ms"
    rate = _transactions(cell, each)
    if closed and rate is not None and rate[1] > 0:
        most_ms = 1e3 * cell.threads / rate[1]
        return 0.0, most_ms, f"{cell.threads} / {rate[0]:.6g} = {most_ms:.4g} ms"
    return None


def _impossible(cell: PublishedCell, sentence: str, arithmetic: str) -> LedgerEntry:
    return LedgerEntry(
        severity=Severity.CONTRADICTION,
        rule="percentiles",
        sentence=say("{what}", what=sentence),
        arithmetic=say("{what}", what=arithmetic),
        place=cell.title,
    )


def _grid(cells: Iterable[PublishedCell]) -> Iterator[LedgerEntry]:
    """Percentiles impossible for a single run of sysbench 1.0."""
    every = [(cell, n) for cell in cells for share, _, n in cell.quantiles() if n.value > 0]
    off = [(cell, number) for cell, number in every if not is_on_grid(number)]
    if len(off) >= OFF_GRID_MIN:
        cell, number = off[0]
        yield LedgerEntry(
            severity=Severity.NOTE,
            rule="grid",
            sentence=say(
                "{off} of {count} percentiles cannot come from a single run of sysbench: they are"
                " means of several runs, or come from another tool",
                off=len(off),
                count=len(every),
            ),
            arithmetic=say(
                "sysbench 1.0 prints 0.001 · 1.01817^k ms; {number} ms lies between two of them",
                number=number.text,
            ),
            place=cell.title,
        )


def is_on_grid(number: Printed) -> bool:
    """Tests if sysbench 1.0 can print this percentile."""
    near = round(math.log(number.value / GRID_LEAST_MS) / GRID_STEP)
    return any(
        number.low - 1e-9 <= GRID_LEAST_MS * math.exp(k * GRID_STEP) <= number.high + 1e-9
        for k in (near - 1, near, near + 1)
    )
