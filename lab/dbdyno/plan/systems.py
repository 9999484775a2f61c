"""Systems, and which arms are compared: systems, settings of one system, or one of each.

An arm is a system under a setting. An entry of a plan's ``compare`` says what tells two arms apart,
and all else is alike:

    B against A                                     under each setting
    buffer_pool 192G against buffer_pool 48G        on each system, other axes alike
    B, thread_pool on against A, thread_pool off    with each buffer pool
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import Field

from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.settings import SettingsPlan, SettingValue, axes, combinations, setting_name
from dbdyno.plan.spelling import LISTED, MAPS, SECONDS

LABEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}$"
Label = Annotated[str, Field(pattern=LABEL_PATTERN)]

ENDPOINT_SCHEMES = ("mysql://", "postgresql://", "postgres://")
"""Each begins the reference of servers that somebody else runs."""
IMPORTED_SCHEME = "imported:"
"""Before the label of a system that another tool measured; such a plan cannot be run."""
TIMEOUT_S_MAX = 604_800
"""A week."""


def label_of(reference: str) -> str:
    """The label of a system that was given none: its reference, without what a label cannot hold.

    Of an endpoint only the place, never what stands before the @; of an image not its digest; of an
    archive its file's name alone.
    """
    if reference.startswith("tarball:"):
        name = reference.partition("#")[0].rstrip("/").rpartition("/")[2]
        text = re.sub(r"\.t(ar\.)?[gx]z$", "", name)
    elif "://" in reference.partition("@")[0]:
        place = reference.rpartition("@")[2].partition("?")[0]
        text = next((place.removeprefix(s) for s in ENDPOINT_SCHEMES if place.startswith(s)), place)
    else:
        text = reference.partition("@")[0]
    return re.sub(r"[^A-Za-z0-9._:+-]+", "-", text).lstrip("-._:+")[:64] or reference


class TopologyPlan(FiniteNoun):
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
    timeout_s: Annotated[float, Field(gt=0, le=TIMEOUT_S_MAX), SECONDS] = 10


class SystemPlan(FiniteNoun):
    """A server product and version with settings, under a label.

    Attributes:
        label: how the system is called in reports.
        reference: where it comes from, such as ``mysql:8.0.15``.
        settings: verbatim my.cnf keys, laid over dbdyno's common settings. A list gives a key
            once for each of its values; of a list of maps later ones lie over earlier ones.
        workload_settings: further keys for single workloads, by their labels; each cell has a start
            of its own then.
        after_start: SQL for the administrator after each start, such as ``SET GLOBAL …``; on an
            endpoint for its user, at each of its servers.
        notes: settings that dbdyno neither makes nor sees, such as those of storage nodes.
        topology: replicas behind it, and what a commit waits for.
        password_env: environment variable that holds the password of an endpoint's user.
    """

    label: Label
    reference: Annotated[str, Field(min_length=1)]
    settings: Annotated[dict[str, SettingValue], MAPS] = {}
    workload_settings: dict[str, dict[str, SettingValue]] = {}
    after_start: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], LISTED] = ()
    notes: dict[str, str] = {}
    topology: TopologyPlan = TopologyPlan()
    password_env: str = ""

    @property
    def is_endpoint(self) -> bool:
        """Whether somebody else runs its servers: dbdyno neither starts nor restores them."""
        return self.reference.strip().lower().startswith(ENDPOINT_SCHEMES)

    @property
    def is_imported(self) -> bool:
        """Whether another tool measured it: nobody saw its servers, its machine and its order."""
        return self.reference.startswith(IMPORTED_SCHEME)


def label_made_of(text: str) -> str:
    """A label that is as near to any text as labels may be; empty if nothing of it is left."""
    return re.sub(r"[^A-Za-z0-9._:+-]+", "-", text).strip("-._:+")[:64]


def labelled(system: object) -> object:
    """A system's keys with its label; a text is its reference."""
    keys = {"reference": system} if isinstance(system, str) else system
    if isinstance(keys, dict) and "label" not in keys and isinstance(keys.get("reference"), str):
        return {"label": label_of(keys["reference"]), **keys}
    return keys


AGAINST: Final = " against "
SHAPE: Final = "must be two arms such as `B against A`"


@dataclass(frozen=True)
class Arm:
    """One side of a comparison.

    Attributes:
        label: how verdicts call it: the system's label, with its value on each axis that tells it
            from the other arm. No system of a plan can have a label with a blank.
        system: the system's label.
    """

    label: str
    system: str


@dataclass(frozen=True)
class MeasuredArm:
    """A cell as it is measured, and a system."""

    cell: Cell
    system: str


