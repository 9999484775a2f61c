"""Names of options that sysbench 1.0 accepts for older command lines, put under today's names.

They win over today's names whatever the order, as in sysbench, but only with a value that says
something: ``--max-time=0`` leaves ``--time`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Values


class Alias(NamedTuple):
    """A deprecated name, today's, and the greatest value that is as good as none."""

    name: str
    now: str
    idle: int


DEPRECATED = (
    Alias("num-threads", "threads", 1),
    Alias("max-requests", "events", 0),
    Alias("max-time", "time", 0),
    Alias("tx-rate", "rate", 0),
)
"""In the order in which sysbench warns about them."""

_DISTRIBUTION = {
    "oltp-dist-type": "rand-type",
    "oltp-dist-iter": "rand-spec-iter",
    "oltp-dist-pct": "rand-spec-pct",
    "oltp-dist-res": "rand-spec-res",
}
"""sysbench 0.4's names; they stay where they are too, for they are a legacy test's own."""


def applied(typed: Mapping[str, str | None]) -> tuple[dict[str, str | None], list[str]]:
    """The options under today's names, and sysbench's warnings about the others.

    Raises:
        Refusal: a deprecated option is no integer.
    """
    renamed = dict(typed)
    values = Values(GLOBAL_TABLE, {name: raw for name, raw in typed.items() if raw is not None})
    warnings = []
    for name, now, idle in DEPRECATED:
        if name in typed:
            number = values.integer(name.replace("-", "_"))
            del renamed[name]
            if number > idle:
                renamed[now] = str(number)
                warnings.append(f"--{name} is deprecated, use --{now} instead")
    for name, now in _DISTRIBUTION.items():
        if name in typed and now not in typed:
            renamed[now] = typed[name]
    return renamed, warnings
