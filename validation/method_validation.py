"""Do the verdicts keep their promises? Thousands of experiments with known truth, judged.

What decides here is what decides about real servers: the judge's own functions are handed numbers
that `validation.noise` and `claims.grid_noise` drew, and what they say is held against the
truth. A row of the first table is a case of a claim with its target; a row of the second a grid of
cells with the noise that is worst for it. A row is missed if the target lies more than two standard
errors away from what was seen; then the exit status is 1. The page for users has a row for each
claim, with its worst case, and the worst results of the second table, which are written by hand.

    .venv/bin/python -m validation.method_validation                     # an hour on two cores
    .venv/bin/python -m validation.method_validation --write
    .venv/bin/python -m validation.method_validation --only "48 cells; blocks: 5;" --every
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, Final, TypeVar

from validation.claims import ladders, levels, runs, steadiness, stopping, timed, verdict
from validation.claims.claim import Claim, Seen, told
from validation.claims.levels import Row, RowSeen

CLAIMS: Final = (
    *verdict.CLAIMS,
    *steadiness.CLAIMS,
    *stopping.CLAIMS,
    *timed.CLAIMS,
    *levels.CLAIMS,
    *ladders.CLAIMS,
    *runs.CLAIMS,
)
"""Every claim, in the order of the table."""
CASES: Final = Path("validation/measured/claims.md")
"""The page with every case."""
PAGE: Final = Path("docs/how-it-works/method.md")
"""The page for users."""
Task = TypeVar("Task", Claim, Row)


def main() -> int:
    """Runs claims and rows, prints both tables; exit status 1 when something is missed."""
    options = _options()
    rows = levels.EVERY if options.every else levels.ROWS
    claims = () if options.every else CLAIMS
    with Pool(options.processes) as pool:
        # Rows come first: the long ones are not to begin when all else has ended.
        seen_rows = list(_seen(pool, rows, options))
        seen_claims = list(_seen(pool, claims, options))
    tables = (
        (CASES, "table", _table(seen_claims)),
        (PAGE, "table", worst_cases(seen_claims)),
        (CASES, "levels", levels.table(seen_rows)),
    )
    for page, name, lines in tables:
        text = "\n".join(lines) + "\n"
        print(text)
        if options.write:
            _write(page, name, text)
    kept = [claim.holds(seen) for claim, seen in seen_claims]
    kept += [not seen.broken() for _, seen in seen_rows]
    return 0 if all(kept) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--share", type=float, default=1.0, help="of the full experiments' number")
    parser.add_argument("--only", default="", help="claims and rows whose words hold this text")
    parser.add_argument("--every", action="store_true", help="rows of every noise; no claims")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="at work at a time")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE} and {CASES}")
    return parser.parse_args()


def _seen(
    pool: Pool, tasks: Iterable[Task], options: argparse.Namespace
) -> Iterator[tuple[Task, Any]]:
    chosen = [task for task in tasks if options.only in task.words]
    outcomes = pool.imap(partial(_run, options.share), chosen)
    for task, (seen, took_s) in zip(chosen, outcomes, strict=True):
        said = told(seen) if isinstance(seen, Seen) else ", ".join(seen.broken()) or "kept"
        print(f"{task.words}: {said} ({took_s:.1f} s)", file=sys.stderr, flush=True)
        yield task, seen


def _run(share: float, task: Claim | Row) -> tuple[Seen | RowSeen, float]:
    began = time.monotonic()
    return task.seen(share), time.monotonic() - began


def _table(rows: Iterable[tuple[Claim, Seen]]) -> Iterator[str]:
    yield "| claim | seen | target | experiments | |"
    yield "| --- | ---: | ---: | ---: | --- |"
    for claim, seen in rows:
        held = "kept" if claim.holds(seen) else "**missed**"
        yield f"| {claim.words} | {told(seen)} | {claim.target} | {seen.count:,} | {held} |"


def worst_cases(rows: Iterable[tuple[Claim, Seen]]) -> Iterator[str]:
    """A row for each claim: its case nearest to the target's edge, or farthest beyond it."""
    yield "| claim | worst case | result in the worst case | target |"
    yield "| --- | --- | ---: | ---: |"
    for (subject, target), of in groupby(rows, lambda row: (row[0].subject, row[0].target)):
        cases = list(of)
        claim, seen = max(cases, key=lambda row: row[0].excess(row[1]))
        result = told(seen) if claim.holds(seen) else f"**{told(seen)}**"
        yield f"| {subject} | {claim.words.partition(': ')[2]} | {result} | {target} |"


def _write(page: Path, name: str, table: str) -> None:
    begin, end = (f"<!-- {name}: {mark} -->\n" for mark in ("begin", "end"))
    head, _, rest = page.read_text().partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found_end:
        sys.exit(f"{page}: wanted the lines {begin.strip()} and {end.strip()}, found none")
    page.write_text(f"{head}{begin}{table}{end}{tail}")


if __name__ == "__main__":
    sys.exit(main())
