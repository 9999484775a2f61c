"""A world without anything wrong, and a server in it."""

import pytest

from support.world import FakeServer, World


@pytest.fixture
def world():
    made = World()
    with made.lab():
        yield made


@pytest.fixture
def server(world):
    return FakeServer(world, "a")
