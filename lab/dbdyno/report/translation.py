"""A report in another language: the same values with every sentence told again.

What a report says was made by `words.say`, so nothing has to be judged or drawn again: sentences in
parts and in charts' specifications are looked up in the language's catalogue, and names and numbers
stay. Addresses within a page and colours go by the English words, which are kept beside. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import Text, name
from dbdyno.report.parts import Entry, Section, Story, Table

Part = TypeVar("Part", Story, Table)


def translated(part: Part, language: Language) -> Part:
    """A story or a table in that language; the very same in English."""
    if language is Language.EN:
        return part
    made: Part = _told(part, language)
    return made


def line(text: str, language: Language) -> Text:
    """One text in that language."""
    return name(said_in(text, language))


def _told(value: Any, language: Language) -> Any:  # noqa: ANN401 - any part of a report
    """The value with every sentence in it told; of the same type."""
    match value:
        case str():
            return name(said_in(value, language)) if hasattr(value, "template") else value
        case Mapping():
            return {_told(key, language): _told(inner, language) for key, inner in value.items()}
        case tuple() | list():
            return type(value)(_told(inner, language) for inner in value)
        case _ if is_dataclass(value):
            kept = _kept(value)
            parts = {part.name: _told(getattr(kept, part.name), language) for part in fields(kept)}
            return replace(kept, **parts)
    return value


def _kept(value: Any) -> Any:  # noqa: ANN401 - any part of a report
    """The value with its English words beside, where an address or a colour goes by them."""
    match value:
        case Section():
            return replace(value, english=value.english or str(value.heading))
        case Entry():
            return replace(value, kind=value.look)
    return value
