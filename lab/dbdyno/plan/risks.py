"""Risks of a stranger's plan on this machine, listed before it is run.

A plan can name programs to fetch and start, servers on other machines to load, and settings that
make a server run a command or read a file. Your own plan may; a bundle from somebody else may not,
until you have seen the list. Servers of dbdyno's catalog are checked by digest, and plain numbers,
sizes and switches can at most slow a server down; everything else is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import SettingValue, each_value

FROM_CATALOG: Final = re.compile(r"(?:mysql|mariadb|percona|postgres|postgresql):[0-9][\w.+-]*")
NUMBER_OR_SWITCH: Final = re.compile(
    r"[+-]?[0-9]+(?:\.[0-9]+)?\s?[a-z%]{0,3}|on|off|true|false|yes|no|", re.IGNORECASE
)
PLAIN_WORD: Final = re.compile(r"[\w.,:%+-]*")
PLAIN_NAME: Final = re.compile(r"[\w.-]+")
REACHING: Final = re.compile(
    r"command|cmd|plugin|librar|preload|exec|init|hook|script|file|dir|path|host|address|socket"
    r"|port|listen|program|notify|sst|provider|ssl|tls|secure|_log$|log_bin|log_error|include"
)
"""Parts of names whose settings reach beyond the server: files, addresses, code, commands."""


def risks(plan: Plan) -> Iterator[str]:
    """List everything in a plan beyond known servers with plain settings, a sentence each."""
    for system in plan.systems:
        if not FROM_CATALOG.fullmatch(system.reference.strip()):
            yield (
                f"system {system.label} is {system.reference}: programs or a machine that dbdyno"
                " does not know"
            )
        if system.password_env:
            yield (
                f"system {system.label} is sent the password in your environment's"
                f" {system.password_env}"
            )
        elif system.is_endpoint:
            yield (
                f"system {system.label} is sent the password that you keep for it, if you do:"
                " MYSQL_PWD or ~/.my.cnf, PGPASSWORD or ~/.pgpass"
            )
        yield from _reaching(system.settings)
        for settings in system.workload_settings.values():
            yield from _reaching(settings)
        for sql in system.after_start:
            yield f"system {system.label} is told: {sql}"
    for workload in plan.workloads:
        if workload.script is not None:
            yield f"workload {workload.label} is a Lua program, which runs with your rights"
    for values in plan.settings.own.values():
        for settings in values.values():
            yield from _reaching(settings)


def _reaching(settings: Mapping[str, SettingValue]) -> Iterator[str]:
    every = ((key, one) for key, value in settings.items() for one in each_value(value))
    for name, value in every:
        if PLAIN_NAME.fullmatch(name) and NUMBER_OR_SWITCH.fullmatch(str(value)):
            continue
        plain = PLAIN_NAME.fullmatch(name) and PLAIN_WORD.fullmatch(str(value))
        if not plain or REACHING.search(name.lower().replace("-", "_")):
            yield f"setting {name} = {value}"
