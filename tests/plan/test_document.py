"""YAML to plain values with lines: types of 1.2, nothing constructed, nothing multiplied."""

import pytest

from dbdyno.plan.document import VALUES_MAX, parse, place


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


def test_too_many_values_give_no_document():
    document = parse("a: [" + "1," * VALUES_MAX + "1]")
    assert document.value is None
    assert len(document.mistakes) == 1


@pytest.mark.parametrize("text", ["9" * 5000, "0x" + "f" * 5000, "-0b" + "1" * 20_000])
def test_an_integer_without_end_is_a_mistake(text):
    (mistake,) = parse(f"a: 1\nseed: {text}\n").mistakes
    assert (mistake.place, mistake.line) == ("seed", 2)


def test_places_are_written_as_people_do():
    assert place(()) == "plan"
    assert place(("systems", 1, "settings", "x")) == "systems[1].settings.x"
