"""The order in which the files of live tests begin, and what is no fault of theirs.

Workers take whole files (`--dist loadfile`). A long one that began last would keep one worker busy
while the other had nothing left to do, so the longest begin first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from types import ModuleType
from typing import Final

import pytest

from support import ray_cluster
from support.ray_cluster import Nodes

LONGEST_FIRST: Final = (
    "test_main_job",
    "test_catalog",
    "test_unattended",
    "test_benchmarks",
    "test_sysbench",
    "test_topology",
    "test_fleet",
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


MOVED_ON: Final = "keeps only its newest packages"
"""What the lab says of a row whose package its Debian suite has replaced since."""


def _told_apart() -> Generator[None]:
    """A row that Debian has taken away is to be renewed in the catalog; no change here broke it."""
    try:
        return (yield)
    except Exception as error:
        if MOVED_ON in f"{error} {getattr(error, 'hint', '')}":
            pytest.skip(f"a Debian suite has moved on; renew its row in catalog.py: {error}")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    return (yield from _told_apart())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    return (yield from _told_apart())


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with ray_cluster.started("db", "load", "load") as running:
        yield running


@pytest.fixture(scope="module")
def remote(nodes: Nodes) -> Iterator[ModuleType]:
    """The module of generators, on the cluster; imported only here, as Ray takes seconds."""
    from dbdyno.fleet import cluster, generators

    with cluster.connected(nodes.address):
        yield generators
