"""The published experiment that a plan follows, and claims on its results.

A claim is data: a ratio of two systems, with the cells that it is about. A plan's run is held
against it cell by cell (`judge.beside.claims`), a publication's own tables by `dbdyno audit`
(`audit.rules.claims`).
"""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from dbdyno.measurement.metric import NOPM, PRIMARY, TABLE
from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.settings import SettingValue
from dbdyno.plan.spelling import SECONDS

RATE_VARIATION: Final = "rate_variation"
"""Of a claim: standard deviation of the rates of a window's seconds, as a share of their mean."""


class Claim(FiniteNoun):
    """A sentence of a publication as a range of ratios.

    Attributes:
        text: the sentence, quoted or in your own words.
        of, than: labels of two systems; of one alone where it is compared with itself.
        than_threads: connections at which `than` is taken, where the sentence goes along the load.
        workloads, threads: its cells; all of the plan's or the publication's unless given.
        at: in an audit, values of further columns that its cells have, such as
            `buffer_pool_gb: 48`.
        metric: a metric of reports, or `rate_variation` for how unevenly the seconds went.
        ratio_min, ratio_max: between them `of` / `than` lies if the sentence is true.
        holds: in an audit, whether the ratio is that of each cell, of some cell, of their average
            or of their peaks.
    """

    text: Annotated[str, Field(min_length=1)]
    of: str
    than: str = ""
    than_threads: Annotated[int | None, Field(ge=1)] = None
    workloads: tuple[str, ...] = ()
    threads: tuple[int, ...] = ()
    at: dict[str, str] = {}
    metric: str = PRIMARY.name
    ratio_min: Annotated[float, Field(ge=0)] = 0
    ratio_max: Annotated[float | None, Field(gt=0)] = None
    holds: Literal["each", "some", "average", "peak"] = "each"

    @model_validator(mode="after")
    def _says_something(self) -> Claim:
        if self.metric not in CLAIMED:
            raise ValueError(f"no metric {self.metric!r}; there are {', '.join(CLAIMED)}")
        if (self.than or self.of) == self.of and self.than_threads is None:
            raise ValueError("give the other system as than, or its load as than_threads")
        if self.ratio_min == 0 and self.ratio_max is None:
            raise ValueError("give ratio_min, ratio_max or both")
        if self.ratio_max is not None and self.ratio_max <= self.ratio_min:
            raise ValueError("ratio_max must be above ratio_min")
        return self

    @property
    def ratio_bound(self) -> float:
        """`ratio_max`, infinity without one."""
        return math.inf if self.ratio_max is None else self.ratio_max


CLAIMED: Final = (*(metric.name for metric in (*TABLE, NOPM)), RATE_VARIATION)
"""What claims can be about."""


class PublishedFacts(FiniteNoun):
    """What a publication says of its method, in a plan's own words: a report compares both.

    Attributes:
        systems: product and version of each, such as ``MySQL 8.0.30``.
        workloads: by the names that a plan has for them.
        threads: connections at each level.
        tables, rows: of the data; rows in each table.
        distribution: which rows are touched.
        window_s: what is measured of each cell.
        buffer_pool, durability: values of the axes.
        settings: configuration keys of all systems.
    """

    systems: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    threads: tuple[int, ...] = ()
    tables: int | None = None
    rows: int | None = None
    distribution: str = ""
    window_s: Annotated[float | None, SECONDS] = None
    buffer_pool: tuple[str, ...] = ()
    durability: tuple[str, ...] = ()
    settings: dict[str, SettingValue] = {}


class PublishedPlan(FiniteNoun):
    """The published experiment that a plan follows, so that a report can say what differs.

    Attributes:
        source: who published it, when, under which title.
        facts: what can be compared with the plan.
        claims: what it says of its results; a run tells in which cells that holds.
        setup: what else it used, by topic: machine, procedure, repeats…
        differences: what this plan does otherwise for a reason, beyond what the facts show.
    """

    source: Annotated[str, Field(min_length=1)]
    facts: PublishedFacts = PublishedFacts()
    claims: tuple[Claim, ...] = ()
    setup: dict[str, str] = {}
    differences: tuple[str, ...] = ()
