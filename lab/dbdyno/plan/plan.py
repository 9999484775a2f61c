"""The experiment as requested: systems × workloads × load × settings, and how to run them.

A plan comes from a file (`plan.file.read`) or from a command line (`compare`); both give this
value, so both are checked by the same rules. A plan is stored whole with its run, and its hash
names it.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Annotated, Final, Literal, get_args

from pydantic import Field, model_validator

from dbdyno import _engine
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Metric
from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.load import RUNGS_MAX, LoadPlan
from dbdyno.plan.publication import PublishedPlan
from dbdyno.plan.settings import OF_THE_LOAD, SettingsPlan, axes, setting_names
from dbdyno.plan.spelling import (
    LISTED,
    MILLISECONDS,
    PERCENT,
    SECONDS,
    TEXT,
    WHOLE,
    Short,
    listed,
    named,
    text,
)
from dbdyno.plan.systems import Comparison, SystemPlan, comparisons_of, labelled
from dbdyno.plan.workload import WorkloadPlan, has_own_tables, known_workloads

BLOCKS_MIN: Final = 3
"""Fewer sound blocks give a number, no interval and no verdict (docs/how-it-works/verdicts.md)."""
BLOCKS_FEW: Final = 5
"""Fewer blocks are marked "few": the interval is valid but wide (docs/how-it-works/verdicts.md)."""
BLOCKS_UNTIL_DECIDED: Final = 12
"""The most blocks of a run with `stop: decided`, by default."""
BLOCKS_TIMED: Final = 40
"""The most blocks of a run with a time; with more time its windows grow longer."""
BLOCKS_LOOKED_AHEAD: Final = 1000
"""The most blocks of a plan; a verdict that needs more names no number of blocks."""


Distribution = Literal["uniform", "gaussian", "special", "pareto", "zipfian"]


class DistributionPlan(FiniteNoun):
    """Distribution of the rows that requests touch.

    Attributes:
        name: distribution as in sysbench: `uniform` (default), `gaussian`, `special`, `pareto` or
            `zipfian`.
    """

    name: Distribution = "uniform"


class NetworkPlan(FiniteNoun):
    """Delay added to each round trip on the network; 0 by default.

    Attributes:
        client_ms: delay between the load and the server: milliseconds, or a time such as 0.8ms.
        replica_ms: delay between a primary and each replica: milliseconds, or a time such as 0.8ms.
    """

    client_ms: Annotated[float, Field(ge=0, le=10_000), MILLISECONDS] = 0
    replica_ms: Annotated[float, Field(ge=0, le=10_000), MILLISECONDS] = 0


_FILLS_ITS_OWN = (
    "fills tables of its own, one for each connection, and a plan has one dataset for all; run it"
    " with dbdyno sysbench"
)
NOT_COMPARED = {name: f"{name} {_FILLS_ITS_OWN}" for name in ("bulk_insert", "legacy_bulk_insert")}
"""Workloads of the engine without a place in plans, with the reason."""

SECONDS_MAX = 604_800
"""A week: the longest of any single time of a trial."""
BUDGET_S_MAX = 31_536_000
"""A year, for a whole run."""
CORE_MAX = 65_535
SYSTEMS_MAX = 100
ARMS_MAX = 1000
WORKLOADS_MAX = 1000
TRIALS_MAX = 100_000
"""The most trials of a run, its pilot's included; at a second each they take a day."""


ROW_BYTES: Final = 250
"""A sysbench row with its secondary index in InnoDB takes 190 to 300 bytes."""


class DatasetPlan(FiniteNoun):
    """Data loaded before the first measurement.

    Attributes:
        layout: `standard` for the tables of sysbench 1.0 (default), `legacy` for those of its
            legacy scripts, `legacy_one` for the one table of sysbench 0.4.
        tables: number of equal tables; 4 by default.
        rows: rows in each table; 100000 by default.
        loads: number of times each system's rows are loaded, 1 by default; the blocks use these
            loads in turn (docs/how-it-works/procedure.md).
        table_options: SQL at the end of each CREATE TABLE, such as ``PARTITION BY HASH(id)
            PARTITIONS 4``.
    """

    layout: Literal["standard", "legacy", "legacy_one"] = "standard"
    tables: Annotated[int, Field(ge=1, le=100_000)] = 4
    rows: Annotated[int, Field(ge=1, le=2_000_000_000)] = 100_000
    loads: Annotated[int, Field(ge=1, le=BLOCKS_LOOKED_AHEAD)] = 1
    table_options: str = ""

    @property
    def bytes_about(self) -> int:
        """Estimated size of the rows with their indexes."""
        return self.tables * self.rows * ROW_BYTES


