"""Publications to audit, and the entries of a rule."""

from __future__ import annotations

from typing import Any

from dbdyno.audit.audit import audit
from dbdyno.audit.ledger import LedgerEntry
from dbdyno.audit.tables import Publication

TOLD = dict.fromkeys(
    ("repeats", "spread", "duration", "warm_up", "order", "client", "versions", "durability"), "yes"
)


def table(system: str = "A", **more: Any) -> dict[str, Any]:
    return {"system": system, "workload": "oltp_read_write", "threads": [8, 16], **more}


def rates(**tps: list[str]) -> list[dict[str, Any]]:
    """A table of each system's throughput."""
    return [table(system, values={"tps": values}) for system, values in tps.items()]


def publication(*tables: dict[str, Any], **more: Any) -> Publication:
    return Publication.model_validate({"tables": tables, "disclosed": TOLD, **more})


def found(asked: Publication, rule: str) -> list[LedgerEntry]:
    return [one for one in audit(asked).entries if one.rule == rule]


def words(asked: Publication, rule: str) -> list[tuple[str, str]]:
    return [(one.severity.value, str(one.sentence)) for one in found(asked, rule)]
