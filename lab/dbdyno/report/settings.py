"""Effective server settings side by side: what differs, what only one has, what is left out.

Two servers of different versions agree on most of their several hundred variables; a reader wants
the others. Paths, ports and identities differ between any two servers and are named, not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dbdyno.language.words import Text, listed, name, say
from dbdyno.measurement.measurement import Measurement

ALWAYS_DIFFER: Final = re.compile(
    r"""
    (?: .*_?(?:basedir|datadir|homedir|tmpdir|socket|hostname|pid_file|_file|_path|_basename)
      | (?:.*_)?(?:port|uuid|uid|server_id) | .*_(?:home_dir|dir|dirs|directory|index)
      | version(?:_.*)? | innodb_version | protocol_version | license | secure_file_priv
      | timestamp | .*pseudo_thread_id | rand_seed\d | .*last_insert_id | insert_id | identity
      | error_count | warning_count | gtid_.*(?:executed|purged|pos|state) | last_gtid
      | log_error | report_(?:host|password|port|user) | ssl_(?:ca|cert|key|capath|crl|crlpath)
      | .*statement_id | debug_sync | external_user | proxy_user
    )
    """,
    re.VERBOSE,
)
"""Names of variables that tell instances apart rather than configurations."""
SECRET: Final = re.compile(r".*password$")
"""Names whose value is nobody's business."""
ABSENT: Final = say("(not there)")
EMPTY: Final = say("(empty)")


@dataclass(frozen=True)
class Comparison:
    """Variables of several systems side by side.

    Attributes:
        systems: those that have settings, in the plan's order.
        differing: (variable, a value per system) for variables that all have, not all alike.
        partial: the same for variables that some system does not have.
        ignored: variables that differ but say nothing about the configuration.
        equal: how many variables all have with one value.
    """

    systems: tuple[str, ...]
    differing: tuple[tuple[Text, ...], ...]
    partial: tuple[tuple[Text, ...], ...]
    ignored: tuple[str, ...]
    equal: int


def compare(measurements: Sequence[Measurement], systems: Iterable[str]) -> Comparison:
    """Compares what the servers said of themselves in all trials."""
    seen = {system: _values(measurements, system) for system in systems}
    known = {system: values for system, values in seen.items() if values}
    differing, partial, ignored, equal = [], [], [], 0
    for variable in sorted({variable for values in known.values() for variable in values}):
        row = [known[system].get(variable, ABSENT) for system in known]
        if len(set(row)) == 1:
            equal += 1
        elif ALWAYS_DIFFER.fullmatch(variable) or SECRET.fullmatch(variable):
            ignored.append(variable)
        elif ABSENT in row:
            partial.append((name(variable), *row))
        else:
            differing.append((name(variable), *row))
    return Comparison(tuple(known), tuple(differing), tuple(partial), tuple(ignored), equal)


def effective(measurements: Iterable[Measurement], system: str) -> dict[str, Text]:
    """All variables of a system with their values, secrets left out."""
    values = _values(measurements, system)
    return {key: value for key, value in values.items() if not SECRET.fullmatch(key)}


def _values(measurements: Iterable[Measurement], system: str) -> dict[str, Text]:
    """Each variable's value; several, parted by "then", where trials of the system disagree."""
    seen: dict[str, dict[str, None]] = {}
    for measurement in measurements:
        if measurement.trial.system == system:
            for variable, value in measurement.server.settings.items():
                seen.setdefault(variable, {})[value or EMPTY] = None
    return {variable: listed(values, " then ") for variable, values in sorted(seen.items())}