@dataclass(frozen=True)
class Comparison:
    """Two arms, in each of the plan's cells in which all else is alike.

    Attributes:
        baseline, arm: "`arm` is <word> than `baseline`".
        settings: by the name of a setting without the axes that tell the arms apart, the full names
            of both arms' settings; None where both have the same.
    """

    baseline: Arm
    arm: Arm
    settings: Mapping[str, tuple[str, str]] | None = field(default=None, hash=False)

    @property
    def labels(self) -> tuple[str, str]:
        """What verdicts call the baseline and the arm."""
        return self.baseline.label, self.arm.label

    def cells(self, every: Iterable[Cell]) -> list[Cell]:
        """The cells of its verdicts, which are called by what both arms have in common.

        Args:
            every: cells as they are measured.
        """
        measured = list(every)
        if self.settings is None:
            return measured
        known = set(measured)
        cells = [
            cell.model_copy(update={"setting": shared})
            for shared, (below, _) in self.settings.items()
            for cell in measured
            if cell.setting == below
        ]
        return [cell for cell in cells if {place.cell for place in self.places(cell)} <= known]

    def places(self, cell: Cell) -> tuple[MeasuredArm, MeasuredArm]:
        """Where the baseline's and the arm's trials of a verdict's cell are."""
        below, above = (self.settings or {}).get(cell.setting, (cell.setting, cell.setting))
        return (
            MeasuredArm(cell.model_copy(update={"setting": below}), self.baseline.system),
            MeasuredArm(cell.model_copy(update={"setting": above}), self.arm.system),
        )


@dataclass(frozen=True)
class _Side:
    """What an entry says of one arm: a system, or None for each, and values of axes."""

    system: str | None
    values: Mapping[str, str]


def comparisons_of(
    entries: Sequence[str], systems: Sequence[str], settings: SettingsPlan
) -> list[Comparison]:
    """All pairs of arms that are judged, in the order of the entries.

    Args:
        entries: the plan's `compare`. If it is empty, each system is compared with the first one,
            or each value of an axis with its first one where there is one system.
        systems: labels, the baseline first.

    Raises:
        ValueError: an entry names an arm that is not there, or stands twice; with its place.
    """
    first, *others = systems
    if entries:
        return list(_asked(entries, systems, settings))
    if others:
        return [Comparison(Arm(first, first), Arm(other, other)) for other in others]
    pairs = [
        (_Side(None, {axis: least}), _Side(None, {axis: value}))
        for axis, (least, *values) in axes(settings).items()
        for value in values
    ]
    return [one for below, above in pairs for one in _all(below, above, systems, settings)]


def _asked(
    entries: Sequence[str], systems: Sequence[str], settings: SettingsPlan
) -> Iterator[Comparison]:
    seen: set[tuple[str, str]] = set()
    for at, entry in enumerate(entries):
        place = f"compare[{at}]"
        above, against, below = entry.partition(AGAINST)
        if not against:
            raise ValueError(f"{place}: {SHAPE}, found {entry!r}")
        baseline, arm = (_side(place, text, systems, settings) for text in (below, above))
        same_axes = baseline.values.keys() == arm.values.keys()
        if (baseline.system is None) != (arm.system is None) or not same_axes:
            raise ValueError(
                f"{place}: both arms must say the same things, a system or not and the same axes,"
                f" found {entry!r}"
            )
        for pair in _all(baseline, arm, systems, settings):
            baseline_label, arm_label = pair.labels
            if baseline_label == arm_label:
                raise ValueError(f"{place}: {entry!r} is compared with itself")
            if pair.labels in seen:
                raise ValueError(f"{place}: {entry!r} stands twice")
            seen |= {pair.labels, pair.labels[::-1]}
            yield pair


def _side(place: str, text: str, systems: Sequence[str], settings: SettingsPlan) -> _Side:
    system, values, known = None, {}, axes(settings)
    for part in (part.strip() for part in text.split(",")):
        axis, _, value = part.partition(" ")
        if part in systems and system is None:
            system = part
        elif value.strip() in known.get(axis, ()) and axis not in values:
            values[axis] = value.strip()
        else:
            arms = [*systems, *(f"{axis} {'|'.join(known[axis])}" for axis in known)]
            raise ValueError(f"{place}: no arm is called {part!r}; there are {', '.join(arms)}")
    return _Side(system, values)


def _all(
    below: _Side, above: _Side, systems: Sequence[str], settings: SettingsPlan
) -> Iterator[Comparison]:
    """The comparison of two named systems, or that of two settings on each system."""
    if below.system is not None and above.system is not None:
        pairs = [(below.system, above.system)]
    else:
        pairs = [(system, system) for system in systems]
    for baseline, system in pairs:
        yield Comparison(
            _arm(baseline, below, systems),
            _arm(system, above, systems),
            _settings(below, above, settings) if below.values else None,
        )


def _arm(system: str, side: _Side, systems: Sequence[str]) -> Arm:
    values = [f"{axis} {value}" for axis, value in side.values.items()]
    is_named = len(systems) > 1 or not values
    return Arm(", ".join([*([system] if is_named else []), *values]), system)


def _settings(below: _Side, above: _Side, settings: SettingsPlan) -> dict[str, tuple[str, str]]:
    whole = combinations(settings)
    names = {frozenset(values.items()): name for name, values in whole.items()}
    return {
        setting_name(settings, values, without=below.values): (
            name,
            names[frozenset({**values, **above.values}.items())],
        )
        for name, values in whole.items()
        if below.values.items() <= values.items()
    }
