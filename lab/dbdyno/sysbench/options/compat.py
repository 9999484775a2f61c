"""The two sysbenches people run: 1.0.20, the last release, and 1.1, built from its repository.

What 1.1 added is also there in 1.0 here, because it collides with nothing. What 1.1 removed is
refused under ``--compat=1.1`` as 1.1 refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.sysbench.options.refusal import argument_error, fatal
from dbdyno.sysbench.options.values import Option, Values

V1_0 = "1.0"
V1_1 = "1.1"
RELEASES = {V1_0: "1.0.20", V1_1: "1.1.0"}
"""What each calls itself; scripts read this number."""

REMOVED = {
    "rand-spec-iter": None,
    "rand-spec-pct": None,
    "rand-spec-res": None,
    "tx-rate": "rate",
    "max-requests": "events",
    "max-time": "time",
    "num-threads": "threads",
    "test": None,
}
"""Options that 1.1 does not have any more, and what it has instead."""

_DEFAULTS_OF_1_1 = {"rand-type": "uniform", "mysql-ssl": "disabled"}
PREWARM = {V1_0: "prewarm", V1_1: "warmup"}
"""The name of the command that reads tables into the server's memory; both names work."""


def asked(typed: Mapping[str, str | None]) -> str:
    """The version that ``--compat`` names.

    Raises:
        Refusal: it names none.
    """
    name = typed.get("compat", V1_0)
    if name not in RELEASES:
        known = " or ".join(RELEASES)
        raise fatal(f"Invalid value for --compat: '{name or ''}'. It must be {known}.")
    return name


def table(options: Mapping[str, Option], version: str) -> dict[str, Option]:
    """The options with the version's defaults, those included that it refuses."""
    if version == V1_0:
        return dict(options)
    changed = {name: options[name]._replace(default=it) for name, it in _DEFAULTS_OF_1_1.items()}
    return {**options, **changed}


def refuse_removed(spelled: Mapping[str, str], version: str) -> None:
    """Refuses what the version does not have, in its words.

    Raises:
        Refusal: such an option was typed.
    """
    for name, spelling in spelled.items():
        if version == V1_1 and name in REMOVED:
            instead = REMOVED[name]
            hint = f"sysbench 1.1 has --{instead}" if instead else "sysbench 1.1 has it no more"
            raise argument_error(f"invalid option: {spelling}", f"  hint: {hint}")


def check_distribution(values: Values, version: str) -> str | None:
    """A note where the draws are better than the version's own.

    Raises:
        Refusal: the version has no such distribution.
    """
    name = values.text("rand-type")
    if version == V1_1 and name == "special":
        raise fatal(f"Invalid random numbers distribution: {name}.")
    if version == V1_1 and name == "gaussian":
        return (
            "--rand-type=gaussian draws a bell curve here, as in sysbench 1.0; sysbench 1.1 always"
            " draws the first row"
        )
    return None
