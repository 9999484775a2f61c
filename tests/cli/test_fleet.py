"""`dbdyno fleet check` tells of nodes that do not reach each other."""

import json

import pytest

from dbdyno.cli.fleet import Looked
from dbdyno.language.catalogues import Language
from dbdyno.report.formats.stdout import Output, render

check = pytest.importorskip("dbdyno.fleet.check")


class Probe:
    """A node's actor, whose calls are told by both names."""

    def __init__(self, name):
        self.name = name
        self.way_to = self

    def remote(self, other):
        return f"{self.name} to {other.name}"


def get(asked, timeout):
    """Ray's, of a cluster in which `a` is not let through to `b`."""
    if asked == "a to b":
        raise check.ray.exceptions.GetTimeoutError(f"not within {timeout} s")
    return 0.5, 900.0


def test_a_way_that_is_closed_is_a_line_of_its_own(monkeypatch):
    monkeypatch.setattr(check.ray, "get", get)
    ways = tuple(check._ways([Probe("a"), Probe("b")], [0, 1]))
    assert ways == (check.Way(1, 2, None, None), check.Way(2, 1, 0.5, 900.0))
    seen = Looked((), ways)
    assert json.loads(render(seen, Output.JSON, Language.EN))["ways"][0]["round_trip_ms"] is None
    assert "—" in render(seen, Output.PLAIN, Language.EN)
