"""prepare, prewarm and cleanup: the engine is told what to do, and what it tells is printed.

One difference from sysbench is on purpose: a prepare that fails exits 1 with several threads too.
"""

from __future__ import annotations

import json
from typing import Any

from dbdyno import _engine
from dbdyno.sysbench.commands import INITIALIZING
from dbdyno.sysbench.console import ProgressBar
from dbdyno.sysbench.ending import result, status
from dbdyno.sysbench.failure import COMMAND
from dbdyno.sysbench.output import Output
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.signals import stoppable

_STAGES = {
    "create": "Creating table {table}...",
    "insert": "Inserting {rows} records into {table}",
    "index": "Creating a secondary index on {table}...",
}
_LEGACY_STAGES = {**_STAGES, "index": "Creating secondary indexes on {table}..."}
_OLDEST_STAGES = {
    "create": "Creating table {table}...",
    "insert": "Creating {rows} records in table {table}...",
}
_PREWARMING = {"1.0": "Prewarming table {table}", "1.1": "Preloading table {table}"}


def prepare(request: Request, output: Output) -> int:
    """Creates and fills the tables; returns and raises as a run does."""
    spec = request.prepare_spec()
    if request.general.threads > 1 and not request.is_bulk_insert():
        output.notice(INITIALIZING)
    told: set[tuple[int, str]] = set()
    stages = {"legacy": _LEGACY_STAGES, "legacy_one": _OLDEST_STAGES}.get(
        spec.get("layout", ""), _STAGES
    )

    def tell(text: str) -> None:
        progress = json.loads(text)
        table, stage = progress["table"], progress["stage"]
        if (table, stage) not in told and stage in stages:
            told.add((table, stage))
            name = f"'{_table_name(spec, table)}'"
            bar.erase()
            output.told(stages[stage].format(table=name, rows=spec["table_size"]))
        bar.tell(progress)

    text = json.dumps(spec)
    with ProgressBar() as bar:
        outcome = stoppable(lambda stop: _engine.prepare(text, tell, stop), _engine.Stop())
    result(outcome, request, COMMAND)
    return status(outcome)


def prewarm(request: Request, output: Output) -> int:
    """Reads the tables into the server's memory; returns and raises as `run`."""
    spec = request.prepare_spec()
    line = _PREWARMING[request.general.compat]

    def tell(text: str) -> None:
        output.told(line.format(table=_table_name(spec, json.loads(text)["table"])))

    text = json.dumps(spec)
    outcome = stoppable(lambda stop: _engine.prewarm(text, tell, stop), _engine.Stop())
    result(outcome, request, COMMAND)
    return status(outcome)


def cleanup(request: Request, output: Output) -> int:
    """Drops the tables; returns and raises as a run does."""
    spec = request.cleanup_spec()
    text = json.dumps(spec)
    first = spec.get("first_table", 1)
    for table in range(first, first + spec["tables"]):
        output.told(f"Dropping table '{_table_name(spec, table)}'...")
    outcome = stoppable(lambda _stop: _engine.cleanup(text), _engine.Stop())
    result(outcome, request, COMMAND)
    return status(outcome)


def _table_name(spec: dict[str, Any], table: int) -> str:
    return "sbtest" if spec.get("layout") == "legacy_one" else f"sbtest{table}"
