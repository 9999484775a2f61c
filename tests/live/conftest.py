"""What is no fault of live tests, and what several of them take: folders, a Ray cluster."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Final

import pytest

from support import lab_process, ray_cluster
from support.ray_cluster import Nodes
from support.shared_servers import SharedServers

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


@pytest.fixture
def workspace() -> Iterator[Path]:
    with lab_process.workspace() as folder:
        yield folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the servers' user may enter (pytest's own are closed)."""
    with TemporaryDirectory(prefix="dbdyno-live-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def shared_servers() -> Iterator[SharedServers]:
    with ExitStack() as stack:
        yield SharedServers(stack)


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
