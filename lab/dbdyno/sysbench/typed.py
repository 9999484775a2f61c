"""Parts of Python's library for the persona, without slow imports.

`typing` would be a sixth of a start's CPU, and compiles the annotation of each field; `signal`
imports `enum` to name its numbers. A type checker reads both as they are.
"""

from __future__ import annotations

from dbdyno import TYPE_CHECKING

__all__ = ["TYPE_CHECKING", "NamedTuple", "cast", "signal"]

if TYPE_CHECKING:
    import signal
    from typing import NamedTuple, cast
else:
    import _signal as signal

    class NamedTuple(tuple):
        """A tuple with named items, some with a default, as its class annotates them."""

        def __init_subclass__(cls) -> None:
            own = vars(cls)
            cls._fields = tuple(cls.__annotations__)
            cls._defaults = {name: own[name] for name in cls._fields if name in own}
            for place, name in enumerate(cls._fields):
                setattr(cls, name, property(lambda self, place=place: self[place]))

        def __new__(cls, *values: object, **named: object) -> NamedTuple:
            """Of positional and named arguments; TypeError if they do not suit the fields."""
            rest = cls._fields[len(values) :]
            if rest:
                given = {**cls._defaults, **named}
                values += tuple(given[name] for name in rest if name in given)
            if len(values) != len(cls._fields) or named.keys() - set(rest):
                raise TypeError(f"{cls.__name__} has the fields {', '.join(cls._fields)}")
            return super().__new__(cls, values)

        def __getnewargs__(self) -> tuple[object, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            pairs = zip(self._fields, self, strict=True)
            return f"{type(self).__name__}({', '.join(f'{name}={one!r}' for name, one in pairs)})"

        def _replace(self, **changed: object) -> NamedTuple:
            return type(self)(**dict(zip(self._fields, self, strict=True)) | changed)

    def cast(_: str, value: object) -> object:
        """The value as it is; the type's name is for the checker."""
        return value
