import re

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.foreign.endpoint import MARK, EndpointDataset


class Database:
    """Understands the handful of statements that are sent; tables map to their largest id."""

    def __init__(self, **tables):
        self.exists, self.tables, self.mark = bool(tables), dict(tables), None

    def ask(self, sql):
        if sql.startswith("SELECT 1 FROM information_schema.schemata"):
            return [("1",)] if self.exists else []
        if sql == "CREATE DATABASE `d`":
            self.exists = True
        elif sql.startswith("SELECT table_name"):
            return [(name,) for name in [*self.tables, *([MARK] if self.mark is not None else [])]]
        elif match := re.fullmatch(r"SELECT MAX\(id\) FROM `d`\.`(\w+)`", sql):
            return [(str(self.tables[match[1]] or ""),)]
        elif sql.startswith("SELECT SUM(data_length + index_length)"):
            return [("32768.0" if self.tables else "",)]
        elif sql.startswith("CREATE TABLE IF NOT EXISTS"):
            self.mark = self.mark or {}
        elif sql.startswith("DELETE FROM"):
            self.mark = {}
        elif sql.startswith("INSERT INTO"):
            self.mark |= dict(re.findall(r"\('(\w+)', '(\w+)'\)", sql))
        else:
            assert sql == f"SELECT name, value FROM `d`.{MARK}"
            return list(self.mark.items())
        return []


def of(database, dataset="abc"):
    return EndpointDataset("shop", "d", dataset, database.ask)


def loaded(**tables):
    database = Database()
    of(database).begin()
    database.tables |= tables
    of(database).finish()
    return database


def test_rows_are_ours_once_they_are_loaded():
    database = Database()
    assert not of(database).is_loaded()
    of(database).begin()
    assert database.exists
    database.tables |= {"sbtest1": 500, "sbtest2": 500, "notes": 3}
    assert not of(database).is_loaded()  # a lab that was killed while loading
    of(database).finish()
    assert of(database).is_loaded()
    assert database.mark == {
        "dataset": "abc",
        "state": "loaded",
        "sbtest1": "500",
        "sbtest2": "500",
    }


def test_the_server_says_how_large_the_rows_are():
    assert of(loaded(sbtest1=500)).data_bytes() == 32768
    assert of(Database()).data_bytes() == 0


def test_another_dataset_is_loaded_anew():
    database = loaded(sbtest1=500)
    other = of(database, "xyz")
    assert other.trouble() == "this dataset was not loaded there"
    other.begin()
    assert database.mark == {"dataset": "xyz", "state": "loading"}


def test_tables_of_somebody_else_are_never_dropped():
    database = Database(sbtest1=9, sbtest2=9, orders=1)
    with pytest.raises(ServerError, match="has tables that dbdyno did not load") as caught:
        of(database).begin()
    assert caught.value.found == "sbtest1, sbtest2"
    assert database.mark is None


def test_tables_of_other_names_are_no_trouble():
    database = Database(orders=1)
    of(database).begin()
    assert database.mark == {"dataset": "abc", "state": "loading"}


@pytest.mark.parametrize(
    ("tables", "trouble"),
    [
        ({"sbtest1": 540}, None),
        ({"sbtest1": 600}, "sbtest1 ends at id 600, and at 500 when it was loaded"),
        ({"sbtest1": None}, "sbtest1 ends at id 0, and at 500 when it was loaded"),
        ({}, "sbtest1 ends at id 0, and at 500 when it was loaded"),
    ],
)
def test_tables_that_changed_are_told(tables, trouble):
    database = loaded(sbtest1=500)
    database.tables = tables
    assert of(database).trouble() == trouble
