"""Shape of the results, contradictions with the set-up, and undisclosed method.

shape      throughput that falls with more connections or more memory; systems that change places
physics    latency against the network's round trip, caches against memory, bytes for each row;
           notes where a page's words name them, perhaps of another machine or network
settings   printed settings against stated sizes and durability
missing    undisclosed repeats, spread, warm-up, order, …
unread     sentences of a page, tables without results, meanings taken from elsewhere on it
hidden     tables in comments of a page
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations, groupby, pairwise
from typing import Final

from dbdyno.audit.ledger import LedgerEntry, Severity
from dbdyno.audit.tables import LATENCY, NOPM, QPS, TPS, Printed, Publication, PublishedCell, pairs
from dbdyno.language.words import Said, count, listed, say

DROP: Final = 0.03
"""Less is the usual difference between two runs."""
SHOWN: Final = 3
MEMORY: Final = re.compile(r"buffer_pool|cache|memory|内存")
CACHES: Final = re.compile(r"innodb[_-]buffer[_-]pool[_-]size|shared_buffers")
ROW_BYTES: Final = (150, 400)
"""A row of sysbench with its index takes 190 to 300 bytes in InnoDB."""
GIB: Final = 1024**3
STDDEV: Final = "latency_ms_stddev"
"""As pgbench prints it: how far latencies lie apart, no latency."""
DISCLOSURES: Final[Mapping[str, Said]] = {
    "repeats": say("how often each cell was measured"),
    "spread": say("how much repeated measurements differed"),
    "duration": say("how long each run took"),
    "warm_up": say("whether and how long servers were warmed up"),
    "order": say("in which order cells and systems ran"),
    "client": say("the load generator's machine and CPU use"),
    "versions": say("the servers' versions"),
    "durability": say("whether commits were durable"),
}
OF_LOAD: Final = {"time_s": "duration", "warm_up_s": "warm_up"}
"""Disclosures by the printed options that make them."""
DURABILITY: Final = re.compile(
    r"sync_binlog|flush_log_at_trx_commit|synchronous_commit|sync-log|durability"
)


DOUBLE_ONE: Final = re.compile(
    r"双\s*[1一]|double[- ]?(?:1|one)\b|fully durable|sync_binlog\s*=\s*1"
    r"|flush_log_at_trx_commit\s*=\s*1",
    re.IGNORECASE,
)


def check(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """All of them."""
    yield from _drops(cells)
    yield from _crossovers(cells)
    yield from _physics(publication, cells)
    yield from _settings(publication, cells)
    if publication.is_record:
        yield from _once(publication)
    elif not publication.has_prose:
        yield from _missing(publication)
    else:
        yield LedgerEntry(
            severity=Severity.NOTE,
            rule="unread",
            sentence=say("the audit does not read the sentences of pages"),
            arithmetic=say(
                "write the pages' claims, and what they say about the method, into a YAML file: "
                "`dbdyno audit PAGE CLAIMS.yaml`"
            ),
        )
    if publication.unread:
        yield LedgerEntry(
            severity=Severity.NOTE,
            rule="unread",
            sentence=say("runs without a report or a database were not read")
            if publication.is_record
            else say("these parts were not read"),
            arithmetic=listed(publication.unread, "; "),
        )
    if publication.assumed:
        yield LedgerEntry(
            severity=Severity.NOTE,
            rule="unread",
            sentence=say("the audit takes these from elsewhere on the page"),
            arithmetic=listed(publication.assumed, "; "),
        )
    if hidden := dict.fromkeys(table.place for table in publication.tables if table.is_hidden):
        yield LedgerEntry(
            severity=Severity.NOTE,
            rule="hidden",
            sentence=say("the page has tables in comments, which a reader does not see"),
            arithmetic=listed(hidden, "; "),
        )


def _rate(cell: PublishedCell) -> Printed | None:
    return cell.values.get(TPS) or cell.values.get(QPS) or cell.values.get(NOPM)


def _drops(cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """Neighbours along the load levels, and along an axis of memory."""
    for falls, sentence in (
        ([*_falls_with_threads(cells)], say("throughput falls with more connections")),
        ([*_falls_with_memory(cells)], say("throughput falls with more memory")),
    ):
        if falls:
            yield LedgerEntry(
                severity=Severity.NOTE,
                rule="shape",
                sentence=say(
                    "{what} by over {share:.0%} in {places}; without repeats, this may be chance",
                    what=sentence,
                    share=DROP,
                    places=count(len(falls), "place"),
                ),
                arithmetic=listed(falls[:SHOWN], "; "),
            )


def _falls_with_threads(cells: list[PublishedCell]) -> Iterator[str]:
    def place(cell: PublishedCell) -> tuple[str, ...]:
        return cell.system, cell.workload, *map(str, sorted(cell.at.items()))

    for _, ladder in groupby(sorted(cells, key=lambda c: (place(c), c.threads)), key=place):
        rungs = [(cell, rate) for cell in ladder if (rate := _rate(cell))]
        for (low, less), (high, more) in pairwise(rungs):
            if more.value < (1 - DROP) * less.value:
                yield say(
                    "{cell}: {less} with {low}, {more} with {high}",
                    cell=high.title,
                    less=less.text,
                    more=more.text,
                    low=low.threads,
                    high=high.threads,
                )


def _falls_with_memory(cells: list[PublishedCell]) -> Iterator[str]:
    for axis in dict.fromkeys(name for cell in cells for name in cell.at if MEMORY.search(name)):
        ranks = ((cell, _rank(axis, cell.at.get(axis, ""))) for cell in cells)
        sized = [(cell, rank) for cell, rank in ranks if rank is not None]

        def place(pair: tuple[PublishedCell, float], axis: str = axis) -> tuple[str, ...]:
            cell = pair[0]
            rest = sorted(item for item in cell.at.items() if item[0] != axis)
            return cell.system, cell.workload, f"{cell.threads:06}", *map(str, rest)

        for _, group in groupby(sorted(sized, key=lambda o: (place(o), o[1])), key=place):
            steps = [(cell, rate) for cell, _ in group if (rate := _rate(cell))]
            for (_, less), (cell, more) in pairwise(steps):
                if more.value < (1 - DROP) * less.value:
                    yield say(
                        "{cell}: {more} after {less}",
                        cell=cell.title,
                        more=more.text,
                        less=less.text,
                    )


def _crossovers(cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """Systems of which neither is ahead in all cells."""
    for first, second in combinations(dict.fromkeys(cell.system for cell in cells), 2):
        beside = [
            (cell, rate.value / other.value)
            for cell, its in pairs(cells, first, second)
            if (rate := _rate(cell)) and (other := _rate(its)) and other.value > 0
        ]
        ahead = [cell for cell, ratio in beside if ratio > 1 + DROP]
        behind = [cell for cell, ratio in beside if ratio < 1 - DROP]
        if ahead and behind:
            yield LedgerEntry(
                severity=Severity.NOTE,
                rule="shape",
                sentence=say(
                    "neither of {first} and {second} is ahead everywhere: {ahead} against {behind},"
                    " the others within {share:.0%}",
                    first=first,
                    second=second,
                    ahead=count(len(ahead), "cell"),
                    behind=len(behind),
                    share=DROP,
                ),
                arithmetic=listed(
                    (cell.title for cell in min(ahead, behind, key=len)[:SHOWN]), "; "
                ),
            )


def _physics(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    about = publication.environment
    yield from _round_trips(
        cells,
        _number(about.get("network_ms")),
        Severity.CONTRADICTION,
        say("a latency is below one round trip of the stated network"),
    )
    yield from _round_trips(
        cells,
        _number(about.get("round_trip_ms")),
        Severity.NOTE,
        say(
            "a latency is below the network's round trip that the page names, so client and "
            "server were not connected by this network"
        ),
    )
    memory_gb = _number(about.get("memory_gb"))
    axes = dict.fromkeys(name for cell in cells for name in cell.at if MEMORY.search(name))
    sizes = {
        axis: max((_size_gb(axis, one.at.get(axis, "")) or 0.0 for one in cells), default=0.0)
        for axis in axes
    }
    sizes |= {
        name: size
        for name, value in publication.settings.items()
        if CACHES.fullmatch(name) and (size := _gigabytes(value))
    }
    for name, size in sizes.items():
        if memory_gb and size > memory_gb:
            yield LedgerEntry(
                severity=Severity.NOTE
                if publication.is_set_up_of_prose
                else Severity.CONTRADICTION,
                rule="physics",
                sentence=say("{axis} is larger than the machine's memory", axis=name),
                arithmetic=say("{size:g} GB > {memory:g} GB", size=size, memory=memory_gb),
            )
    yield from _bytes_of_rows(publication)


def _round_trips(
    cells: list[PublishedCell], network_ms: float | None, severity: Severity, sentence: Said
) -> Iterator[LedgerEntry]:
    """Latencies below the round trip of a packet."""
    for cell in cells if network_ms else ():
        times = [n for m, n in cell.values.items() if m.startswith(LATENCY) and m != STDDEV]
        fastest = min(times, key=lambda one: one.high, default=None)
        if network_ms and fastest and fastest.high < network_ms:
            yield LedgerEntry(
                severity=severity,
                rule="physics",
                sentence=sentence,
                arithmetic=say(
                    "{latency} ms < {network:g} ms", latency=fastest.text, network=network_ms
                ),
                place=cell.title,
            )


def _bytes_of_rows(publication: Publication) -> Iterator[LedgerEntry]:
    """The size of all tables, or of a single table, against its rows."""
    data = publication.dataset
    rows, each_gb = data.get("rows_per_table", 0), data.get("gb_per_table")
    size_gb = data.get("size_gb") if each_gb is None else each_gb
    rows *= data.get("tables", 0) if each_gb is None else 1
    if not rows or not size_gb:
        return
    each = size_gb * GIB / rows
    if not ROW_BYTES[0] <= each <= ROW_BYTES[1]:
        yield LedgerEntry(
            severity=Severity.NOTE if publication.is_set_up_of_prose else Severity.OVER_CLAIM,
            rule="physics",
            sentence=say("the dataset's size does not fit its rows"),
            arithmetic=say(
                "{size:g} GB / {rows:.3g} rows = {each:.0f} bytes each; a row of sysbench takes"
                " 190 to 300",
                size=size_gb,
                rows=rows,
                each=each,
            ),
        )


def _settings(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """A printed size without a table, and a stated durability that the settings contradict."""
    for axis in dict.fromkeys(name for cell in cells for name in cell.at if MEMORY.search(name)):
        stem = re.sub(r"_(gb|mb|size)$", "", axis)
        sizes = {_size_gb(axis, cell.at.get(axis, "")) for cell in cells} - {None}
        for name, value in publication.settings.items():
            size_gb = _gigabytes(value)
            if stem in name and CACHES.match(name) and size_gb and size_gb not in sizes:
                yield LedgerEntry(
                    severity=Severity.NOTE,
                    rule="settings",
                    sentence=say(
                        "the printed settings belong to none of the tables: with these "
                        "settings, a reader repeats another experiment"
                    ),
                    arithmetic=say(
                        "{name} = {value}, tables at {sizes} GB",
                        name=name,
                        value=str(value),
                        sizes=listed(f"{size:g}" for size in sorted(filter(None, sizes))),
                    ),
                )
    for text in [publication.title, *publication.disclosed.values()]:
        weak = [
            f"{name} = {value}"
            for name, value in publication.settings.items()
            if re.fullmatch(r"sync_binlog|innodb_flush_log_at_trx_commit", name)
            and str(value) != "1"
        ]
        if weak and DOUBLE_ONE.search(text):
            yield LedgerEntry(
                severity=Severity.CONTRADICTION,
                rule="settings",
                sentence=say("the printed settings do not give the stated durability"),
                arithmetic=listed(weak),
                place=text,
            )


def _gigabytes(value: object) -> float | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MGT])i?B?", str(value).strip(), re.IGNORECASE)
    if match is None:
        return None
    return float(match[1]) * {"m": 1 / 1024, "g": 1.0, "t": 1024.0}[match[2].lower()]


def _size_gb(axis: str, text: str) -> float | None:
    """A size of memory; a bare number is in the axis's unit. None for anything else."""
    if (size := _gigabytes(text)) is not None:
        return size
    if not re.fullmatch(r"\d+(?:\.\d+)?", text.strip()):
        return None
    return float(text) / (1024 if axis.endswith("_mb") else 1)