class TrialPlan(FiniteNoun):
    """Times of a trial, in seconds.

    Attributes:
        warmup_s: load before the window, not measured: seconds, or a time such as 15s; 15s by
            default.
        window_s: measured time: seconds, or a time such as 2m; 60s by default. A window below a
            minute is too short for checkpoints and flushes.
    """

    warmup_s: Annotated[float, Field(ge=0, le=SECONDS_MAX), SECONDS] = 15
    window_s: Annotated[float, Field(ge=1, le=SECONDS_MAX), SECONDS] = 60


class ChosenDesign(FiniteNoun):
    """Design chosen by a run with a time after its first blocks, and the noise they showed.

    Attributes:
        warmup_s: warm-up of the trials after the first blocks, in seconds.
        window_s: window of the trials after the first blocks, in seconds.
        blocks: the most blocks that fit into the time, the first blocks included.
        start_noise: standard deviation of a system's ln throughput from start to start.
        second_noise: standard deviation of ln throughput in one second of a window; it falls as the
            window grows.
        block_s: duration of a block in seconds.
        additions: number of times `dbdyno resume --time` has added time since.
        all_blocks: the comparison was decided when time was added, so all of its blocks are kept.
    """

    warmup_s: Annotated[float, Field(ge=0, le=SECONDS_MAX)]
    window_s: Annotated[float, Field(ge=1, le=SECONDS_MAX)]
    blocks: Annotated[int, Field(ge=BLOCKS_MIN, le=BLOCKS_LOOKED_AHEAD)]
    start_noise: Annotated[float, Field(ge=0)]
    second_noise: Annotated[float, Field(ge=0)]
    block_s: Annotated[float, Field(ge=0)]
    additions: Annotated[int, Field(ge=0)] = 0
    all_blocks: bool = False


CELLS_FEW: Final = 4
"""Up to so many cells each of them is a question of its own."""


class DesignPlan(FiniteNoun):
    """Layout of the comparison: number of blocks, when to stop, and the margin.

    Attributes:
        blocks: number of times every system runs all load levels, 5 by default; a verdict needs at
            least 3. With `stop: decided` the run ends after these blocks at the latest, 12 by
            default. Leave it out if `time` is given.
        stop: `blocks` (default) runs all blocks; `decided` ends the run as soon as the comparison
            is decided. Intervals are then wider, so that they are correct whenever it ends
            (docs/how-it-works/verdicts.md).
        decide: with `stop: decided`, verdicts to decide before the run ends: of each `workload` in
            each setting (default with more than four cells), or of each `cell`.
        margin: smallest difference that matters to you; 2 % by default, written 2% or 0.02.
        budget_s: time for the whole run: seconds, or a time such as 2h. The run has as many blocks
            as fit in, at most `blocks`.
        time_s: time for measuring after set-up: seconds, or a time such as 30m. The first blocks
            decide warm-up, window and number of blocks, and the run stops when decided
            (docs/how-it-works/time.md).
        chosen: warm-up, window and blocks chosen by a run with a time; written by the run, not by
            hand.
        disturbance_max: share of the host's CPU that other programs and the hypervisor may take in
            a window, 10 % by default. Above it the trial is void and its cell measured again
            (docs/how-it-works/procedure.md); 100 % switches the check off.
    """

    blocks: Annotated[int, Field(ge=1, le=BLOCKS_LOOKED_AHEAD)] = 5
    stop: Literal["blocks", "decided"] = "blocks"
    decide: Literal["workload", "cell"] | None = None
    margin: Annotated[float, Field(gt=0, lt=1), PERCENT] = 0.02
    budget_s: Annotated[Annotated[float, Field(gt=0, le=BUDGET_S_MAX)] | None, SECONDS] = None
    time_s: Annotated[Annotated[float, Field(gt=0, le=BUDGET_S_MAX)] | None, SECONDS] = None
    chosen: ChosenDesign | None = None
    disturbance_max: Annotated[float, Field(gt=0, le=1), PERCENT] = 0.10

    @model_validator(mode="before")
    @classmethod
    def _blocks_and_stop_follow(cls, value: object) -> object:
        """The most blocks where no number is given; in a given time the run stops when decided."""
        if not isinstance(value, dict):
            return value
        if value.get("time_s", value.get("time")) is not None:
            return {"blocks": BLOCKS_TIMED, "stop": "decided", **value}
        if value.get("stop") == "decided":
            return {"blocks": BLOCKS_UNTIL_DECIDED, **value}
        return value

    @model_validator(mode="after")
    def _decide_needs_an_early_end(self) -> DesignPlan:
        if self.decide is not None and self.stop == "blocks":
            raise ValueError(
                "decide is for a run that ends when decided: give stop: decided or a time"
            )
        return self

    def asks_for_workloads(self, cells: int) -> bool:
        """True if a comparison of so many cells is decided when its workloads are."""
        return self.decide == "workload" or (self.decide is None and cells > CELLS_FEW)


