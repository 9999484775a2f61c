"""Do the verdicts keep their promises? Thousands of experiments with known truth, judged.

What decides here is what decides about real servers: the judge's own functions are handed numbers
that `validation.noise` drew, and what they say is held against the truth. Each row of the table is
a claim with its target. A row is missed if the target lies more than two standard errors away from
what was seen; then the exit status is 1.

    .venv/bin/python -m validation.method_validation                          # about half an hour
    .venv/bin/python -m validation.method_validation --write docs/how-it-works/method.md
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from validation.claims import grid, runs, steadiness, stopping, timed, verdict
from validation.claims.claim import Claim, Seen, told

CLAIMS: Final = (
    *verdict.CLAIMS,
    *steadiness.CLAIMS,
    *stopping.CLAIMS,
    *timed.CLAIMS,
    *grid.CLAIMS,
    *runs.CLAIMS,
)
"""Every claim, in the order of the table."""
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def main() -> int:
    """Runs every claim and prints the table; exit status 1 when one is missed."""
    options = _options()
    rows = list(_rows(options.share, options.only))
    table = "\n".join(_lines(rows)) + "\n"
    print(table)
    if options.write:
        _write(Path(options.write), table)
    return 0 if all(claim.holds(seen) for claim, seen in rows) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--share", type=float, default=1.0, help="of the full experiments' number")
    parser.add_argument("--only", default="", help="claims whose words hold this text")
    parser.add_argument("--write", help="put the table between the marks of this page")
    return parser.parse_args()


def _rows(share: float, only: str) -> Iterator[tuple[Claim, Seen]]:
    for claim in CLAIMS:
        if only in claim.words:
            began = time.monotonic()
            seen = claim.seen(share)
            took_s = time.monotonic() - began
            print(f"{claim.words}: {told(seen)} ({took_s:.1f} s)", file=sys.stderr)
            yield claim, seen


def _lines(rows: list[tuple[Claim, Seen]]) -> Iterator[str]:
    yield "| claim | seen | target | experiments | |"
    yield "| --- | ---: | ---: | ---: | --- |"
    for claim, seen in rows:
        held = "kept" if claim.holds(seen) else "**missed**"
        yield f"| {claim.words} | {told(seen)} | {claim.target} | {seen.count:,} | {held} |"


def _write(page: Path, table: str) -> None:
    head, _, rest = page.read_text().partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not end:
        sys.exit(f"{page}: wanted the lines {BEGIN.strip()} and {END.strip()}, found none")
    page.write_text(f"{head}{BEGIN}{table}{end}{tail}")


if __name__ == "__main__":
    sys.exit(main())