def _rank(axis: str, text: str) -> float | None:
    """Sort key of sizes; shares among themselves."""
    return _number(text) if text.strip().endswith("%") else _size_gb(axis, text)


def _number(value: object) -> float | None:
    match = re.search(r"\d+(?:\.\d+)?", str(value or ""))
    return float(match[0]) if match else None


NO_REPEATS: Final = say(
    "without repeats, a difference between systems cannot be distinguished from the variation "
    "between runs"
)


def _once(publication: Publication) -> Iterator[LedgerEntry]:
    if not publication.disclosed.get("repeats"):
        yield LedgerEntry(
            severity=Severity.UNSAFE,
            rule="missing",
            sentence=say("each cell has one run"),
            arithmetic=NO_REPEATS,
        )


def _missing(publication: Publication) -> Iterator[LedgerEntry]:
    disclosed = {name for name, text in publication.disclosed.items() if text}
    labels = {*publication.systems, *(table.system for table in publication.tables)}
    versions = [publication.systems.get(label, label) for label in labels]
    if publication.systems and all(re.search(r"\d", text) for text in versions):
        disclosed.add("versions")
    if any(DURABILITY.search(name) for name in publication.settings):
        disclosed.add("durability")
    disclosed |= {name for option, name in OF_LOAD.items() if option in publication.load}
    missing = [text for name, text in DISCLOSURES.items() if name not in disclosed]
    if missing:
        yield LedgerEntry(
            severity=Severity.UNSAFE if "repeats" not in disclosed else Severity.NOTE,
            rule="missing",
            sentence=say(
                "the publication does not state: {missing}", missing=listed(missing, "; ")
            ),
            arithmetic=NO_REPEATS
            if "repeats" not in disclosed
            else say("without this, a reader can neither repeat nor judge the measurement"),
        )
