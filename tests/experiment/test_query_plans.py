"""Ways through the tables as servers explain them, in the words of old and new versions."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment import witness
from dbdyno.plan.plan import known_workloads
from support import making

MARIADB = ("1", "SIMPLE", "sbtest1", "range", "PRIMARY", "PRIMARY", "4", "", "99",
           "Using where; Using filesort")  # fmt: skip
MYSQL = ("1", "SIMPLE", "sbtest1", "", "range", "PRIMARY", "PRIMARY", "4", "", "99", "100.00",
         "Using filesort; Using where")  # fmt: skip
WHOLE = ("1", "SIMPLE", "sbtest1", "", "ALL", "", "", "", "", "99", "100.00", "")


@dataclass
class Server:
    row: tuple[str, ...]
    database: str = "sbtest"
    asked: list[str] = field(default_factory=list)

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        self.asked.append(sql)
        if not self.row:
            raise ServerError("no such privilege")
        return [self.row]


@pytest.mark.parametrize(
    ("row", "way"),
    [
        (MARIADB, "range PRIMARY, Using filesort, Using where"),
        (MYSQL, "range PRIMARY, Using filesort, Using where"),
        (WHOLE, "ALL no index"),
    ],
)
def test_versions_with_other_columns_tell_the_same(row, way):
    server = Server(row)
    plan = making.plan(workloads=("oltp_point_select",))
    assert witness.explain_plans(plan, server) == {"point_selects": way}
    assert server.asked == ["EXPLAIN SELECT c FROM `sbtest`.`sbtest1` WHERE id = 101"]


def test_each_kind_is_asked_once_for_all_workloads():
    server = Server(MYSQL)
    plan = making.plan(workloads=("oltp_read_write", "oltp_read_only", "oltp_delete"))
    taken = witness.explain_plans(plan, server)
    assert len(server.asked) == len(taken) == 8


@pytest.mark.parametrize("row", [(), ("one", "two")])
def test_what_cannot_be_asked_or_read_is_left_out(row):
    assert witness.explain_plans(making.plan(), Server(row)) == {}


def test_workloads_are_those_of_the_engine():
    assert set(witness.KINDS) <= set(known_workloads())
    kinds = {kind for kinds in witness.KINDS.values() for kind in kinds}
    assert kinds == set(witness.STATEMENTS)