CODE_PATTERN = r"^([1-9][0-9]{0,4}|[0-9A-Z]{5})$"
ErrorCode = Annotated[str, Field(pattern=CODE_PATTERN), Short(text, WHOLE)]


class ProcedurePlan(FiniteNoun):
    """Steps before trials, and how the load is sent.

    Attributes:
        restart: `block` (default) starts a server for each system and setting of a block and runs
            all load levels on it in random order; `cell` starts a server for every cell.
        fresh_data: `start` (default) restores the dataset before each start, `once` only before the
            first start of the run.
        drop_caches: drop the host's page cache before each start; if this is not permitted, the
            report has the finding `step-undone`.
        purge_binlogs: purge binary logs before each trial.
        settle_cap_s: longest wait between two trials for the server to write out and purge the
            changes of the last trial: seconds, or a time such as 1m; 0, the default, for no wait.
        prepared_statements: send the load as prepared statements; true by default.
        retry_errors: error codes after which a transaction is retried, besides deadlocks, lock wait
            timeouts and write conflicts: MySQL's numbers, PostgreSQL's SQLSTATEs.
        pin: CPU cores of the generator, by number; local servers get the others. Empty, the
            default, for no pinning.
        sample_stacks: sample the stacks of local servers during every trial, which costs them some
            throughput; `dbdyno explain` sets it. False by default.
    """

    restart: Literal["block", "cell"] = "block"
    fresh_data: Literal["start", "once"] = "start"
    drop_caches: bool = False
    purge_binlogs: bool = False
    settle_cap_s: Annotated[float, Field(ge=0, le=SECONDS_MAX), SECONDS] = 0
    prepared_statements: bool = True
    retry_errors: Annotated[tuple[ErrorCode, ...], LISTED] = ()
    pin: tuple[Annotated[int, Field(ge=0, le=CORE_MAX)], ...] = ()
    sample_stacks: bool = False


