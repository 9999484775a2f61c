"""An honest publication has the same cells, and no accusation, in whatever form it is printed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from validation.audit_rates import accused, honest

from dbdyno.audit.read import read
from dbdyno.audit.tables import Publication, PublishedTable

METRICS = {
    "tps": "TPS",
    "qps": "QPS",
    "latency_ms_avg": "Avg latency (ms)",
    "latency_ms_p95": "95% latency (ms)",
    "latency_ms_p99": "P99 (ms)",
}
WORKLOADS = {
    "oltp_read_write": "Read Write",
    "oltp_read_only": "Read only test",
    "oltp_point_select": "点查",
}
Form = Callable[[Sequence[PublishedTable]], str]


def rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = (f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *body))
    return f"{''.join(lines)}\n"


def by_level(tables: Sequence[PublishedTable], metrics: Sequence[str]) -> list[list[str]]:
    levels = [[str(threads)] for threads in tables[0].threads]
    for table in tables:
        for metric in metrics:
            for cells, number in zip(levels, table.values[metric], strict=True):
                cells.append(number.text)
    return levels


def a_table_each(tables: Sequence[PublishedTable]) -> str:
    head = ["Number of threads", *METRICS.values()]
    return "".join(f"**{t.system}**\n\n{rows(head, by_level([t], list(METRICS)))}" for t in tables)


def a_column_each(tables: Sequence[PublishedTable]) -> str:
    heads = [f"{table.system} {heading}" for table in tables for heading in METRICS.values()]
    return rows(["并发数", *heads], by_level(tables, list(METRICS)))


def a_table_for_each_metric(tables: Sequence[PublishedTable]) -> str:
    head = ["Threads", *(table.system for table in tables)]
    parts = (f"{said}:\n\n{rows(head, by_level(tables, [m]))}" for m, said in METRICS.items())
    return "".join(parts)


def levels_in_the_heading(tables: Sequence[PublishedTable]) -> str:
    head = ["", *(f"{threads} threads" for threads in tables[0].threads)]
    page = ""
    for metric, said in METRICS.items():
        body = [[table.system, *(n.text for n in table.values[metric])] for table in tables]
        page += f"**{said}**\n\n{rows(head, body)}"
    return page


def printed(publication: Publication, form: Form) -> str:
    page = f"# {WORKLOADS[publication.workload]}\n\nEach for ten minutes.\n\n"
    for size in ("16", "64"):
        tables = [one for one in publication.tables if one.at["buffer_pool_gb"] == size]
        page += f"## Buffer pool {size} GB\n\n{form(tables)}"
    return page


@pytest.mark.parametrize(
    "form", [a_table_each, a_column_each, a_table_for_each_metric, levels_in_the_heading]
)
def test_a_form_changes_no_cell_and_accuses_nobody(tmp_path: Path, form: Form) -> None:
    dice = random.Random(7)
    for _ in range(8):
        publication = honest(dice)
        (tmp_path / "page.md").write_text(printed(publication, form))
        (page,) = read([tmp_path / "page.md"])
        cells = [
            sorted((c.system, c.key, m, n.value) for c in one.cells() for m, n in c.values.items())
            for one in (page, publication)
        ]
        assert cells[0] == cells[1]
        assert not accused(page)
