"""The tables have every field that is watched, no column twice, and a page that says so."""

from __future__ import annotations

from collections import Counter

import pytest

from dbdyno.export.tables import DISKS, KEYS, NETWORKS, TABLES, WATCH, TableDefinition, reference
from dbdyno.measurement.parts import DiskSample, NetworkSample, WatchSample
from support.source import ROOT


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_no_column_stands_there_twice(table: TableDefinition) -> None:
    names = Counter([column.name for column in (*KEYS, *table.columns)])
    assert [name for name, times in names.items() if times > 1] == []


def test_everything_that_is_watched_has_its_column() -> None:
    by_device = {"disks", "networks"}
    assert WatchSample.model_fields.keys() - by_device == WATCH.schema.keys() - {"phase"}
    same = {"phase", "at_s", "device"}
    assert DiskSample.model_fields.keys() == DISKS.schema.keys() - same
    assert NetworkSample.model_fields.keys() == NETWORKS.schema.keys() - same


def test_the_page_names_every_table_and_column() -> None:
    page = (ROOT / "docs" / "reference" / "export.md").read_text()
    assert page.endswith(reference(KEYS, TABLES)), "write `reference(KEYS, TABLES)` to its end"
    named = page.split("writes one file a table: ")[1].split(". The paths")[0]
    assert [word.strip("`,") for word in named.split()] == [table.name for table in TABLES]
