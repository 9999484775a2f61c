"""Sentences that can be said in another language later.

Judge and report make sentences out of templates and values: ``say("{count} trials", count=3)``.
What comes back is the English text, a `str` like any other, that still knows its template and its
values. `translated` looks the template up in a language's catalogue and fills the values in again,
those that are sentences themselves first. So one stored judgement can be translated into every
language, and a text that was put together in any other way stands out: it is no `Said`.

Names, numbers and what a server said are values, never parts of a template. `name` makes of one
what stands where a sentence may stand. Every template is a literal in a call of `say`, `phrase` or
`count`, so that a test can hold the catalogues against the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Annotated, Any, Final

from pydantic_core import core_schema


class Said(str):
    """English text with the template and the values it was made of."""

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, values: Mapping[str, object], text: str | None = None) -> Said:
        """The text of `template` with its values; KeyError if one is missing.

        Args:
            text: the English text where the template does not give it, as in a singular.
        """
        made = super().__new__(cls, filled(template, values) if text is None else text)
        made.template = template
        made.values = values
        return made

    def __reduce__(self) -> tuple[type[Said], tuple[str, Mapping[str, object], str]]:
        """Copies and pickles keep what it was made of."""
        return Said, (self.template, self.values, str(self))


class _Kept:
    """Makes pydantic keep a `Said` as it is, and a name of any other `str`."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: object
    ) -> core_schema.CoreSchema:
        kept = core_schema.is_instance_schema(Said)
        read = core_schema.no_info_after_validator_function(name, core_schema.str_schema())
        serialization = core_schema.plain_serializer_function_ser_schema(
            str, return_schema=core_schema.str_schema(), when_used="json"
        )
        return core_schema.union_schema(
            [kept, read], mode="left_to_right", serialization=serialization
        )


Text = Annotated[Said, _Kept]
"""The type of a field of a noun that holds sentences."""
Label = Annotated[str, _Kept]
"""The type of a field that holds a label, to which something may have been said."""
NAME: Final = "{name}"
"""The template of what is no sentence; the same in every language."""
CLAUSE: Final = "{clause}."
"""A clause that stands as a sentence."""
CLAUSES: Final = "{before}, {after}"
"""How clauses follow each other; names in a list may want another sign."""
LISTS: Final = (
    "{first}, {rest}",
    "{first}; {rest}",
    "{first} {rest}",
    "{first} and {rest}",
    "{first} then {rest}",
    "{first} / {rest}",
    "{first} | {rest}",
    "{first}{rest}",
)
"""How a list is put together, by its sign."""
PARTED: Final = "\u202f"
"""Narrow no-break space between groups of three digits; no locale takes it for a point."""


def say(template: str, **values: object) -> Said:
    """A sentence, or a part of one.

    Args:
        template: English, with ``{name}`` for each value (formats such as ``{share:.1%}`` too).
        values: names, numbers, or parts that were said themselves.

    Raises:
        KeyError: the template names a value that is not given.
    """
    return Said(template, values)


def phrase(template: str) -> str:
    """A template that stands in a table, to be said when its values are known."""
    return template


def name(text: str) -> Said:
    """What stays as it is in every language: a label, a number, what a server said."""
    return text if isinstance(text, Said) else Said(NAME, {"name": text})


def count(number: int, what: str) -> Said:
    """A whole number with its noun: "1 block", "1 200 blocks".

    Args:
        what: the noun in the singular, whose plural ends with an s; its template in catalogues is
            ``{count} blocks``.
    """
    parted = f"{number:,}".replace(",", PARTED)
    one = f"{parted} {what}" if number == 1 else None
    return Said(f"{{count}} {what}s", {"count": parted}, one)


def capital(clause: str) -> Said:
    """A clause as a sentence of its own: "Few blocks: 3."."""
    whole = Said(CLAUSE, {"clause": clause})
    return Said(CLAUSE, whole.values, whole[:1].upper() + whole[1:])


def listed(parts: Iterable[str], sign: str = ", ") -> Said:
    """The parts one after the other with `sign` between them; each is translated for itself.

    Args:
        sign: what stands between; `LISTS` has all there are.
    """
    whole: Said | None = None
    for part in parts:
        pair = {"first": whole, "rest": part}
        whole = name(part) if whole is None else Said(f"{{first}}{sign}{{rest}}", pair)
    return name("") if whole is None else whole


def clauses(parts: Iterable[str]) -> Said:
    """The parts as clauses of one sentence, with commas between them in English."""
    whole: Said | None = None
    for part in parts:
        pair = {"before": whole, "after": part}
        whole = name(part) if whole is None else Said(CLAUSES, pair)
    return name("") if whole is None else whole


def translated(text: str, catalogue: Mapping[str, str]) -> str:
    """The text in the language of `catalogue`, which has a template for each English one.

    What is not in the catalogue stays English; a text that was not said stays as it is.
    """
    if not catalogue or not isinstance(text, Said):
        return text
    values = {
        name: translated(value, catalogue) if isinstance(value, str) else value
        for name, value in text.values.items()
    }
    return filled(catalogue.get(text.template, text.template), values)


class _Filling(Formatter):
    """Puts the space before a percent sign that numbers have everywhere else: "23.6 %"."""

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 - as inherited
        text = format(value, format_spec)
        return text.replace("%", " %") if format_spec.endswith("%") else text


_FILLING: Final = _Filling()


def filled(template: str, values: Mapping[str, object]) -> str:
    """The template with its values; KeyError if one is missing."""
    if "%}" in template:
        return _FILLING.vformat(template, (), values)
    return template.format_map(values)
