"""prepare and cleanup: the engine is told what to do, and what it tells is printed.

One difference from sysbench is on purpose: a prepare that fails exits 1 with several threads too.
"""

from __future__ import annotations

import json

from dbdyno import _engine
from dbdyno.sysbench.ending import result, status
from dbdyno.sysbench.failure import COMMAND
from dbdyno.sysbench.output import Output
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.running import INITIALIZING
from dbdyno.sysbench.signals import stoppable

_STAGES = {
    "create": "Creating table {table}...",
    "insert": "Inserting {rows} records into {table}",
    "index": "Creating a secondary index on {table}...",
}


def prepare(request: Request, output: Output) -> int:
    """Creates and fills the tables; returns and raises as a run does."""
    spec = request.prepare_spec()
    if request.general.threads > 1 and not request.is_bulk_insert():
        output.notice(INITIALIZING)
    told: set[tuple[int, str]] = set()

    def tell(text: str) -> None:
        progress = json.loads(text)
        table, stage = progress["table"], progress["stage"]
        if (table, stage) not in told:
            told.add((table, stage))
            output.told(_STAGES[stage].format(table=f"'sbtest{table}'", rows=spec["table_size"]))

    text = json.dumps(spec)
    outcome = stoppable(lambda stop: _engine.prepare(text, tell, stop), _engine.Stop())
    result(outcome, request, COMMAND)
    return status(outcome)


def cleanup(request: Request, output: Output) -> int:
    """Drops the tables; returns and raises as a run does."""
    spec = request.cleanup_spec()
    text = json.dumps(spec)
    for number in range(1, spec["tables"] + 1):
        output.told(f"Dropping table 'sbtest{number}'...")
    outcome = stoppable(lambda _stop: _engine.cleanup(text), _engine.Stop())
    result(outcome, request, COMMAND)
    return status(outcome)
