"""Counts transactions in what servers write of them: MySQL's GTID sets, MariaDB's positions.

MySQL names every transaction (``uuid:1-5:7``, several servers separated by commas, since 8.3 with
tags between). MariaDB numbers them through within a domain and tells the last (``0-1-42``).
"""

from __future__ import annotations

import re

from dbdyno.errors import ServerError


def count_of_set(text: str) -> int:
    """How many transactions a MySQL GTID set holds.

    Raises:
        ServerError: it is no GTID set.
    """
    total = 0
    for source in filter(None, (part.strip() for part in text.split(","))):
        _, *parts = source.split(":")
        ranges = [part for part in parts if not re.fullmatch(r"[A-Za-z_]\w{0,31}", part.strip())]
        if not ranges:
            raise _unreadable(text)
        total += sum(_length(part.strip(), text) for part in ranges)
    return total


def behind(primary: str, replica: str) -> int:
    """How many transactions of MariaDB's position `primary` are not in `replica`.

    Raises:
        ServerError: one of them is no position.
    """
    applied = _last_of_domains(replica)
    committed = _last_of_domains(primary)
    return sum(max(0, last - applied.get(domain, 0)) for domain, last in committed.items())


def _length(part: str, text: str) -> int:
    found = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part)
    if found is None:
        raise _unreadable(text)
    first, last = int(found[1]), int(found[2] or found[1])
    if not 0 < first <= last:
        raise _unreadable(text)
    return last - first + 1


def _last_of_domains(text: str) -> dict[int, int]:
    domains: dict[int, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = re.fullmatch(r"([0-9]+)-[0-9]+-([0-9]+)", part)
        if found is None:
            raise _unreadable(text)
        domains[int(found[1])] = max(domains.get(int(found[1]), 0), int(found[2]))
    return domains


def _unreadable(text: str) -> ServerError:
    return ServerError(
        "the server's account of its transactions cannot be read",
        wanted="a GTID set such as uuid:1-5, or a position such as 0-1-42",
        found=repr(text[:200]),
    )
