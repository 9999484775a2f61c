"""Texts that were stored when a trial was made, said again so that every language can tell them.

A store keeps what became of a step, and why a load was not steady, as plain English: the rooms
that make trials know nothing of languages, and an old store must stay readable. The sentences that
dbdyno itself writes there are listed here; a text that is one of them gets its template back, with
its values. What a server or the system said is none of them, and stays as it was said.
"""

from __future__ import annotations

import re
import string
from functools import cache
from typing import Final

from dbdyno.language.words import Said, name, phrase

TEMPLATES: Final = (
    # steps (`bench.procedure`)
    phrase("restore"),
    phrase("drop caches"),
    phrase("start"),
    phrase("purge binary logs"),
    phrase("settle"),
    phrase("warm up until steady"),
    phrase("replicas catch up"),
    # what they came to (`bench.settling`, `bench.settling_postgres`)
    phrase("the binary log is off"),
    phrase("PostgreSQL has none"),
    phrase("{files} of {size} MB"),
    phrase("not at rest at the cap: vacuum or checkpoint still at work"),
    phrase(
        "not at rest at the cap: dirty pages {dirty} to {dirty_left}, history {history} to "
        "{history_left}"
    ),
    phrase("dirty pages {dirty} to {dirty_left}, history {history} to {history_left}"),
    phrase("{tables} tables vacuumed with {rows} dead rows, checkpoint done"),
    phrase("an endpoint is its owner's: dbdyno changes nothing there but its own tables"),
    phrase("{file}: {error}; it takes root, and a container may refuse it"),
    # why a load was not steady, or since when it was (`steady`, `bench.warm_up`)
    phrase("{seconds} s are too few to tell, {least} s are the least"),
    phrase("there was no event"),
    phrase("it was {share} faster from second {begin} to {end}"),
    phrase("it is alike only since second {begin} of {all}"),
    phrase("it still changed by {change} since second {begin}"),
    phrase("steady since second {begin} of {all}"),
    phrase("the load broke off: {failure}"),
    phrase("the engine did not end in time"),
)
"""The longer of two that begin alike comes first."""


def said_again(text: str) -> Said:
    """The text as one of the templates says it, the same in English; a name if none does."""
    for template in TEMPLATES:
        if found := _pattern(template).fullmatch(text):
            return Said(template, found.groupdict())
    return name(text)


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = string.Formatter().parse(template)
    return re.compile(
        "".join(
            re.escape(literal) + (f"(?P<{field}>.+?)" if field else "")
            for literal, field, _, _ in parts
        ),
        re.DOTALL,
    )
