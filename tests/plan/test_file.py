"""Plan files: short ways of writing, mistakes with their lines, and no text that breaks it."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from dbdyno.errors import PlanError, UnknownSystemError
from dbdyno.plan import file
from dbdyno.plan.mistakes import TABLE_OPTIONS, WORKLOAD_OPTIONS
from dbdyno.plan.plan import Plan
from dbdyno.sysbench.options.table import OWN, of_test

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
SYSTEMS = ("mysql:5.7.22", "mysql:8.0.15")
LEAST = "systems: [mysql:8.0.15]\nworkloads: [oltp_read_only]\n"


def check(reference):
    if reference not in SYSTEMS:
        hint = "did you mean mysql:8.0.15?"
        raise UnknownSystemError(f"there is no system {reference!r}", hint=hint)


def read(text) -> Plan:
    return file.read_text(text, "plan.yaml", check)


def mistakes(text) -> list[str]:
    with pytest.raises(PlanError) as caught:
        read(text)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_the_least_plan_has_every_default():
    plan = read(LEAST)
    assert [system.label for system in plan.systems] == ["mysql:8.0.15"]
    assert [workload.label for workload in plan.workloads] == ["oltp_read_only"]
    assert plan == Plan.model_validate(
        {
            "systems": [{"label": "mysql:8.0.15", "reference": "mysql:8.0.15"}],
            "workloads": ["oltp_read_only"],
        }
    )


def test_the_docstring_s_plan_is_a_plan():
    lines = file.__doc__.split("::\n\n", 1)[1].split("\n\nYAML is", 1)[0]
    plan = read("\n".join(line[4:] for line in lines.splitlines()))
    assert plan.title == "MySQL 5.7 against 8.0"
    assert plan.system("tuned").settings == {"innodb_flush_log_at_trx_commit": 2}
    assert plan.workload("no-ranges").options == {"range_selects": False}
    assert (plan.trial.warmup_s, plan.trial.window_s) == (15, 120)
    assert (plan.design.blocks, plan.design.margin) == (5, 0.02)


@pytest.mark.parametrize("path", sorted((ROOT / "plans").glob("*.yaml")), ids=lambda p: p.name)
def test_the_shipped_plans_are_plans_in_every_scale(path):
    for scale in ("", *YAML(typ="safe", pure=True).load(path.read_text()).get("scales", {})):
        plan = file.read(path, lambda reference: None, scale)
        assert (plan.scale, bool(plan.systems)) == (scale, True)


def test_the_small_plan_is_what_it_says():
    plan = file.read(ROOT / "plans" / "mysql57-vs-80-small.yaml", check)
    assert [system.reference for system in plan.systems] == list(SYSTEMS)
    assert (plan.load.threads, plan.design.blocks) == ((1, 8), 3)


def test_all_mistakes_at_once_in_order_of_their_lines():
    with pytest.raises(PlanError) as caught:
        file.read(GOLDEN / "plan_file_mistakes.yaml", check)
    message = str(caught.value).replace(f"{GOLDEN}/", "")
    assert message + "\n" == (GOLDEN / "plan_file_mistakes.txt").read_text()


SHORT_WAYS = {
    "load: {threads: 8}": "load: {threads: [8]}",
    "load: {rates: 50%}": "load: {rates: ['50%']}",
    "load: {rates: [500, 12.5]}": "load: {rates: ['500', '12.5']}",
    "load: {slo: p95 = 0.5s}": "load: {slo: {metric: p95, limit_ms: 500}}",
    "trial: {warmup: 500ms, window: 1h}": "trial: {warmup_s: 0.5, window_s: 3600}",
    "design: {budget: 2h}": "design: {budget_s: 7200}",
    "procedure: {settle_cap: 1m}": "procedure: {settle_cap_s: 60}",
    "procedure: {retry_errors: 9001}": "procedure: {retry_errors: ['9001']}",
    "procedure: {retry_errors: [40003, 0A000]}": "procedure: {retry_errors: ['40003', '0A000']}",
    "network: {client: 0.8ms, replica: 1s}": "network: {client_ms: 0.8, replica_ms: 1000}",
    "network: {client_ms: 0.8ms, replica: 0}": "network: {client_ms: 0.8, replica_ms: 0}",
    "settings: {thread_pool: on}": "settings: {thread_pool: ['on']}",
    "settings: {binlog: [true, off]}": "settings: {binlog: ['on', 'off']}",
    "settings: {buffer_pool: 1073741824}": "settings: {buffer_pool: ['1073741824']}",
    "settings: {buffer_pool: [25%, 1G]}": "settings: {buffer_pool: ['25%', '1G']}",
    "settings: {durability: 0/2, redo_log: 512M}": (
        "settings: {durability: ['0/2'], redo_log: ['512M']}"
    ),
    "trial: {warmup_s: 2m, window: 30}": "trial: {warmup_s: 120, window_s: 30}",
    "design: {margin: 1.5 %}": "design: {margin: 0.015}",
    "distribution: pareto": "distribution: {name: pareto}",
    "seed: 0x10": "seed: 16",
    "title: 2026-11-21": 'title: "2026-11-21"',
}


@pytest.mark.parametrize("short", SHORT_WAYS)
def test_a_short_way_is_the_long_one(short):
    assert read(LEAST + short) == read(LEAST + SHORT_WAYS[short])


def test_a_stored_plan_is_a_plan_file():
    path = GOLDEN / "plan_show.yaml"
    plan = file.read(path, lambda reference: None, "small")
    assert read(LEAST) == read(read(LEAST).model_dump_json())
    stored = plan.model_dump_json(indent=1)
    assert file.read_text(stored, "report.json", check) == plan
    at_rates = read(LEAST + "load: {rates: [50%, 400], slo: p99=20ms}")
    assert at_rates.load.threads == ()
    assert read(at_rates.model_dump_json()) == at_rates


def test_values_of_settings_and_options_keep_their_types():
    plan = read(
        "systems: [{label: a, reference: mysql:8.0.15, settings: {x: 1G, y: 2, z: 0.5, w: on}}]\n"
        "workloads: [{name: oltp_read_only, options: {skip_trx: true, range_size: 10}},"
        " {name: select_random_points, options: {random_points: 3}},"
        " {name: select_random_ranges, options: {number_of_ranges: 2, delta: 9}}]\n"
    )
    assert plan.systems[0].settings == {"x": "1G", "y": 2, "z": 0.5, "w": "on"}
    assert [one.options for one in plan.workloads] == [
        {"skip_trx": True, "range_size": 10},
        {"random_points": 3},
        {"number_of_ranges": 2, "delta": 9},
    ]


ONE_MISTAKE = {
    LEAST + "seed: [1\n": "line 4: YAML: while parsing a flow sequence",
    LEAST + "seed: *s\n": "line 3: YAML: found undefined alias",
    LEAST + "seed: 1\nseed: 2\n": "line 4: seed: stands twice, first in line 3",
    LEAST + "seed: '1'\n": "line 3: seed: must be a whole number, found '1'",
    LEAST + "seed: true\n": "line 3: seed: must be a whole number, found True",
    LEAST + "trial: {window: .inf, window_s: 9}": "line 3: trial.window: is no number",
    LEAST + "trial: {window: 5, window_s: 9}": "line 3: trial.window: stands beside window_s",
    LEAST + "network: {client: slow}": (
        "line 3: network.client: must be a time such as 0.8ms, 1s or 5 (milliseconds), found 'slow'"
    ),
    LEAST + "network: {clint: 1ms}": (
        "line 3: network.clint: is no key of a plan; did you mean client?"
    ),
    LEAST + "settings: {durability: [double-1, 0/1]}": (
        "line 3: settings.durability[1]: must be one of 'double-1' or '0/2', found '0/1';"
        " did you mean 0/2?"
    ),
    LEAST + "settings: {buffer_pool: a quarter}": (
        "line 3: settings.buffer_pool: must be a size such as 512M or 1G, or a share of the"
        " dataset such as 25%, found 'a quarter'"
    ),
    LEAST + "settings: {redo_log: [1G, 1G]}": "line 3: settings.redo_log: each value once",
    LEAST + "settings: {thread_poll: on}": (
        "line 3: settings.thread_poll: is no key of a plan; did you mean thread_pool?"
    ),
    LEAST + "settings: {own: {Flush it: {a: {x: 1}}}}": (
        "line 3: settings.own.Flush it: must be up to 32 lowercase letters, digits and _"
    ),
    LEAST + "settings: {own: {binlog: {a: {x: 1}}}}": (
        "line 3: settings.own: binlog is an axis already; choose another name"
    ),
    LEAST + "settings: {own: {flush: {a: {x: {y: 1}}}}}": (
        "line 3: settings.own.flush.a.x: must be a number, a text, true or false, found {'y': 1}"
    ),
    "systems:\n- reference: mysql:8.0.15\n  topology: {replicas: 1, waitpoint: x}\n"
    "workloads: [oltp_read_only]\n": (
        "line 3: systems[0].topology.waitpoint: is no key of a plan; did you mean wait_point?"
    ),
    LEAST
    + "scale: s\nscales: {s: {}}": "line 3: scale: is chosen when the plan is run, with --scale",
    LEAST + "scalse: {}": "line 3: scalse: is no key of a plan; did you mean scales?",
    LEAST + "scales: [small]": "line 3: scales: must be names with parts of a plan",
    LEAST + "scales: {small: 3}": "line 3: scales.small: must be a part of a plan, found 3",
    LEAST + "title: !!python/name:os.system x": "line 3: title: the tag ",
    LEAST + "? [1, 2]\n: 3\n": "line 3: plan: a key must be a single word",
    LEAST + "load: {threads: []}": "line 3: load.threads: needs at least one entry, found []",
    LEAST + "load: {slo: p99}": (
        "line 3: load.slo: must be a percentile and a time such as p99=20ms, found 'p99'"
    ),
    LEAST + "load: {slo: p98=20ms}": (
        "line 3: load.slo: must be one of 'p50', 'p95', 'p99' or 'p999', found 'p98'; did you mean"
        " p99?"
    ),
    LEAST + "settings: {binlog: [on, off]}\nload: {rates: [400, 50%]}": (
        "line 4: load.rates[1]: 50% is another rate under each setting, and settings are compared"
        " here, which takes equal rates; give events a second"
    ),
    LEAST + "load: {rates: [50%, quick]}": (
        "line 3: load.rates[1]: must be events a second such as 500, or a share such as 70% of what"
        " the slower system sustains (200% at most), found 'quick'"
    ),
    LEAST + "load: {slo: {limit: 20ms}}": (
        "line 3: load.slo.limit: is no key of a plan; did you mean limit_ms?"
    ),
    LEAST + "load: null": "line 3: load: must be keys with values, found None",
    "workloads: [oltp_read_only]\n": "line 1: systems: is missing",
    "- systems": "line 1: plan: must be keys with values, found ['systems']",
    "": "plan: is empty",
    "null": "plan: is empty",
    "---\na: 1\n---\nb: 2\n": "line 3: YAML: expected a single document",
    "a: &a [*a]": "YAML: ",
    "[" * 600: "YAML: is nested too deeply",
    "systems: [mysql:8.0.15]\nworkloads:\n- bulk_insert\n": (
        "line 3: workloads[0].name: bulk_insert fills tables of its own"
    ),
}


@pytest.mark.parametrize("text", ONE_MISTAKE)
def test_a_mistake_says_where_and_what(text):
    assert mistakes(text)[0].startswith(ONE_MISTAKE[text])


def test_a_script_that_is_called_as_a_workload_needs_a_label():
    text = "systems: [mysql:8.0.15]\nworkloads:\n- oltp_read_only\n"
    (mistake,) = mistakes(f"{text}- {{name: oltp_read_only.lua, script: ''}}\n")
    assert mistake.startswith("line 4: workloads[1].label: the label 'oltp_read_only' is that of")
    labelled = read(f"{text}- {{name: oltp_read_only.lua, label: own, script: ''}}\n")
    assert [one.label for one in labelled.workloads] == ["oltp_read_only", "own"]


def test_aliases_that_multiply_are_refused():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert mistakes("\n".join(levels)) == [
        "YAML: is nested deeper than 12 or has more than 20000 values"
    ]


GONE = "file: cannot be read: No such file or directory"


def test_a_file_too_large_or_not_text_or_not_there(tmp_path):
    large, binary = tmp_path / "large.yaml", tmp_path / "binary.yaml"
    large.write_text(LEAST + "#" * file.BYTES_MAX)
    binary.write_bytes(b"title: \xff")
    ours = ", ".join(path.name for path in sorted((ROOT / "plans").iterdir()))
    for path, message in (
        (large, "file: is larger than 1000000 bytes"),
        (binary, "file: is not UTF-8: byte 7 cannot be read"),
        (tmp_path / "none.yaml", f"{GONE}; `dbdyno compare` needs no plan file; dbdyno has {ours}"),
        (tmp_path / "version.yaml", f"{GONE}; did you mean versions.yaml?"),
        (tmp_path / "larg.yml", f"{GONE}; did you mean {large}?"),
        (tmp_path, "file: cannot be read: Is a directory"),
    ):
        with pytest.raises(PlanError) as caught:
            file.read(path, check)
        assert [str(mistake) for mistake in caught.value.mistakes] == [message]


def test_a_script_that_is_not_there_is_one_mistake(tmp_path):
    plan, meant = tmp_path / "plan.yaml", tmp_path / "tpcc.lua"
    plan.write_text("systems: [mysql:5.7.22, mysql:8.0.15]\nworkloads:\n  - tpc.lua\n")
    meant.write_text("")
    with pytest.raises(PlanError) as caught:
        file.read(plan, check)
    gone = f"{tmp_path / 'tpc.lua'} cannot be read: No such file or directory"
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        f"line 3: workloads[0]: {gone}; did you mean {meant}?"
    ]


def test_the_options_of_a_workload_are_sysbench_s():
    names = {option.name for test in OWN for option in of_test(test)}
    elsewhere = {"pgsql_variant", "reconnect"}  # and not for every persona
    assert names - elsewhere == WORKLOAD_OPTIONS | set(TABLE_OPTIONS)


def plan_or_mistakes(text):
    """Fails when reading raises anything but a PlanError, or one that says nothing."""
    try:
        plan, found = read(text), []
    except PlanError as error:
        plan, found = None, error.mistakes
    assert isinstance(plan, Plan) or found
    assert all(mistake.message and mistake.place for mistake in found)


KEYS = st.sampled_from(
    [
        *Plan.model_fields,
        *("label", "reference", "settings", "name", "options", "threads", "warmup", "window_s"),
        *("margin", "blocks", "tables", "rows", "pin", "<<", "scales", "small", "budget", "own"),
        *("durability", "buffer_pool", "thread_pool", "binlog", "topology"),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["mysql:8.0.15", "oltp_read_only", "2%", "60s", "uniform", "oltp_reed", "on", "auto"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=15,
)


@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_anything_shaped_like_a_plan_gives_a_plan_or_mistakes(value):
    stream = io.StringIO()
    YAML(typ="safe", pure=True).dump(value, stream)
    plan_or_mistakes(stream.getvalue())


@given(st.text(max_size=200))
def test_any_text_gives_a_plan_or_mistakes(text):
    plan_or_mistakes(text)


@given(st.text(alphabet="ab:-? []{},&*!|>'\"#%\n~.0e_<", max_size=80))
def test_any_text_of_yaml_s_own_signs_gives_a_plan_or_mistakes(text):
    plan_or_mistakes(text)
