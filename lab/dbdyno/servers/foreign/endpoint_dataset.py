"""What dbdyno keeps in a database that is not its own: a small table that says what it loaded.

Nothing else tells rows of ours from somebody's own tables of the same names, which loading would
drop. The table travels with the rows, so another workspace knows them again. Rows cannot be put
back as they were; that the tables still reach as far as when they were loaded is all that is
checked, since counting every row would take minutes on a large dataset.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dbdyno.errors import ServerError

MARK: Final = "dbdyno_dataset"
LOADING: Final = "loading"
LOADED: Final = "loaded"
GROWTH_MAX: Final = 0.1
"""How far a table's largest id may move, by the load's own inserts and deletes, before it is
another table."""
_TABLE = re.compile(r"sbtest[0-9]*")

Ask = Callable[[str], list[tuple[str, ...]]]


class EndpointDataset:
    """The load's tables in one database, asked for by `ask`."""

    def __init__(self, label: str, database: str, dataset: str, ask: Ask) -> None:
        self._label = label
        self._database = database
        self._dataset = dataset
        self._ask = ask

    def begin(self) -> None:
        """Make room for rows to be loaded: the database and the mark that they are under way.

        Raises:
            ServerError: the user may not, or there are tables that dbdyno did not load.
        """
        wanted = f"SELECT 1 FROM information_schema.schemata WHERE schema_name = '{self._database}'"
        if not self._ask(wanted):
            self._ask(f"CREATE DATABASE `{self._database}`")
        tables = self._tables()
        foreign = [name for name in tables if _TABLE.fullmatch(name)]
        if foreign and MARK not in tables:
            raise ServerError(
                f"{self._label}: the database {self._database} has tables that dbdyno did not load",
                wanted="a database for dbdyno alone: loading drops the tables it makes anew",
                found=", ".join(foreign[:5]) + (", …" if len(foreign) > 5 else ""),
                hint="name another database in the reference, or drop these tables yourself",
            )
        self._write({"dataset": self._dataset, "state": LOADING})

    def finish(self) -> None:
        """The rows are loaded: remember their tables and how far each reaches."""
        tables = [name for name in self._tables() if _TABLE.fullmatch(name)]
        ends = {name: str(self._end(name)) for name in tables}
        self._write({"dataset": self._dataset, "state": LOADED, **ends})

    def is_loaded(self) -> bool:
        """Whether exactly this dataset was loaded and its tables are as they were."""
        return self.trouble() is None

    def trouble(self) -> str | None:
        """What is wrong with the tables; None if nothing is."""
        tables = self._tables()
        mark = self._read() if MARK in tables else {}
        if mark.pop("dataset", "") != self._dataset or mark.pop("state", "") != LOADED:
            return "this dataset was not loaded there"
        for name, end in mark.items():
            found = self._end(name) if name in tables else 0
            if abs(found - int(end)) > GROWTH_MAX * int(end):
                return f"{name} ends at id {found}, and at {end} when it was loaded"
        return None

    def data_bytes(self) -> int:
        """What the database occupies at the server, as it estimates it; 0 if it does not say."""
        found = self._ask(
            "SELECT SUM(data_length + index_length) FROM information_schema.tables "
            f"WHERE table_schema = '{self._database}'"
        )
        return int(float(found[0][0] or 0))

    def _tables(self) -> list[str]:
        asked = f"FROM information_schema.tables WHERE table_schema = '{self._database}'"
        return [row[0] for row in self._ask(f"SELECT table_name {asked}")]

    def _end(self, table: str) -> int:
        found = self._ask(f"SELECT MAX(id) FROM `{self._database}`.`{table}`")
        return int(found[0][0] or 0)

    def _read(self) -> dict[str, str]:
        rows = self._ask(f"SELECT name, value FROM `{self._database}`.{MARK}")
        return {row[0]: row[1] for row in rows}

    def _write(self, mark: dict[str, str]) -> None:
        table = f"`{self._database}`.{MARK}"
        columns = "name VARCHAR(64) NOT NULL PRIMARY KEY, value VARCHAR(128) NOT NULL"
        self._ask(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        self._ask(f"DELETE FROM {table}")
        values = ", ".join(f"('{name}', '{value}')" for name, value in mark.items())
        self._ask(f"INSERT INTO {table} VALUES {values}")
