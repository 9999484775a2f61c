"""The measurements of a run, each marked as counted or not by the judgement's findings.

A report lists every attempt ever made. Its state is sound (it counts), void (a check took it away,
or it cannot be run), failed (it did not end as planned), or repeated (the trial was complete
before, or it was measured again).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from dbdyno.judge.judgement import Judgement, cells_of
from dbdyno.judge.verdict import Verdict
from dbdyno.language.words import Text, listed, name, say
from dbdyno.measurement.disturbance import place_of, repeats
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.parts import SECRET
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import DEFAULT
from dbdyno.report.numbers import decided
from dbdyno.report.parts import Table, numeric, table
from dbdyno.report.tell.findings import check_name
from dbdyno.report.tell.measured import cell_title, rate_text
from dbdyno.report.tell.terms import term

CHECKS_OF_ATTEMPTS = frozenset({"trial-failed", "cell-cannot-run"})
"""The checks that report a failed attempt; a later complete one replaces it."""
NO_REASON: Final = name("")
SETTINGS_NAMED: Final = 2
"""Most compared settings that a title names."""


class State(StrEnum):
    """State of an attempt."""

    VALID = "valid"
    VOID = "void"
    FAILED = "failed"
    REPEATED = "repeated"


STATES: Final[Mapping[State, Text]] = {
    State.VALID: say("valid"),
    State.VOID: say("void"),
    State.FAILED: say("failed"),
    State.REPEATED: say("repeated"),
}
"""Names of the states in a report."""


@dataclass(frozen=True)
class Attempt:
    """A measurement with its state and why it does not count, or from which second on it does."""

    measurement: Measurement
    state: State
    why: Text = NO_REASON
    counted_from_s: float | None = None

    @cached_property
    def cell(self) -> Cell:
        """The cell it is of."""
        return self.measurement.trial.cell

    @property
    def system(self) -> str:
        """The system it is of."""
        return self.measurement.trial.system


def attempts(measurements: Iterable[Measurement], judgement: Judgement) -> tuple[Attempt, ...]:
    """Every measurement with its state, in the order of the trials' sequence."""
    measurements = list(measurements)
    complete: set[str] = set()
    latest = repeats(measurements)
    rows = []
    for measurement in measurements:
        trial, key = measurement.trial, measurement.trial.key
        if trial.repeat < latest[place_of(trial)]:
            why = say("it was measured again")
            rows.append(Attempt(measurement, State.REPEATED, why))
            continue
        rows.append(_attempt(measurement, judgement, key in complete))
        if measurement.failure is None:
            complete.add(key)
    return tuple(sorted(rows, key=lambda attempt: attempt.measurement.trial.sequence))


def _attempt(measurement: Measurement, judgement: Judgement, seen: bool) -> Attempt:
    if measurement.failure is not None:
        state = State.VOID if measurement.impossible else State.FAILED
        return Attempt(measurement, state, name(measurement.failure))
    if seen:
        return Attempt(measurement, State.REPEATED, say("an earlier attempt was complete"))
    others = [f for f in judgement.findings if f.check not in CHECKS_OF_ATTEMPTS]
    checks = [check_name(f.check) for f in others if f.voids(measurement.trial)]
    if checks:
        return Attempt(measurement, State.VOID, listed(dict.fromkeys(checks)))
    counted_from_s = judgement.counted_from_s.get(measurement.trial.key)
    return Attempt(measurement, State.VALID, counted_from_s=counted_from_s)


def sound(of: Iterable[Attempt], cell: Cell, system: str) -> list[Measurement]:
    """Sound measurements of a cell and system."""
    return [
        attempt.measurement
        for attempt in of
        if attempt.state is State.VALID and (attempt.cell, attempt.system) == (cell, system)
    ]


