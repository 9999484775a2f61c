"""Systems, and the arms to compare: systems, settings of one system, or both together.

An arm is a system under a setting. An entry of a plan's ``compare`` names the difference between
two arms, and all else is alike:

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

ARCHIVE_SCHEMES = ("https://", "http://", "file://", "tarball:")
"""Beginnings of references to a vendor's archive; the last is an older form of the others."""
ENDPOINT_SCHEMES = ("mysql://", "postgresql://", "postgres://")
"""Beginnings of references to endpoints: servers run by somebody else."""
IMPORTED_SCHEME = "imported:"
"""Beginning of the reference of a system measured by another tool; its plan cannot be run."""
TIMEOUT_S_MAX = 604_800
"""A week."""

_BEHIND_VERSION = re.compile(
    r"[-_.](?:linux|x86_64|amd64).*|\.(?:tar|tgz|txz|zip|jar|deb)\b.*", re.IGNORECASE
)
"""Platform and packing in the name of an archive's file."""


def label_of(reference: str) -> str:
    """Default label of a system: its reference, reduced to the characters of labels.

    An endpoint gives its place only, never the user and password before the @; an image is named
    without its digest, an archive by its file name up to the platform: ``mysql-8.4.6``.
    """
    if reference.strip().lower().startswith(ARCHIVE_SCHEMES):
        # Whatever stands before an @ may be a password; such an address is refused later.
        address = re.split("[#?]", reference.strip().rpartition("@")[2])[0]
        name = address.rstrip("/").rpartition("/")[2]
        return label_made_of(_BEHIND_VERSION.sub("", name)) or "archive"
    if "://" in reference.partition("@")[0]:
        place = reference.rpartition("@")[2].partition("?")[0]
        text = next((place.removeprefix(s) for s in ENDPOINT_SCHEMES if place.startswith(s)), place)
    else:
        text = reference.partition("@")[0]
    return re.sub(r"[^A-Za-z0-9._:+-]+", "-", text).lstrip("-._:+")[:64] or reference


class TopologyPlan(FiniteNoun):
    """Servers of a system, and how long a commit waits for replicas.

    Attributes:
        replicas: number of servers that follow the primary; 0 by default.
        replication: a commit waits for no replica (`async`, default), until one replica has it
            (`semisync`), or until a majority of the group has it (`group`).
        wait_point: point at which a semi-synchronous commit waits: `after_sync` (default), before
            others can read the rows, or `after_commit`.
        timeout_s: longest wait of a semi-synchronous commit in seconds, 10 by default; the primary
            then goes on alone, and the trial proves nothing about replication.
    """

    replicas: Annotated[int, Field(ge=0, le=8)] = 0
    replication: Literal["async", "semisync", "group"] = "async"
    wait_point: Literal["after_sync", "after_commit"] = "after_sync"
    timeout_s: Annotated[float, Field(gt=0, le=TIMEOUT_S_MAX), SECONDS] = 10


class SystemPlan(FiniteNoun):
    """A server product and version with settings, under a label.

    Attributes:
        label: name of the system in reports; by default made of the reference.
        reference: source of the server, such as ``mysql:8.0.15``.
        settings: configuration keys, verbatim as in my.cnf; they override dbdyno's common settings.
            A list of values repeats the key; in a list of maps, later maps override earlier ones.
        workload_settings: further configuration keys by workload label; they need `procedure:
            restart: cell`.
        after_start: SQL run as administrator after each start, such as ``SET GLOBAL …``; on an
            endpoint as its user, at each of its servers.
        notes: settings unseen by dbdyno, such as settings of storage nodes; the report prints them.
        topology: replicas, and how long a commit waits for them.
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
        """True for an endpoint, whose servers dbdyno neither starts nor restores."""
        return self.reference.strip().lower().startswith(ENDPOINT_SCHEMES)

    @property
    def is_imported(self) -> bool:
        """True if another tool measured it: dbdyno saw neither servers nor machine nor order."""
        return self.reference.startswith(IMPORTED_SCHEME)


def label_made_of(text: str) -> str:
    """The nearest valid label to any text; empty if no character is left."""
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
        label: name in verdicts: the system's label, and its value on each axis in which the arms
            differ. A system's own label never has a blank.
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
    """Two arms, compared in each of the plan's cells with all else alike.

    Attributes:
        baseline, arm: "`arm` is <word> than `baseline`".
        settings: full names of both arms' settings, by the name of the setting without the axes in
            which they differ; None where both have the same.
    """

    baseline: Arm
    arm: Arm
    settings: Mapping[str, tuple[str, str]] | None = field(default=None, hash=False)

    @property
    def labels(self) -> tuple[str, str]:
        """Labels of the baseline and the arm, as in verdicts."""
        return self.baseline.label, self.arm.label

    def cells(self, every: Iterable[Cell]) -> list[Cell]:
        """Cells of its verdicts, named by the setting common to both arms.

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
        """Measured cells of the baseline and the arm for a verdict's cell."""
        below, above = (self.settings or {}).get(cell.setting, (cell.setting, cell.setting))
        return (
            MeasuredArm(cell.model_copy(update={"setting": below}), self.baseline.system),
            MeasuredArm(cell.model_copy(update={"setting": above}), self.arm.system),
        )


@dataclass(frozen=True)
class _Side:
    """An arm as an entry names it: a system, or None for each system, and values of axes."""

    system: str | None
    values: Mapping[str, str]


def comparisons_of(
    entries: Sequence[str], systems: Sequence[str], settings: SettingsPlan
) -> list[Comparison]:
    """All pairs of arms to judge, in the order of the entries.

    Args:
        entries: the plan's `compare`. If it is empty, each system is compared with the first, or
            each value of an axis with its first for a single system.
        systems: labels, the baseline first.

    Raises:
        ValueError: an entry names an unknown arm or repeats an entry; the message has its place.
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
    """The comparison of two named systems, or of two settings on each system."""
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