class Plan(FiniteNoun):
    """An experiment: systems × workloads × load levels × settings, and how to run them.

    Attributes:
        title: subject of the comparison, for the report's heading.
        systems: servers to compare; the first is the baseline.
        workloads: workloads to run on each system.
        dataset: data loaded before the first measurement.
        load: load levels, the same for every system.
        settings: server settings to vary on every system, each with its values.
        compare: pairs to judge, such as ``B against A``. By default each system is compared with
            the first; with a single system, each value of an axis with the axis's first value.
        trial: length of the warm-up and the window.
        design: number of blocks, when to stop, and the margin.
        procedure: restarts, restored data and other steps before trials.
        distribution: distribution of the rows that requests touch.
        network: delay added to each round trip.
        fleet: machines for the load, the servers and the blocks.
        published: published experiment that this plan follows.
        scale: name of the plan file's scale; empty for the plan as it stands.
        seed: seed for the order of trials and for the requests; 1 by default.
    """

    title: str = ""
    systems: Annotated[
        tuple[Annotated[SystemPlan, Short(labelled, TEXT)], ...],
        Field(min_length=1, max_length=SYSTEMS_MAX),
    ]
    workloads: Annotated[
        tuple[Annotated[WorkloadPlan, Short(named, TEXT)], ...],
        Field(min_length=1, max_length=WORKLOADS_MAX),
        Short(listed(str), TEXT),
    ]
    dataset: DatasetPlan = DatasetPlan()
    load: LoadPlan = LoadPlan()
    trial: TrialPlan = TrialPlan()
    design: DesignPlan = DesignPlan()
    distribution: Annotated[
        DistributionPlan, Short(named, {"enum": list(get_args(Distribution))})
    ] = DistributionPlan()
    procedure: ProcedurePlan = ProcedurePlan()
    settings: SettingsPlan = SettingsPlan()
    compare: Annotated[
        Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=ARMS_MAX)],
        LISTED,
    ] = ()
    network: NetworkPlan = NetworkPlan()
    fleet: FleetPlan = FleetPlan()
    published: PublishedPlan | None = None
    scale: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1

    @model_validator(mode="after")
    def _labels_are_unique(self) -> Plan:
        for kind, labels in (
            ("systems", [s.label for s in self.systems]),
            ("workloads", [w.label for w in self.workloads]),
        ):
            twice = sorted({label for label in labels if labels.count(label) > 1})
            if twice:
                raise ValueError(f"{kind}: label used twice: {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _workloads_find_their_tables(self) -> Plan:
        legacy = set(_engine.legacy_workloads())
        wants_legacy = self.dataset.layout != "standard"
        known = {w.label: w.name in legacy for w in self.workloads if w.name in known_workloads()}
        misplaced = [label for label, is_legacy in known.items() if is_legacy != wants_legacy]
        if misplaced:
            raise ValueError(
                f"dataset: layout {self.dataset.layout} does not suit {', '.join(misplaced)};"
                " workloads named legacy_… run on the layouts legacy and legacy_one, all others on"
                " standard"
            )
        if self.dataset.table_options and not has_own_tables(self.workloads):
            raise ValueError("dataset: table_options: scripts make their own tables; leave it out")
        return self

    @model_validator(mode="after")
    def _time_decides_alone(self) -> Plan:
        design = self.design
        if design.time_s is None or design.chosen is not None:
            return self
        if self.trial != TrialPlan() or design.blocks != BLOCKS_TIMED or design.budget_s:
            raise ValueError(
                "design: time chooses warm-up, window and blocks by itself; give a time, or those"
            )
        if design.stop != "decided":
            raise ValueError(
                "design: a run with a time stops when decided; give a time, or blocks and a stop"
            )
        if self.load.rates or self.load.slo:
            raise ValueError(
                "design: time suits no load at fixed rates: warm-up, window and blocks are chosen "
                "from the noise of throughput; give blocks and a window instead"
            )
        return self

    @model_validator(mode="after")
    def _workloads_have_their_settings(self) -> Plan:
        labels = {workload.label for workload in self.workloads}
        for at, system in enumerate(self.systems):
            place = f"systems[{at}].workload_settings"
            unknown = sorted(system.workload_settings.keys() - labels)
            if unknown:
                known = ", ".join(sorted(labels))
                raise ValueError(f"{place}: no workload {unknown[0]!r}; there are {known}")
            if system.workload_settings and self.procedure.restart != "cell":
                raise ValueError(f"{place}: take a start for each cell: procedure: restart: cell")
        return self

    @model_validator(mode="after")
    def _endpoints_keep_their_settings(self) -> Plan:
        """An endpoint has no start that could be given settings."""
        varied = [axis for axis in axes(self.settings) if axis != OF_THE_LOAD]
        for at, system in enumerate(self.systems):
            own = {
                f"systems[{at}].settings": system.settings,
                f"systems[{at}].workload_settings": system.workload_settings,
                f"settings: {''.join(varied[:1])}": varied,
            }
            place = next((place for place, is_given in own.items() if is_given), None)
            if system.is_endpoint and place is not None:
                raise ValueError(
                    f"{place}: the settings of an endpoint are its owner's; to compare two, list"
                    f" {system.label} twice, with `after_start: [SET GLOBAL …]` in each; for the"
                    " report, write others as notes"
                )
        return self

    @model_validator(mode="after")
    def _generators_can_share_the_load(self) -> Plan:
        scripts = [one.label for one in self.workloads if one.script is not None]
        if scripts and self.load.generators > 1:
            raise ValueError(
                f"load: generators: a script's threads share one process; leave it out for"
                f" {', '.join(scripts)}"
            )
        self.fleet.check(self.load, self.network != NetworkPlan(), scripts)
        return self

    @model_validator(mode="after")
    def _loads_can_be_repeated(self) -> Plan:
        if self.dataset.loads > 1 and self.procedure.fresh_data == "once":
            raise ValueError(
                "dataset: loads: data kept from trial to trial (procedure: fresh_data: once) are of"
                " one load"
            )
        return self

    @model_validator(mode="after")
    def _few_enough_trials(self) -> Plan:
        """Multiply before anybody lists the cells: axes can be many."""
        load, design = self.load, self.design
        settings = math.prod(map(len, axes(self.settings).values()))
        rungs = RUNGS_MAX * len(self.systems) if load.seeks_rates else 0
        pilot_rates = max((len(one.rates_per_s) for one in load.pilot), default=0)
        levels = len(load.threads) + max(len(load.rates) + rungs, pilot_rates)
        cells = settings * len(self.workloads) * levels
        trials = cells * len(self.systems) * design.blocks
        if trials > TRIALS_MAX:
            raise ValueError(
                f"design: asks for {trials:,} trials, {TRIALS_MAX:,} are the most: {settings:,}"
                f" (settings) × {len(self.workloads)} (workloads) × {levels} (load levels) ×"
                f" {len(self.systems)} (systems) × {design.blocks} (blocks)"
            )
        return self

    @model_validator(mode="after")
    def _compared_arms_are_there(self) -> Plan:
        comparisons(self)
        return self

    @model_validator(mode="after")
    def _claims_are_about_its_cells(self) -> Plan:
        """Check the names in claims; a scale may leave some out, and a report says so then."""
        labels = {one.label for one in self.systems}
        known = {one.label for one in self.workloads}
        for at, claim in enumerate(self.published.claims if self.published else ()):
            if claim.at or claim.holds != "each":
                raise ValueError(
                    f"published.claims[{at}]: at and holds are for dbdyno audit; a run is held"
                    " against a claim in each of its cells"
                )
            unknown = sorted({claim.of, claim.than or claim.of} - labels)
            unknown += sorted(set(claim.workloads) - known)
            levels = {*claim.threads, *filter(None, [claim.than_threads])}
            unknown += [f"{level} threads" for level in sorted(levels - {*self.load.threads})]
            if unknown and not self.scale:
                raise ValueError(
                    f"published.claims[{at}]: the plan has no {', '.join(unknown)}; a claim is"
                    " about its systems, workloads and load levels"
                )
        return self

    def hash(self) -> str:
        """SHA-256 of the plan's canonical JSON: two runs with one hash have the same request.

        Outcomes of a pilot and choices of a run with a time are left out, and so is a key at its
        default: a new key that a plan does not use leaves its hash as it was.
        """
        plan = self
        if self.design.chosen is not None:
            design = self.design.model_copy(update={"chosen": None, "blocks": BLOCKS_TIMED})
            plan = self.model_copy(update={"design": design, "trial": TrialPlan()})
        written = plan.model_dump(mode="json", exclude_defaults=True, exclude={"load": {"pilot"}})
        canonical = json.dumps(written, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def is_imported(self) -> bool:
        """True if another tool measured it: dbdyno saw neither servers nor machine nor order."""
        return all(system.is_imported for system in self.systems)

    def system(self, label: str) -> SystemPlan:
        """The system with this label; KeyError if it is missing."""
        return {system.label: system for system in self.systems}[label]

    def workload(self, label: str) -> WorkloadPlan:
        """The workload with this label; KeyError if it is missing."""
        return {workload.label: workload for workload in self.workloads}[label]


def cells(plan: Plan) -> list[Cell]:
    """Every cell of the plan: settings and workloads in their order, load levels rising.

    Levels of a closed loop come first, then rates. Rates found by a pilot are listed once it has
    run.
    """
    return [
        cell
        for setting in setting_names(plan.settings)
        for workload in plan.workloads
        for cell in _levels(plan.load, workload.label, setting)
    ]


def comparisons(plan: Plan) -> list[Comparison]:
    """All pairs of arms to judge, in the order of the report."""
    return comparisons_of(plan.compare, [one.label for one in plan.systems], plan.settings)


def one_baseline(plan: Plan) -> str | None:
    """The first system, if every comparison is of another system with it; else None."""
    first, *others = (system.label for system in plan.systems)
    wanted = [(first, other) for other in others]
    return first if [one.labels for one in comparisons(plan)] == wanted else None


def system_pairs(plan: Plan) -> list[tuple[str, str]]:
    """Baseline and system of every comparison of two systems, each pair once."""
    pairs = ((one.baseline.system, one.arm.system) for one in comparisons(plan))
    return list(dict.fromkeys((below, above) for below, above in pairs if below != above))


def _levels(load: LoadPlan, workload: str, setting: str) -> list[Cell]:
    closed = [
        Cell(workload=workload, threads=threads, setting=setting)
        for threads in sorted(load.threads)
    ]
    rates = [
        Cell(workload=workload, threads=load.connections, setting=setting, rate_per_s=rate)
        for rate in load.rates_of(workload, setting)
    ]
    return closed + rates


AT_A_RATE: Final = BY_NAME["latency_ms_p99"]


def metric_of(plan: Plan, cell: Cell) -> Metric:
    """The metric of the cell's verdicts (docs/how-to/open-loop.md).

    A closed loop compares throughput, because a faster server does more. At a fixed rate all
    systems do the same number of requests and differ in their latency.
    """
    return PRIMARY if cell.rate_per_s is None else latency_of(plan)


def latency_of(plan: Plan) -> Metric:
    """The percentile judged in open loops: the latency limit's, or p99 without a limit."""
    slo = plan.load.slo
    return AT_A_RATE if slo is None else BY_NAME[f"latency_ms_{slo.metric}"]
