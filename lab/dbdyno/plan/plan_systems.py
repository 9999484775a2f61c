"""The systems of a plan: which servers, under which labels, with what behind them."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from dbdyno.measurement.measurement_parts import Noun
from dbdyno.plan.settings import OptionValue

LABEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}$"
Label = Annotated[str, Field(pattern=LABEL_PATTERN)]

ENDPOINT_SCHEME = "mysql://"
"""Begins the reference of servers that somebody else runs."""


def label_of(reference: str) -> str:
    """The label of a system that was given none: its reference, without what a label cannot hold.

    Of an endpoint only the place, never what stands before the @; of an image not its digest; of an
    archive its file's name alone.
    """
    if reference.startswith("tarball:"):
        name = reference.partition("#")[0].rstrip("/").rpartition("/")[2]
        text = re.sub(r"\.t(ar\.)?[gx]z$", "", name)
    elif "://" in reference.partition("@")[0]:
        text = reference.rpartition("@")[2].removeprefix(ENDPOINT_SCHEME)
    else:
        text = reference.partition("@")[0]
    return re.sub(r"[^A-Za-z0-9._:+-]+", "-", text).lstrip("-._:+")[:64] or reference


class TopologyPlan(Noun):
    """How many servers stand behind one system, and what a commit waits for.

    Attributes:
        replicas: servers that follow the primary.
        replication: a commit waits for nobody (async), for one replica to have it (semisync), or
            for a majority of the group (group).
        wait_point: of semi-synchronous commits: before others can read the rows, or after.
        timeout_s: how long a semi-synchronous commit waits before the primary goes on alone; a
            trial in which that happened proves nothing of it.
    """

    replicas: Annotated[int, Field(ge=0, le=8)] = 0
    replication: Literal["async", "semisync", "group"] = "async"
    wait_point: Literal["after_sync", "after_commit"] = "after_sync"
    timeout_s: Annotated[float, Field(gt=0)] = 10


class SystemPlan(Noun):
    """A server product and version with settings, under a label.

    Attributes:
        label: how the system is called in reports.
        reference: where it comes from, such as ``mysql:8.0.15``.
        settings: verbatim my.cnf keys, laid over dbdyno's common settings.
        topology: replicas behind it, and what a commit waits for.
        password_env: environment variable that holds the password of an endpoint's user.
    """

    label: Label
    reference: Annotated[str, Field(min_length=1)]
    settings: dict[str, OptionValue] = {}
    topology: TopologyPlan = TopologyPlan()
    password_env: str = ""

    @property
    def is_endpoint(self) -> bool:
        """Whether somebody else runs its servers: dbdyno neither starts nor restores them."""
        return self.reference.strip().lower().startswith(ENDPOINT_SCHEME)
