"""Texts that are stored as plain English get their templates back, so that they can be translated.

What became of a step before a trial, and why a load was not steady, is stored as a sentence: the
rooms that make trials know no languages, and older stores must stay readable. `TEMPLATES` lists
the sentences that dbdyno itself stores; a text of a server or of the system fits none of them and
stays as it is.
"""

from __future__ import annotations

import re
import string
from functools import cache
from typing import Final

from dbdyno.language.words import Said, name, phrase

TEMPLATES: Final = (
    # steps (`experiment.procedure`)
    phrase("restore"),
    phrase("drop caches"),
    phrase("start"),
    phrase("SQL after the start"),
    phrase("purge binary logs"),
    phrase("settle"),
    phrase("replicas catch up"),
    # their details
    phrase("the binary log is off"),
    phrase("PostgreSQL has none"),
    phrase("binary logs: {files}, {size} MB in all"),
    phrase("{files} of {size} MB"),
    phrase("not at rest at the cap: vacuum or checkpoint still at work"),
    phrase("not at rest at the cap: autovacuum still works"),
    phrase(
        "not at rest at the cap: dirty pages {dirty} to {dirty_left}, history {history} to "
        "{history_left}"
    ),
    phrase("dirty pages {dirty} to {dirty_left}, history {history} to {history_left}"),
    phrase("{tables} tables vacuumed with {rows} dead rows, checkpoint done"),
    phrase("an endpoint is its owner's: dbdyno changes nothing there but its own tables"),
    phrase("{file}: {error}; it takes root, and a container may refuse it"),
    # what is being prepared, as progress tells it while a run goes on
    phrase("{reference}: fetching {source}"),
    phrase("{megabytes} MB fetched"),
    phrase("{reference}: unpacking"),
    phrase("{reference}: pulling the image"),
    phrase("{reference}: initialising a data directory"),
    phrase("{system}: the dataset is there already"),
    phrase("{system}: starting the server to load the dataset"),
    phrase("{system}: loading table {table}, {percent} %"),
    phrase("{system}: building the index of table {table}"),
    phrase("{system}: script {script}: {command}"),
    phrase("{system}: taking a digest of the rows"),
    phrase("{system}: copying the dataset aside"),
    phrase("{system}: keeping a copy of the loaded data"),
    phrase("{system}: restoring the dataset"),
    phrase("{system}: dropping the system's caches"),
    phrase("{system}: starting the server"),
    phrase("{system}: joining its replicas, {replicas} in all"),
    phrase("{system}: purging the binary logs"),
    phrase("{system}: waiting until the server is at rest"),
    phrase("{system}: stopping the server"),
    phrase("{system}: counting the rows that are left"),
    phrase("{system}: the script checks its rows"),
    phrase("{replica}: laying out its data"),
    phrase("{replica}: carrying its primary's data there"),
    phrase("block {block} was begun on another machine; all of it is measured again"),
    phrase("machine {machine} was lost: it said nothing for {seconds} s"),
    phrase("machine {machine} was lost: {error}"),
    phrase("{workload}: how fast the load is without a server"),
    phrase("{workload}: is it faster with twice the load's threads?"),
    phrase(
        "block {block} was disturbed: others had {share} of the host's CPU beside {arm} (limit "
        "{limit} %); its repeats are used, its trial is void"
    ),
    phrase(
        "block {block} was disturbed: others had {share} of the host's CPU beside {arm} (limit "
        "{limit} %); measured again on all systems: {loads}"
    ),
    phrase("ended after {blocks} of at most {most} blocks: more would change no verdict"),
    phrase(
        "from block {block} on: windows of {window} s after {warmup} s, {blocks} blocks at most"
    ),
    # what `certify` and `prove-durability` do
    phrase("1/4 how fast it is: a server that answers at once, in each protocol"),
    phrase("2/4 how late it sends at fixed rates"),
    phrase("3/4 how evenly it runs: starts, computing, synced writes"),
    phrase("4/4 what it says of a server whose truth is known"),
    phrase("{system}: round {round} of {rounds}: commits, then SIGKILL"),
    phrase("{system}: starting it again on what is left"),
)
"""The longer of two that begin alike comes first."""


def from_stored(text: str) -> Said:
    """A stored text with its template and values, the same in English; a name if none fits."""
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
