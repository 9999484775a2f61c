"""The persona's NamedTuple is to its classes what `typing`'s is, which a type checker reads."""

import copy
import typing

import pytest

from dbdyno.sysbench import typed


class Ours(typed.NamedTuple):
    name: str
    places: tuple[int, ...]
    line: int | None = None

    @classmethod
    def of(cls, name: str) -> "Ours":
        return cls(name, (1, 2))

    @property
    def shown(self) -> str:
        return f"{self.name} {self.line}"


class Theirs(typing.NamedTuple):
    name: str
    places: tuple[int, ...]
    line: int | None = None


def test_it_is_a_tuple_with_names_as_typing_makes_it():
    ours, theirs = Ours.of("a"), Theirs("a", (1, 2))
    assert ours == theirs == ("a", (1, 2), None)
    assert (ours.name, ours.places, ours.line, ours.shown) == ("a", (1, 2), None, "a None")
    assert Ours(places=(), name="b", line=3) == Theirs(places=(), name="b", line=3)
    assert ours._replace(line=7) == theirs._replace(line=7)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert Ours._fields == Theirs._fields
    assert copy.deepcopy(ours) == ours
    with pytest.raises(AttributeError):
        ours.name = "c"


@pytest.mark.parametrize("kind", [Ours, Theirs])
@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        (("a",), {"line": 1}),
        (("a", (), 1, 2), {}),
        (("a", ()), {"name": "b"}),
        (("a", ()), {"x": 1}),
    ],
)
def test_fields_that_are_missing_or_too_many_are_refused(kind, values, named):
    with pytest.raises(TypeError):
        kind(*values, **named)
