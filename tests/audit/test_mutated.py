"""Whatever a file holds, it is read or refused: mutated logs and pages by the thousand."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from dbdyno.audit import read as read_room
from dbdyno.audit.facts import facts_in
from dbdyno.audit.imported import imported
from dbdyno.audit.page import html_tables
from dbdyno.audit.page.columns import Mapping, is_heading
from dbdyno.audit.page.grids import grids_in
from dbdyno.audit.page.page import page_of
from dbdyno.audit.tables import Publication, publication_of
from dbdyno.errors import UsageError
from support.published_logs import FORK, HAMMERDB, PAGE, PGBENCH, V04, V05, V1, rows_in, runs_in
from support.source import ROOT

MUTANTS: Final = int(os.environ.get("DBDYNO_SEEDS", "400"))
SIGNS: Final = "0123456789.,:;|<>/%()[]{}-+eE\"'# \t\n\0\ufeff\u00a0并发万时A"
HTML: Final = (
    "<p>A and B with 16 GB of memory.</p><table><tr><th rowspan=2>threads<th colspan=2>TPS</tr>"
    "<tr><th>A<th>B</tr><tr><td>8<td>10.5<td>9.5</tr></table>"
)
YAML: Final = (ROOT / "examples" / "published" / "greatsql-vs-mysql-2022.yaml").read_text()


def read_page(text: str, source: str) -> None:
    page = page_of(text, source, Mapping())
    if page.refusals:
        raise page.refusals[0]
    tables, facts = page.tables, facts_in(text, source)
    Publication.model_validate({**facts.model_dump(), "tables": tables})


def read_run(text: str, source: str) -> None:
    with tempfile.NamedTemporaryFile(mode="w", suffix=source) as file:
        file.write(text)
        file.flush()
        imported([Path(file.name)], "made", Mapping())


READERS: Final[dict[str, tuple[Callable[[str, str], object], tuple[str, ...]]]] = {
    "sysbench": (runs_in, (V1, V05, V04, V1.replace("lat (ms,95%)", FORK))),
    "pgbench and HammerDB": (rows_in, (PGBENCH, HAMMERDB)),
    "imports": (read_run, (V1, V05, V04, PGBENCH, HAMMERDB, PAGE, HTML)),
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


LONG: Final = "9" * 5000
WIDE: Final = "\u00a0" * 200_000
HOSTILE: Final = {
    "a cell over two lines": 'threads,tps\n"8\n",12\n',
    "a cell of 200 KB": f"threads,tps\n8,{'1' * 200_000}",
    "a number without end": f"threads,tps\n8,{'1' * 400}\n",
    "a load level without end": f"threads,tps\n{'1' * 400},8\n",
    "a span without end": f"<table><tr><td colspan={LONG}>threads<td>tps<tr><td>8<td>1</table>",
    "a span in other digits": "<table><tr><td colspan=\u00b2>threads<td>tps<tr><td>8<td>1</table>",
    "dashes instead of a heading": "-" * 200_000,
    "digits instead of minutes": f"<p>{'7' * 200_000}</p>{HTML}",
    "facts without end": f"{HTML}<p>--tables={LONG} --table-size={LONG} ping {LONG} ms</p>",
    "threads without end": V1.replace("Number of threads: 16", f"Number of threads: {LONG}"),
    "more threads than can be": V1.replace("Number of threads: 16", "Number of threads: 99999999"),
    "events without end": f"{V1}    total number of events:  {LONG}\n",
    "a histogram beyond all times": f"{V1}  {LONG} |*** 5\n 999999999999 | 5\n",
    "blanks without end": f"{V1}{' ' * 200_000}\n",
    "a workload of blanks": PGBENCH.replace("type: ", f"type: a{WIDE}b{WIDE}"),
    "clients without end": f"{PGBENCH}number of clients: {LONG}\n",
    "users without end": f"{LONG} Active Virtual Users configured\n{HAMMERDB}",
    "JSON that is deep": '{"totals": ' + "[" * 200_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("reader", [read_page, read_run])
def test_what_was_made_to_break_a_reader_is_read_or_refused(
    reader: Callable[[str, str], None], text: str
) -> None:
    with suppress(UsageError):
        reader(text, "log")


def test_a_cell_between_quotes_may_have_two_lines() -> None:
    (grid,) = grids_in('threads,tps\n"8\n",12\n16,13\n', "page", is_heading)
    assert (grid.rows, grid.lines) == ((("8", "12"), ("16", "13")), ((3, 3), (4, 4)))


def test_cells_that_span_rows_and_columns_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_tables, "CELLS_MAX", 1000)
    page = f"<table><tr>{'<td colspan=100 rowspan=100>8' * 5}{'<tr><td>8' * 10}</table>"
    with pytest.raises(UsageError, match="line 1 of page: a table without end"):
        grids_in(page, "page", is_heading)


def test_a_large_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 1 << 40)
    with pytest.raises(UsageError, match="large is too large"):
        read_room.text_of(tmp_path / "large")


def test_a_pipe_in_a_folder_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(V1)
    os.mkfifo(tmp_path / "pipe")
    plan = imported([tmp_path], "made", Mapping()).plan
    assert [system.label for system in plan.systems] == ["a"]
