"""Whatever a file holds, it is read or refused: ten thousand mutated logs and pages."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from dbdyno.audit.publication import publication_of
from dbdyno.errors import UsageError
from dbdyno.intake.columns import Mapping, is_heading, published
from dbdyno.intake.grids import grids_in
from dbdyno.intake.imported import imported
from dbdyno.intake.other_logs import rows_in
from dbdyno.intake.prose import claims_in, sentences
from dbdyno.intake.sysbench_log import runs_in
from support.published_logs import (
    FORK,
    HAMMERDB,
    OWN_CSV,
    OWN_HLOG,
    OWN_JSON,
    PAGE,
    PGBENCH,
    V04,
    V05,
    V1,
)
from support.source import ROOT

MUTANTS: Final = int(os.environ.get("DBDYNO_SEEDS", "1000"))
SIGNS: Final = "0123456789.,:;|<>/%()[]{}-+eE\"'# \t\n\0\ufeff\u00a0并发万时A"
HTML: Final = (
    "<p>A is faster than B by 10 %.</p><table><tr><th rowspan=2>threads<th colspan=2>TPS</tr>"
    "<tr><th>A<th>B</tr><tr><td>8<td>10.5<td>9.5</tr></table>"
)
YAML: Final = (ROOT / "examples" / "published" / "tidb-v3-vs-v2-2019.yaml").read_text()


def read_page(text: str, source: str) -> None:
    tables = [
        table
        for grid in grids_in(text, source, is_heading)
        for table in published(grid, Mapping(), source).tables
    ]
    list(claims_in(sentences(text), [table.system for table in tables], []))


def read_run(text: str, source: str) -> None:
    with tempfile.NamedTemporaryFile(mode="w", suffix=source) as file:
        file.write(text)
        file.flush()
        imported([Path(file.name)], "made", Mapping())


READERS: Final[dict[str, tuple[Callable[[str, str], object], tuple[str, ...]]]] = {
    "sysbench": (runs_in, (V1, V05, V04, V1.replace("lat (ms,95%)", FORK))),
    "pgbench and HammerDB": (rows_in, (PGBENCH, HAMMERDB)),
    "imports": (read_run, (V1, V05, V04, PGBENCH, HAMMERDB, PAGE, HTML)),
    "own outputs": (read_run, (OWN_JSON, OWN_CSV, OWN_HLOG)),
    "pages": (read_page, (PAGE, HTML)),
    "publications": (publication_of, (YAML,)),
}


def mutated(text: str, dice: random.Random) -> str:
    """The text with lines lost, doubled or swapped, and signs put in, out or in another's place."""
    lines = text.splitlines(keepends=True)
    for _ in range(dice.randrange(4)):
        place, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        match dice.randrange(4):
            case 0 if len(lines) > 1:
                del lines[place]
            case 1:
                lines.insert(place, lines[other])
            case 2:
                lines[place], lines[other] = lines[other], lines[place]
            case _:
                lines = lines[: place + 1]
    signs = list("".join(lines))
    for _ in range(dice.randrange(6)):
        place = dice.randrange(len(signs)) if signs else 0
        signs[place : place + dice.randrange(3)] = dice.choice(SIGNS)
    return "".join(signs)


@pytest.mark.parametrize("name", READERS)
def test_a_mutated_text_is_read_or_refused(name: str) -> None:
    reader, texts = READERS[name]
    dice, read, refusals = random.Random(name), 0, []
    for _ in range(MUTANTS // len(READERS)):
        text = mutated(dice.choice(texts), dice)
        try:
            reader(text, "log")
            read += 1
        except UsageError as refused:
            refusals.append(str(refused))
    assert read > 0
    assert [one for one in refusals if "log" not in one] == []  # each says which file
