"""The published experiment followed by a plan, and claims on its results.

A claim is data: a ratio of two systems, and its cells. A plan's run is checked against it in all
of its cells together, then in each (`judge.beside.claims`), a publication's own tables by
`dbdyno audit` (`audit.rules.claims`).
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
        of: label of the system in the sentence.
        than: label of the system to compare it with; by default the same system.
        than_threads: number of threads to compare with: of the system `than`, or of the same system
            without `than`; for a sentence about a rise or fall with the load.
        workloads: workloads of the claim's cells; by default all of the plan or publication.
        threads: connections of the claim's cells; by default all of the plan or publication.
        at: in an audit, values of further columns of its cells, such as `buffer_pool_gb: 48`.
        metric: metric of the report, or `rate_variation` for the variation of throughput between
            seconds.
        ratio_min: least ratio `of` / `than` claimed by the sentence; give it, `ratio_max` or both.
        ratio_max: greatest ratio `of` / `than` claimed by the sentence.
        holds: in an audit, the ratio to check: of `each` cell (default), of `some` cell, of the
            `average` over cells, or of the `peak` of each system.
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
        """`ratio_max`, or infinity where it is not given."""
        return math.inf if self.ratio_max is None else self.ratio_max


CLAIMED: Final = (*(metric.name for metric in (*TABLE, NOPM)), RATE_VARIATION)
"""Metrics of claims."""


class PublishedFacts(FiniteNoun):
    """A publication's method in the keys of a plan, so that a report can compare both.

    Attributes:
        systems: product and version of each, such as ``MySQL 8.0.30``.
        workloads: names as in a plan.
        threads: connections at each level.
        tables: number of tables.
        rows: rows in each table.
        distribution: distribution of the rows that requests touch.
        window_s: measured time of each cell, in seconds.
        buffer_pool, durability: values of this axis.
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
    """The published experiment followed by a plan; a report lists the differences.

    Attributes:
        source: author, date and title.
        facts: method of the publication in the keys of a plan, for comparison.
        claims: results as ranges of ratios; a run reports in which cells each holds.
        setup: further conditions by topic, such as machine, procedure or repeats.
        differences: intended differences of this plan, with their reasons, beyond `facts`.
    """

    source: Annotated[str, Field(min_length=1)]
    facts: PublishedFacts = PublishedFacts()
    claims: tuple[Claim, ...] = ()
    setup: dict[str, str] = {}
    differences: tuple[str, ...] = ()