def sound_trials(plan: Plan, of: Sequence[Attempt]) -> list[tuple[Cell, str, list[Measurement]]]:
    """Each cell and system with its sound trials; left out without any."""
    measurements = [attempt.measurement for attempt in of]
    return [
        (cell, system, trials)
        for cell in cells_of(plan, measurements)
        for system in systems_of(plan, measurements)
        if (trials := sound(of, cell, system))
    ]


def workload_name(workload: str, setting: str) -> str:
    """A workload with its setting, unless it is the default."""
    return workload if setting == DEFAULT else f"{workload}, {setting}"


def systems_of(plan: Plan, measurements: Iterable[Measurement]) -> list[str]:
    """The plan's labels, the baseline first, then labels found in measurements only."""
    labels = [system.label for system in plan.systems]
    return list(dict.fromkeys([*labels, *(m.trial.system for m in measurements)]))


def compared_arms(verdicts: Iterable[Verdict]) -> Table:
    """Every verdict in a row, with both its arms: for runs in which the baselines are several."""
    return table(
        say("What was compared"),
        list(verdicts),
        (say("Cell"), lambda one: cell_title(one.cell)),
        (
            say("Compared"),
            lambda one: say(
                "{system} against {baseline}", system=one.system, baseline=one.baseline
            ),
        ),
        (say("Verdict"), lambda one: term(one.word)),
        (numeric(say("Change [95 %]")), decided),
    )


def title_of(plan: Plan) -> Text:
    """The plan's title, or the systems' names with the settings in which they differ.

    It is neutral, as the verdict turns the systems round.
    """
    systems = listed((system.label for system in plan.systems), " and ")
    if plan.title not in ("", systems):
        return name(plan.title)
    keys = compared_settings(plan)
    if not keys:
        return systems
    some = say("{count} settings", count=len(keys)) if len(keys) > SETTINGS_NAMED else listed(keys)
    return say("{systems} ({settings})", systems=systems, settings=some)


def compared_settings(plan: Plan) -> list[str]:
    """Settings to which the plan gives different values on its systems."""
    every = [system.settings for system in plan.systems]
    keys = dict.fromkeys(key for settings in every for key in settings)
    return [key for key in keys if any(one.get(key) != every[0].get(key) for one in every)]


# Ladders. The levels of a closed loop are connections, those of an open loop are rates, so one
# ladder never has both, even of one workload.


@dataclass(frozen=True)
class Ladder:
    """The cells of a workload, setting and kind of loop, by rising load."""

    workload: str
    setting: str
    cells: tuple[Cell, ...]

    @property
    def is_open(self) -> bool:
        """True if the levels are rates of an open loop."""
        return self.cells[0].rate_per_s is not None

    @property
    def title(self) -> Text:
        """The words of a heading, without the load."""
        named = {"workload": self.workload, "setting": self.setting}
        match self.setting == DEFAULT, self.is_open:
            case True, False:
                return name(self.workload)
            case True, True:
                return say("{workload}, open loop", workload=self.workload)
            case False, True:
                return say("{workload}, {setting}, open loop", **named)
            case _:
                return say("{workload}, {setting}", **named)

    @property
    def load_title(self) -> Text:
        """Title of the load axis: events due per second, or connections."""
        return say("transactions due per second") if self.is_open else say("threads (connections)")

    @property
    def levels(self) -> list[Text]:
        """Text of each level on an axis, one for each cell."""
        return [level_of(cell) for cell in self.cells]

    @cached_property
    def _places(self) -> dict[Cell, int]:
        return {cell: place for place, cell in enumerate(self.cells)}

    def place(self, cell: Cell) -> int | None:
        """Index of the cell on the ladder, from 0; None if it is of another ladder."""
        return self._places.get(cell)


