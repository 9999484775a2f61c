"""YAML to plain values with lines: types of 1.2, nothing constructed, nothing multiplied."""

from __future__ import annotations

import pytest

from dbdyno.errors import PlanError, UnknownSystemError
from dbdyno.plan import file
from dbdyno.plan.document import parse, place, scaled, take_scales
from dbdyno.plan.plan import Plan


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("017", 17),
        ("0o17", 15),
        ("-0x1F", -31),
        ("1_000", 1000),
        ("1.5e3", 1500.0),
        ("2026-11-21", "2026-11-21"),
        ("1:30", "1:30"),
        ("8.0.15", "8.0.15"),
        ("!!str 5", "5"),
    ],
)
def test_scalars(text, value):
    document = parse(f"a: {text}")
    assert document.mistakes == []
    assert document.value == {"a": value}
    assert type(document.value["a"]) is type(value)


def test_lines_of_keys_and_entries():
    document = parse("a:\n  - 1\n  - b: 2\n\nc: {d: 3}\n")
    assert document.lines == {
        (): 1,
        ("a",): 1,
        ("a", 0): 2,
        ("a", 1): 3,
        ("a", 1, "b"): 3,
        ("c",): 5,
        ("c", "d"): 5,
    }
    assert document.line(("c", "missing", 7)) == 5
    assert parse("").line(("x",)) is None


@pytest.mark.parametrize("text", ["!!binary aGk=", "!!python/object:os.x {}", "!x y", "!!set {a}"])
def test_tags_build_nothing(text):
    document = parse(f"a: {text}")
    assert document.value is None or not isinstance(document.value["a"], bytes | set)


def test_a_merge_key_is_a_key_like_any_other():
    assert parse("a: &a {x: 1}\nb:\n  <<: *a\n").value["b"] == {"<<": {"x": 1}}


def test_the_first_of_two_keys_is_kept_and_the_second_told():
    document = parse("a: 1\nb: 2\na: 3\n")
    assert document.value == {"a": 1, "b": 2}
    assert [str(mistake) for mistake in document.mistakes] == [
        "line 3: a: stands twice, first in line 1"
    ]


@pytest.mark.parametrize("text", ["9" * 5000, "0x" + "f" * 5000, "-0b" + "1" * 20_000])
def test_an_integer_without_end_is_a_mistake(text):
    (mistake,) = parse(f"a: 1\nseed: {text}\n").mistakes
    assert (mistake.place, mistake.line) == ("seed", 2)


def test_places_are_written_as_people_do():
    assert place(()) == "plan"
    assert place(("systems", 1, "settings", "x")) == "systems[1].settings.x"


# Scales: what is laid over a plan, whose lines are told, and what is no scale.


TEXT = """
systems: [a, b]
workloads: [oltp_read_write]
dataset: {tables: 16, rows: 1000000}
load: {threads: [50, 100]}
trial: {warmup: 5s, window: 60s}
settings:
  durability: [double-1, 0/2]
  own: {flushing: {lazy: {x: 1}}}
scales:
  small:
    systems: [c]
    dataset: {rows: 1000}
    load: {threads: 4}
    trial: {warmup: 2s}
    settings: {own: null, durability: 0/2}
  tiny:
    dataset: {tables: 1}
"""


def read(text, scale="", check=lambda reference: None) -> Plan:
    return file.read_text(text, "plan.yaml", check, scale)


def mistakes(text, scale="") -> list[str]:
    with pytest.raises(PlanError) as caught:
        read(text, scale)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_a_plan_is_as_it_stands_without_a_scale():
    plan = read(TEXT)
    assert (plan.scale, plan.dataset.rows, plan.trial.warmup_s) == ("", 1_000_000, 5)


def test_keys_meet_keys_lists_are_replaced_and_null_takes_away():
    plan = read(TEXT, "small")
    assert plan.scale == "small"
    assert [system.label for system in plan.systems] == ["c"]
    assert (plan.dataset.tables, plan.dataset.rows, plan.load.threads) == (16, 1000, (4,))
    assert (plan.trial.warmup_s, plan.trial.window_s) == (2, 60)
    assert (plan.settings.durability, plan.settings.own) == (("0/2",), {})
    assert read(TEXT, "tiny").dataset.tables == 1
    assert read(TEXT, "tiny").trial.warmup_s == 5


def test_each_scale_is_an_experiment_of_its_own():
    assert len({read(TEXT, scale).hash() for scale in ("", "small", "tiny")}) == 3


def test_a_scale_that_is_not_there_is_told_with_the_nearest():
    assert mistakes(TEXT, "smal") == [
        "--scale: there is no scale 'smal' in this plan; did you mean small?"
    ]


def test_mistakes_of_all_scales_are_told_at_once_with_their_own_lines():
    text = TEXT.replace("rows: 1000}", "rows: none}").replace("{tables: 1}", "{tabels: 1}")
    assert mistakes(text.replace("window: 60s", "window: never")) == [
        "line 6: trial.window: must be a time such as 15s, 2m or 90 (seconds), found 'never'",
        "line 13: dataset.rows (scale small): must be a whole number, found 'none'",
        "line 18: dataset.tabels (scale tiny): is no key of a plan; did you mean tables?",
    ]


def test_only_the_systems_that_are_run_must_be_there():
    def check(reference):
        if reference != "c":
            raise UnknownSystemError(f"there is no {reference}")

    assert read(TEXT, "small", check).systems[0].reference == "c"
    with pytest.raises(PlanError, match="there is no a"):
        read(TEXT, "", check)


def test_a_scale_within_a_scale_has_no_place():
    text = "systems: [a]\nworkloads: [oltp_read_only]\nscales:\n  s:\n    scales: {t: {}}\n"
    assert mistakes(text) == ["line 5: scales.s.scales: has no place within a scale"]


def test_lines_follow_what_is_laid_over():
    document = parse(TEXT)
    made = scaled(document, take_scales(document), "small")
    assert made.line(("dataset", "rows")) == 13
    assert made.line(("dataset", "tables")) == 4
    assert made.line(("systems", 0)) == 12
    assert ("systems", 1) not in made.lines
    assert document.line(("dataset", "rows")) == 4


def test_the_last_of_two_anchors_of_one_name_counts():
    assert parse("[&a 1, &a 2, *a]").value == [1, 2, 2]
