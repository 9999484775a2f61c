"""Sentences with a later translation into other languages.

Judge and report make sentences out of templates and values: ``say("{count} trials", count=3)``. The
result is the English text, a `str` with its template and values. `translated` looks the template up
in a language's catalogue and fills in the values again, nested sentences first. So a stored
judgement can be translated into every language, and a text put together in any other way is
recognised: it is no `Said`.

Names, numbers and a server's words are values, never parts of a template. `name` wraps a value for
the place of a sentence. Every template is a literal in a call of `say`, `phrase` or `count`, so a
test can compare the catalogues with the code.
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
        """Fill in `template`; KeyError for a missing value.

        Args:
            text: the English text if it differs from the template's, as in a singular.
        """
        said = super().__new__(cls, filled(template, values) if text is None else text)
        said.template = template
        said.values = values
        return said

    def __reduce__(self) -> tuple[type[Said], tuple[str, Mapping[str, object], str]]:
        """Keep template and values in copies and pickles."""
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
    """A sentence, or a part of a sentence.

    Args:
        template: English, with ``{name}`` for each value (formats such as ``{share:.1%}`` too).
        values: names, numbers, or parts made by `say`.

    Raises:
        KeyError: a value of the template is missing.
    """
    return Said(template, values)


def phrase(template: str) -> str:
    """A template for a table, filled in later by `say`."""
    return template


def name(text: str) -> Said:
    """Text left untranslated: a label, a number, a server's words."""
    return text if isinstance(text, Said) else Said(NAME, {"name": text})


def in_utf8(typed: str) -> str:
    """Text with escapes in place of bytes outside UTF-8."""
    return typed.encode(errors="surrogateescape").decode(errors="backslashreplace")


def count(number: int, what: str) -> Said:
    """A whole number with its noun: "1 block", "1 200 blocks".

    Args:
        what: a noun in the singular with a plural in s; its template in catalogues is ``{count}
            blocks``.
    """
    parted = f"{number:,}".replace(",", PARTED)
    singular = f"{parted} {what}" if number == 1 else None
    return Said(f"{{count}} {what}s", {"count": parted}, singular)


def capital(clause: str) -> Said:
    """A clause as a sentence of its own: "Few blocks: 3."."""
    whole = Said(CLAUSE, {"clause": clause})
    return Said(CLAUSE, whole.values, whole[:1].upper() + whole[1:])


def listed(parts: Iterable[str], sign: str = ", ") -> Said:
    """Join parts by `sign`; each part is translated on its own.

    Neighbours are joined in pairs, then pairs, so that long lists take neither depth nor memory.

    Args:
        sign: the separator, a key of `LISTS`.
    """
    joined = [name(part) for part in parts] or [name("")]
    while len(joined) > 1:
        pairs = zip(joined[::2], joined[1::2], strict=False)
        last = joined[-1:] if len(joined) % 2 else []
        values = ({"first": first, "rest": rest} for first, rest in pairs)
        joined = [*(Said(f"{{first}}{sign}{{rest}}", one) for one in values), *last]
    return joined[0]


def clauses(parts: Iterable[str]) -> Said:
    """Join parts as clauses of a sentence, by commas in English."""
    whole: Said | None = None
    for part in parts:
        pair = {"before": whole, "after": part}
        whole = name(part) if whole is None else Said(CLAUSES, pair)
    return name("") if whole is None else whole


def translated(text: str, catalogue: Mapping[str, str]) -> str:
    """The text in the language of `catalogue`, a mapping of English templates.

    Templates without an entry stay English; plain strings stay as they are.
    """
    if not catalogue or not isinstance(text, Said):
        return text
    values = {
        name: translated(value, catalogue) if isinstance(value, str) else value
        for name, value in text.values.items()
    }
    return filled(catalogue.get(text.template, text.template), values)


class _Filling(Formatter):
    """Put a space before the percent sign: "23.6 %"."""

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 - as inherited
        text = format(value, format_spec)
        return text.replace("%", " %") if format_spec.endswith("%") else text


_FILLING: Final = _Filling()


def filled(template: str, values: Mapping[str, object]) -> str:
    """Fill in the template; KeyError for a missing value."""
    if "%}" in template:
        return _FILLING.vformat(template, (), values)
    return template.format_map(values)