def ladders(cells: Iterable[Cell]) -> list[Ladder]:
    """The ladders of these cells, in the order in which they first appear."""
    groups: dict[tuple[str, str, bool], list[Cell]] = {}
    for cell in cells:
        key = (cell.workload, cell.setting, cell.rate_per_s is not None)
        groups.setdefault(key, []).append(cell)
    return [
        Ladder(workload, setting, tuple(sorted(dict.fromkeys(group), key=_load)))
        for (workload, setting, _), group in groups.items()
    ]


def level_of(cell: Cell) -> Text:
    """The load as it stands on an axis: connections, or events due per second."""
    return name(str(cell.threads) if cell.rate_per_s is None else rate_text(cell.rate_per_s))


def _load(cell: Cell) -> tuple[float, int]:
    return (cell.rate_per_s or 0.0, cell.threads)


# Effective server settings: two versions agree on most of several hundred variables, so only the
# others are shown. Paths, ports and identities differ between any two servers and are only named.

ALWAYS_DIFFER: Final = re.compile(
    r"""
    (?: .*_?(?:basedir|datadir|homedir|tmpdir|socket|hostname|pid_file|_file|_path|_basename)
      | (?:.*_)?(?:port|uuid|uid|server_id) | .*_(?:home_dir|dir|dirs|directory|index)
      | version(?:_.*)? | innodb_version | protocol_version | license | secure_file_priv
      | timestamp | .*pseudo_thread_id | rand_seed\d | .*last_insert_id | insert_id | identity
      | error_count | warning_count | gtid_.*(?:executed|purged|pos|state) | last_gtid
      | log_error | report_(?:host|password|port|user) | ssl_(?:ca|cert|key|capath|crl|crlpath)
      | .*statement_id | debug_sync | external_user | proxy_user
    )
    """,
    re.VERBOSE,
)
"""Names of variables that differ between any two instances of one configuration."""
ABSENT: Final = say("(not there)")
EMPTY: Final = say("(empty)")


@dataclass(frozen=True)
class SettingsComparison:
    """Variables of several systems side by side.

    Attributes:
        systems: systems with known settings, in the plan's order.
        differing: (variable, a value per system) for variables of all systems with different
            values.
        partial: the same for variables missing on some system.
        ignored: variables that differ but say nothing about the configuration.
        equal: number of variables with the same value on all systems.
    """

    systems: tuple[str, ...]
    differing: tuple[tuple[Text, ...], ...]
    partial: tuple[tuple[Text, ...], ...]
    ignored: tuple[str, ...]
    equal: int


def compare(measurements: Sequence[Measurement], systems: Iterable[str]) -> SettingsComparison:
    """Compare the servers' own variables over all trials."""
    seen = {system: _values(measurements, system) for system in systems}
    known = {system: values for system, values in seen.items() if values}
    differing, partial, ignored, equal = [], [], [], 0
    for variable in sorted({variable for values in known.values() for variable in values}):
        row = [known[system].get(variable, ABSENT) for system in known]
        if len(set(row)) == 1:
            equal += 1
        elif ALWAYS_DIFFER.fullmatch(variable) or SECRET.fullmatch(variable):
            ignored.append(variable)
        elif ABSENT in row:
            partial.append((name(variable), *row))
        else:
            differing.append((name(variable), *row))
    return SettingsComparison(tuple(known), tuple(differing), tuple(partial), tuple(ignored), equal)


def effective(measurements: Iterable[Measurement], system: str) -> dict[str, Text]:
    """All variables of a system with their values, secrets left out."""
    values = _values(measurements, system)
    return {key: value for key, value in values.items() if not SECRET.fullmatch(key)}


def _values(measurements: Iterable[Measurement], system: str) -> dict[str, Text]:
    """Each variable's value; several, parted by "then", where trials of the system disagree."""
    seen: dict[str, dict[str, None]] = {}
    for measurement in measurements:
        if measurement.trial.system == system:
            for variable, value in measurement.server.settings.items():
                seen.setdefault(variable, {})[value or EMPTY] = None
    return {variable: listed(values, " then ") for variable, values in sorted(seen.items())}
