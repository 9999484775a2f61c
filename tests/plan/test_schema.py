"""The shipped JSON schema: that of today's plan, and one by which an editor tells right from wrong.

jsonschema is the validator here: editors' language servers go by the same published rules.
"""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import dbdyno
from dbdyno.plan.document import parse
from dbdyno.plan.file import schema
from support.source import ROOT

SHIPPED = Path(dbdyno.__file__).parent / "plan.schema.json"
PLANS = sorted((ROOT / "plans").glob("*.yaml"))
LEAST = "systems: [mysql:8.0.15]\nworkloads: oltp_read_only\n"


def faults(text) -> list[str]:
    document = parse(text)
    assert document.mistakes == []
    found = Draft202012Validator(schema()).iter_errors(document.value)
    return [error.json_path for error in found]


def test_the_shipped_schema_is_current_and_one_by_the_rules_of_its_draft():
    hint = "make it anew: dbdyno plan schema > lab/dbdyno/plan.schema.json"
    assert json.loads(SHIPPED.read_text()) == schema(), hint
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_an_editor_finds_the_schema_of_each_plan_and_nothing_wrong(path):
    modeline, _, _ = path.read_text().partition("\n")
    start, _, place = modeline.partition("$schema=")
    assert start == "# yaml-language-server: "
    assert (path.parent / place).resolve() == SHIPPED.resolve()
    assert faults(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "trial: {warmup: 5s, window_s: 2m}",
        "design: {blocks: 3, margin: 2.5 %, budget: 2h}",
        "network: {client: 0.8ms, replica_ms: 1}",
        "settings: {thread_pool: on, binlog: [true, false], buffer_pool: [25%, 1048576]}",
        "settings: {durability: 0/2, own: {flushing: {lazy: {innodb_io_capacity: 200}}}}",
        "load: {threads: 8}\ndistribution: pareto\nseed: 4",
        "scales: {small: {dataset: {rows: 10}, settings: null, trial: {warmup: 1s, window: null}}}",
    ],
)
def test_every_way_of_writing_is_right(text):
    assert faults(LEAST + text) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("setings: {}", "$"),
        ("trial: {warmup: soon}", "$.trial.warmup"),
        ("network: {client: 5%}", "$.network.client"),
        ("settings: {durability: [double-2]}", "$.settings.durability"),
        ("load: {threads: []}", "$.load.threads"),
        ("scales: {small: {scale: other}}", "$.scales.small"),
        ("scales: {small: {dataset: {row: 10}}}", "$.scales.small.dataset"),
    ],
)
def test_what_is_wrong_is_marked_where_it_stands(text, place):
    assert faults(LEAST + text) == [place]


def test_every_key_has_its_help():
    whole = schema()
    parts = {"": whole, **whole["$defs"]}
    silent = [
        f"{name}.{key}"
        for name, part in parts.items()
        for key, kind in part.get("properties", {}).items()
        if not kind.get("description") and "/properties/" not in kind["anyOf"][0].get("$ref", "")
    ]
    assert silent == []


def test_times_may_be_written_without_their_unit_wherever_they_stand() -> None:
    parts = schema()["$defs"]
    assert parts["TopologyPlan"]["properties"]["timeout"]["anyOf"]
    assert parts["TrialPlan"]["properties"]["window"]["anyOf"]
    assert parts["PublishedFacts"]["properties"]["window"]["anyOf"]
