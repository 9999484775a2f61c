"""The order in which the files of live tests begin.

Workers take whole files (`--dist loadfile`). A long one that began last would keep one worker busy
while the other had nothing left to do, so the longest begin first.
"""

from __future__ import annotations

from typing import Final

import pytest

LONGEST_FIRST: Final = (
    "test_main_job",
    "test_catalog",
    "test_unattended",
    "test_benchmarks",
    "test_sysbench",
    "test_topology",
    "test_transport",
    "test_servers",
    "test_sources",
    "test_until_decided",
    "test_live_run",
    "test_postgres",
    "test_prepare",
    "test_engine",
    "test_procedure",
    "test_bundle",
    "test_ways",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))
