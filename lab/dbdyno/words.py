"""Sentences that can be said in another language later.

Judge and report make sentences out of templates and values: ``say("{count} trials", count=3)``.
What comes back is the English text, a `str` like any other, that still knows its template and its
values. `told` looks the template up in a language's catalogue and fills the values in again, those
that are sentences themselves first. So one stored judgement can be told in every language, and a
text that was put together in any other way stands out: it is no `Said`.

Names, numbers and what a server said are values, never parts of a template.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from pydantic_core import core_schema


class Said(str):
    """English text with the template and the values it was made of."""

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, values: Mapping[str, object]) -> Said:
        """The text of `template` with its values; KeyError if one is missing."""
        made = super().__new__(cls, template.format_map(values))
        made.template = template
        made.values = values
        return made

    def __reduce__(self) -> tuple[type[Said], tuple[str, Mapping[str, object]]]:
        """Copies and pickles keep what it was made of."""
        return Said, (self.template, self.values)


class _Kept:
    """Makes pydantic keep a `Said` as it is; it would make a plain `str` of it."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: object
    ) -> core_schema.CoreSchema:
        text = core_schema.str_schema()
        kept = core_schema.is_instance_schema(Said)
        return core_schema.union_schema([kept, text], mode="left_to_right")


Text = Annotated[str, _Kept]
"""The type of a field of a noun that holds sentences."""
LIST: Final = "{first}{sign}{rest}"
"""How a list is put together; the same in every language."""


def say(template: str, **values: object) -> Said:
    """A sentence, or a part of one.

    Args:
        template: English, with ``{name}`` for each value (formats such as ``{share:.1%}`` too).
        values: names, numbers, or parts that were said themselves.

    Raises:
        KeyError: the template names a value that is not given.
    """
    return Said(template, values)


def listed(parts: Iterable[str], sign: str = ", ") -> str:
    """The parts one after the other with `sign` between them; each can be told in its language."""
    whole: str | None = None
    for part in parts:
        whole = part if whole is None else Said(LIST, {"first": whole, "sign": sign, "rest": part})
    return "" if whole is None else whole


def told(text: str, catalogue: Mapping[str, str]) -> str:
    """The text in the language of `catalogue`, which has a template for each English one.

    What is not in the catalogue stays English; a text that was not said stays as it is.
    """
    if not isinstance(text, Said):
        return text
    values = {
        name: told(value, catalogue) if isinstance(value, str) else value
        for name, value in text.values.items()
    }
    return catalogue.get(text.template, text.template).format_map(values)
