"""Every kind of run is told without a word for which it lacks a fact, and no word is told of none.

The rows come from the tables of needs: checks, sections, limits, topics and single sentences.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_importing import log
from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as rate_trials

from dbdyno import report
from dbdyno.audit.audit import of_run
from dbdyno.audit.imported import imported
from dbdyno.audit.page.columns import Mapping as Columns
from dbdyno.cli.audit import AuditResult
from dbdyno.cli.plan import described
from dbdyno.judge import audit
from dbdyno.judge.checks import design
from dbdyno.judge.judgement import JudgedRun
from dbdyno.judge.uses.gate import gate
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Said
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.known import Fact, Known, known_of, known_of_trial
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import ChosenDesign, NetworkPlan
from dbdyno.plan.publication import PublishedPlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.template import lua, read
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.report import story
from dbdyno.report.formats.gate import GateResult
from dbdyno.report.formats.replay import replay
from dbdyno.report.formats.summary import Summary
from dbdyno.report.sections import cells as cells_section
from dbdyno.report.sections import costs, limits, method, published, settings
from dbdyno.report.tell.terms import Sentence
from support import making, rich_run
from support.made_run import Run, run
from support.published_logs import HAMMERDB

FULL = {"drop_caches": True, "purge_binlogs": True, "settle_cap_s": 60}
SCRIPT = WorkloadPlan(name="mine.lua", script="function event() end")
OWN_LOOP = WorkloadPlan(name="loop.lua", script="function thread_run() end")
PEOPLE = "events: {look: {statements: [SELECT 1], think_time: 5ms}}"
TEMPLATE = WorkloadPlan(name="people.yaml", script=lua(read(PEOPLE, "people.yaml"), "people.yaml"))
PUBLISHED = PublishedPlan.model_validate(
    {
        "source": "somebody, 2022",
        "facts": {
            "tables": 4,
            "rows": 1000,
            "distribution": "uniform",
            "buffer_pool": ["1G"],
            "settings": {"sync_binlog": 1},
        },
    }
)


def made(
    *references: str,
    workload: WorkloadPlan | str = "oltp_read_write",
    look: Callable[[Measurement], Measurement] = lambda one: one,
    complete: bool = True,
    **parts: Any,
) -> Run:
    """A run of two systems over two load levels, with no difference between them."""
    labels = ("A", "B")
    systems = tuple(
        SystemPlan(label=label, reference=reference)
        for label, reference in zip(labels, references or (making.A, making.B), strict=True)
    )
    plan = making.plan(systems=labels, threads=(1, 8), **parts)
    workload = WorkloadPlan(name=workload) if isinstance(workload, str) else workload
    plan = plan.model_copy(update={"systems": systems, "workloads": (workload,)})
    others = known_of(plan)[Fact.OTHERS]
    trials = [
        look(making.unseen(one) if one.trial.system in others else one)
        for threads in (1, 8)
        for one in making.pairs(
            (1.0,) * 5, systems=labels, threads=threads, workload=workload.label
        )
    ]
    return run(plan, trials, complete)


def of_settings(one: Measurement, **others: str) -> Measurement:
    return making.changed(one, server=one.server.model_copy(update={"settings": others}))


def unequal(one: Measurement) -> Measurement:
    """A trial whose server promises less, and holds other rows, if it is of system B."""
    is_less = one.trial.system == "B"
    server = of_settings(one, innodb_flush_log_at_trx_commit="2" if is_less else "1").server
    return making.changed(one, server=server, dataset=one.trial.system)


def at_both_settings() -> Run:
    axes = SettingsPlan(durability=("double-1", "0/2"))
    whole = made(settings=axes)
    trials = [
        making.with_trial(one, cell=one.trial.cell.model_copy(update={"setting": setting}))
        for one in whole.measurements
        for setting in ("durability=double-1", "durability=0/2")
    ]
    return run(whole.plan, trials)


def of_logs(folder: Path, *, broken: bool = False, complete: bool = True) -> Run:
    """Logs of two systems, one read after the other; of one a load level is missing."""
    for system, levels in (("A", (1, 8)), ("B", (1,))):
        for threads in levels:
            for repeat in range(5):
                text = log(threads, 100.0 + 9 * repeat)
                text = text.split("SQL statistics")[0] if broken and repeat == 4 else text
                (folder / f"{system}_{threads}_{repeat}.log").write_text(text)
    logs = imported([folder], "old", Columns(), "{system}_{threads}_{repeat}")
    return run(logs.plan, logs.measurements if complete else logs.measurements[:4], complete)


def of_table(folder: Path) -> Run:
    """Rows of a published table: numbers without seconds."""
    rows = [f"{t},{system},{t * 100 + n}" for n, system in enumerate("AB") for t in (1, 8)]
    (folder / "table.csv").write_text("\n".join(["threads,system,tps", *rows]) + "\n")
    rows_read = imported([folder], "table", Columns())
    return run(rows_read.plan, rows_read.measurements)


def of_orders(folder: Path) -> Run:
    """Results of HammerDB: a number each, without latencies and seconds."""
    for system in "AB":
        (folder / f"{system}.log").write_text(HAMMERDB)
    logs = imported([folder], "orders", Columns())
    return run(logs.plan, logs.measurements)


CHOSEN = ChosenDesign(
    warmup_s=2, window_s=10, blocks=5, start_noise=0.01, second_noise=0.1, block_s=60
)
GIVEN = {"time_s": 3600.0, "stop": "decided", "chosen": CHOSEN}
POSTGRES = {"synchronous_commit": "on", "fsync": "on", "shared_buffers": "1024kB"}
ENDPOINT = ("mysql://u@a:3306/sbtest", "mysql://u@b:3306/sbtest")
KINDS: Mapping[str, Callable[[Path], Run]] = {
    "own": lambda _: made(),
    "read only": lambda _: made(workload="oltp_read_only"),
    "postgres": lambda _: made(look=lambda one: of_settings(one, **POSTGRES)),
    "rate": lambda _: run(plan_of(), rate_trials({making.A: [1000.0] * 5, making.B: [1100.0] * 5})),
    "endpoints": lambda _: made(*ENDPOINT, procedure=FULL, published=PUBLISHED),
    "mixed": lambda _: made(making.A, ENDPOINT[1], procedure=FULL),
    "unequal endpoints": lambda _: made(*ENDPOINT, look=unequal),
    "imported": of_logs,
    "imported, broken off": lambda folder: of_logs(folder, broken=True),
    "script": lambda _: made(workload=SCRIPT, published=PUBLISHED),
    "loop of its own": lambda _: made(workload=OWN_LOOP),
    "template": lambda _: made(workload=TEMPLATE, procedure={"prepared_statements": False}),
    "generators apart": lambda _: made(fleet=FleetPlan(generators=2)),
    "several machines": lambda _: made(
        look=lambda one: making.changed(one, machine=f"m{one.trial.block}")
    ),
    "delayed": lambda _: made(network=NetworkPlan(client_ms=0.5), published=PUBLISHED),
    "replicas": lambda _: rich_run.whole(),
    "settings": lambda _: at_both_settings(),
    "every step": lambda _: made(
        procedure={**FULL, "restart": "cell", "fresh_data": "once", "sample_stacks": True}
    ),
    "once": lambda _: made(procedure={"fresh_data": "once"}),
    "each cell": lambda _: made(procedure={"restart": "cell"}, distribution={"name": "special"}),
    "small pool": lambda _: made(
        look=lambda one: of_settings(one, innodb_buffer_pool_size=str(2**20))
    ),
    "containers elsewhere": lambda _: made(look=making.unseen),
    "nobody watched": lambda _: made(look=lambda one: making.changed(one, watch=())),
    "no requests": lambda _: made(
        look=lambda one: making.changed(
            one,
            intervals=tuple(i.model_copy(update={"histograms": {}}) for i in one.intervals),
        )
    ),
    "time given": lambda _: made(design=GIVEN),
    "imported table": of_table,
    "imported in part": lambda folder: of_logs(folder, complete=False),
    "imported new orders": of_orders,
    "endpoints, incomplete": lambda _: made(*ENDPOINT, complete=False),
    "nothing measured": lambda _: run(making.plan(load=LoadPlan(threads=(8,))), []),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return {kind: make(tmp_path_factory.mktemp("logs")) for kind, make in KINDS.items()}


@pytest.fixture(scope="module")
def told(runs: dict[str, Run]) -> dict[str, set[str]]:
    """Every template that is told of each kind of run."""
    return {kind: set(templates(outputs(one))) for kind, one in runs.items()}


def outputs(one: Run) -> list[Any]:
    side = JudgedRun(one.plan, one.measurements, one.judgement, one.facts)
    gated = GateResult(gate(one.judgement.verdicts, 0.03), one.judgement, one.facts)
    summary = Summary(one.plan, one.judgement, one.facts)
    results = (summary, replay(side, side), gated, *audited(one))
    pages = [
        part for result in results for part in (*result.plain(Language.EN), *result.markdown())
    ]
    return [story.story_of(one.plan, one.measurements, one.judgement, one.facts), pages]


def audited(one: Run) -> tuple[AuditResult, ...]:
    """The audit of a run with numbers."""
    publication = of_run(one.plan, one.judgement)
    return (AuditResult.of([publication]),) if publication.tables else ()


def templates(part: Any) -> Iterator[str]:
    """The templates of all texts within a value."""
    if isinstance(part, Said):
        yield part.template
        yield from templates(list(part.values.values()))
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from templates(getattr(part, field.name))
    elif isinstance(part, Mapping):
        yield from templates([*part.keys(), *part.values()])
    elif isinstance(part, list | tuple):
        for inner in part:
            yield from templates(inner)


def sentences() -> Iterator[Sentence]:
    """Every sentence that declares a need, of all files of the report."""
    for found in pkgutil.walk_packages(report.__path__, "dbdyno.report."):
        yield from _sentences(list(vars(importlib.import_module(found.name)).values()))


def _sentences(values: Any) -> Iterator[Sentence]:
    for value in values:
        if isinstance(value, Sentence):
            yield value
        elif isinstance(value, list | tuple):
            yield from _sentences(value)
        elif type(value) is dict:
            yield from _sentences(value.values())


def lacking(runs: dict[str, Run], *needs: Fact) -> list[str]:
    return [kind for kind, one in runs.items() if not one.judgement.known.has(*needs)]


@pytest.mark.parametrize(
    "sentence", sorted(set(sentences()), key=str), ids=lambda one: one.template
)
def test_a_sentence_is_told_of_runs_with_its_fact_alone(
    sentence: Sentence, runs: dict[str, Run], told: dict[str, set[str]]
) -> None:
    telling = {kind for kind, texts in told.items() if sentence.template in texts}
    assert telling, "no kind of run is told so"
    assert telling.isdisjoint(lacking(runs, sentence.needs))


@pytest.mark.parametrize("limit", limits.LIMITS, ids=lambda one: one.__name__)
def test_a_limit_is_told_of_runs_with_its_facts_alone(
    limit: Any, runs: dict[str, Run], told: dict[str, set[str]]
) -> None:
    others = lacking(runs, *limits.LIMITS[limit])
    texts = {
        text.template
        for kind, one in runs.items()
        if kind not in others
        for text in limit(limits.LimitedRun(one.plan, one.measurements, one.judgement.known))
    }
    assert texts
    assert {kind: texts & told[kind] for kind in others if texts & told[kind]} == {}


def test_each_limit_has_a_run_of_which_it_is_told(told: dict[str, set[str]]) -> None:
    source = Path(str(limits.__file__)).read_text()
    rows = source[source.index("def _design") : source.index("LIMITS")]
    said = set().union(*told.values())
    plain = [
        re.sub(r"\s*\"\s*\"", "", text) for text in re.findall(r'say\(\s*((?:"[^"]*"\s*)+)', rows)
    ]
    assert [text for text in plain if text.strip().strip('"') not in said | {"each system"}] == []


HEADINGS: Mapping[Callable[..., Any], str] = {
    costs.costs: "Costs per transaction",
    costs.flushes: "Flushes per commit",
    costs.machine: "Machine",
    method.how_measured: "How it was measured",
    method.how_imported: "Where it comes from",
    cells_section.pilot: "How the rates were chosen",
    published.published: "The published experiment",
    settings.settings: "Settings that differ",
    settings.environment: "Environment",
    method.limitations: "Limitations",
    method.repeat: "How to repeat it",
}


def test_a_section_is_there_in_runs_with_its_facts_alone(
    runs: dict[str, Run], told: dict[str, set[str]]
) -> None:
    assert set(HEADINGS) == set(story.NEEDS)
    for section, heading in HEADINGS.items():
        telling = {kind for kind, texts in told.items() if heading in texts}
        assert telling, heading
        assert telling.isdisjoint(lacking(runs, *story.NEEDS[section])), heading


def test_a_topic_is_told_of_runs_with_its_facts_alone(runs: dict[str, Run]) -> None:
    seen = set()
    for one in runs.values():
        topics = settings.tested(one.plan, one.measurements, one.facts)
        known = known_of(one.plan, one.measurements)
        assert [t for t in topics if not known.has(*settings.TESTED[t])] == []
        seen |= set(topics)
    assert seen == set(settings.TESTED)


def test_a_check_looks_at_trials_and_runs_with_its_facts_alone(runs: dict[str, Run]) -> None:
    needs = {check.__name__.replace("_", "-"): facts for check, facts in audit.NEEDS.items()}
    assert set(audit.NEEDS) <= set(audit.CHECKS)
    for kind, one in runs.items():
        trials = {m.trial.key: known_of_trial(m, one.plan) for m in one.measurements}
        for finding in one.judgement.findings:
            known: Known = trials.get(finding.trial or "", one.judgement.known)
            assert known.has(*needs.get(finding.check, ())), (kind, finding)


OWN_RUNS = re.compile(
    "planned|not enough requests|resume|--warmup|warm up for|trials are done|does not state"
    "|did not take turns|passed between two measurements|computed from all valid|read back"
    "|begin a new run|no comparison was made|Settings promise|machine, versions and settings"
    "|fewer than 100 requests|Verdicts compare|the warm-up|verdict's interval"
)
OWN_SERVERS = re.compile(
    "server restarted|dataset restored|rare bad starts|caches dropped"
    "|binary logs purged|row versions are purged|same server start"
    "|runs clean|shared one machine|used one machine|all as published|the kernel, for all disks"
    "|settings equal in the plan|(?:start|stopp)ing the server|restoring the dataset"
)
OTHERS = ("endpoints", "endpoints, incomplete", "unequal endpoints")


def test_the_words_of_own_runs_are_said_of_them(runs: dict[str, Run]) -> None:
    own = "\n".join(text for kind in ("own", "replicas") for text in texts(outputs(runs[kind])))
    assert {"planned", "not enough requests"} <= set(OWN_RUNS.findall(own))
    assert {"server restarted", "dataset restored"} <= set(OWN_SERVERS.findall(own))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        *((kind, OWN_RUNS) for kind in KINDS if kind.startswith("imported")),
        *((kind, OWN_SERVERS) for kind in KINDS if kind.startswith("imported") or kind in OTHERS),
    ],
)
def test_words_of_own_runs_are_not_said_of_others(
    kind: str, words: re.Pattern[str], runs: dict[str, Run]
) -> None:
    assert words.findall("\n".join(texts(outputs(runs[kind])))) == []


def test_advice_for_endpoints_is_for_those_who_run_them(told: dict[str, set[str]]) -> None:
    assert (
        "set these settings equal on your servers; otherwise the systems do not do the same work"
        in told["unequal endpoints"]
    )
    assert "drop the system's tables, and begin a new run" in told["unequal endpoints"]


def test_a_plan_of_endpoints_or_scripts_is_shown_without_words_of_others(
    runs: dict[str, Run],
) -> None:
    shown = {kind: described(runs[kind].plan) for kind in ("own", "endpoints", "mixed", "script")}
    of_servers = re.compile("of a server|dataset restored|caches dropped|binary logs purged|starts")
    assert of_servers.findall(shown["endpoints"]) == []
    assert "does not control the servers of A, B" in shown["endpoints"]
    assert {"of a server", "dataset restored"} <= set(of_servers.findall(shown["mixed"]))
    of_tables = re.compile(r"tables of \S+ rows|row choice")
    assert of_tables.findall(shown["script"]) == []
    assert of_tables.findall(shown["own"])


def texts(part: Any) -> Iterator[str]:
    """All texts within a value, whole."""
    if isinstance(part, str):
        yield part
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from texts(getattr(part, field.name))
    elif isinstance(part, list | tuple):
        yield from (text for inner in part for text in texts(inner))


def test_of_imported_logs_nothing_is_doubted_but_that_they_are(runs: dict[str, Run]) -> None:
    """They were read in the order of their names, and one system lacks a load level."""
    assert {one.check for one in runs["imported"].judgement.findings} == {"imported-run"}
    broken = {one.check for one in runs["imported, broken off"].judgement.findings}
    assert broken == {"imported-run", "trial-failed"}
    accused = [
        *design.incomplete_run(runs["imported"].measurements, runs["imported"].plan),
        *design.sequential_design(runs["imported"].measurements, runs["imported"].plan),
    ]
    assert accused  # what would be said of a run of dbdyno's own
