"""Parts of a plan that are a risk on this machine if the plan is a stranger's.

A plan can name programs to fetch and start, servers on other machines to load, and settings that
make a server run a command or read a file. Your own plan may; a bundle from somebody else may not,
until you have seen the list. Servers of dbdyno's catalog are checked by digest, and plain numbers,
sizes and switches can at most slow a server down; everything else is a risk.
"""

from __future__ import annotations

import re
from typing import Final

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


def is_in_catalog(reference: str) -> bool:
    """True for a server of dbdyno's catalog, which is checked by digest."""
    return FROM_CATALOG.fullmatch(reference.strip()) is not None


def reaches_beyond(key: str, value: object) -> bool:
    """True for a setting that may make a server run a command, read a file or call an address."""
    if PLAIN_NAME.fullmatch(key) and NUMBER_OR_SWITCH.fullmatch(str(value)):
        return False
    is_plain = PLAIN_NAME.fullmatch(key) and PLAIN_WORD.fullmatch(str(value))
    return not is_plain or bool(REACHING.search(key.lower().replace("-", "_")))
