"""Which servers the lab could not treat as its own, and what the numbers lose by that.

An interval over blocks covers what a block repeats. Where a block repeats neither the start of the
server nor its data, the interval is silent about both, however narrow it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import count, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan


def uncontrolled_server(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: a system's servers are somebody else's, an endpoint."""
    measured = {m.trial.system for m in measurements}
    for system in plan.systems:
        if not system.is_endpoint or system.label not in measured:
            continue
        blocks = {m.trial.block for m in measurements if m.trial.system == system.label}
        yield Finding(
            check="uncontrolled-server",
            level=Level.DOUBTFUL,
            evidence=say(
                "{system} is an endpoint: in {blocks} its servers were not restarted and its rows "
                "not restored; its processes, disks and other clients were not seen",
                system=system.label,
                blocks=count(len(blocks), "block"),
            ),
            advice=say(
                "restart and reload it between runs yourself, keep others off it, or measure a "
                "system that dbdyno can start"
            ),
            system=system.label,
        )
