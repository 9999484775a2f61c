"""Permission to run a stored plan: the user began it on this machine, or it is without risks.

A bundle, and a whole workspace, may be a stranger's; its plan may name programs, hosts and scripts.
Plans that the user began are known by their hash, in the cache, which nobody else can write: no
file of a stranger can say that it is the user's own.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from dbdyno.cli.progress import note
from dbdyno.errors import ProvisionError, UsageError
from dbdyno.plan.plan import Plan
from dbdyno.report.tell.plan import PlanFact, facts_of
from dbdyno.servers.programs import places

BEGUN: Final = "plans"
"""Folder of the cache with a file for each plan with risks that the user began."""


def remember(plan: Plan) -> None:
    """Note a plan as the user's; without a cache, later commands ask for --trust."""
    if _risks(plan):
        _note_begun(plan)


def refuse_risks(plan: Plan, name: str, *, trusted: bool) -> None:
    """Print the risks of an unknown plan; UsageError if it has risks and no trust.

    Args:
        name: of the bundle or run with the plan.
    """
    risks = _risks(plan)
    if not risks:
        return
    with suppress(ProvisionError, OSError):
        if _begun(plan).exists():
            return
    for fact in risks:
        note(f"the plan asks for this: {fact.topic}: {fact.text} ({fact.risk})")
    if not trusted:
        raise UsageError(
            f"{name} was not begun here and asks for more than known servers and plain settings",
            found=f"{len(risks)} such; see above",
            hint="if you trust whoever made it, add --trust",
        )
    _note_begun(plan)


def _note_begun(plan: Plan) -> None:
    with suppress(ProvisionError, OSError):
        _begun(plan).touch()


def _begun(plan: Plan) -> Path:
    return places.make_cache_folder(BEGUN) / plan.hash()


def _risks(plan: Plan) -> list[PlanFact]:
    """Facts with a risk; a plan of imported results cannot be run."""
    return [] if plan.is_imported else [fact for fact in facts_of(plan) if fact.risk]
