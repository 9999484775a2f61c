"""Does a comparison decide in the time it has, and is it right? Real servers, truths known.

    .venv/bin/python -m validation.power widths --runs 6           # about 45 minutes
    .venv/bin/python -m validation.power ties --runs 40 --time 2m     # about two hours
    .venv/bin/python -m validation.power planted --runs 10 --time 10m

`widths` measures one system against itself, by turns in three blocks of 4 s of warm-up and 10 s of
window, and with a time as long as those took; it compares the half widths of the intervals. `ties`
counts wrong words between equal systems. `planted` slows the second system down by 5 % (its load
stands still for that share of the time) and counts how often that is found.
"""

from __future__ import annotations

import argparse
import io
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

from dbdyno import api
from dbdyno.cli import flow
from dbdyno.experiment import trial as trials
from dbdyno.experiment.engine import spec
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.measurement.measurement import Trial
from dbdyno.plan.controls import standstill_period_s
from dbdyno.plan.plan import Plan
from dbdyno.plan.spelling import duration_s
from dbdyno.report.formats.stdout import Output
from dbdyno.servers.base import Server

PLANTED: Final = 0.05
OTHER: Final = (Word.BETTER, Word.WORSE)
BLOCKS: Final = {"blocks": 3, "controls": False}
TRIAL: Final = {"warmup_s": 4, "window_s": 10}


def main() -> int:
    """Runs what was asked for and prints one line a run, then the sum."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="dbdyno-power-") as folder:
        workspace = Path(options.workspace or folder)
        match options.what:
            case "widths":
                _widths(options, workspace)
            case "ties":
                _count(options, workspace, OTHER)
            case "planted":
                with _slower("second"):
                    _count(options, workspace, (Word.WORSE,))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("widths", "ties", "planted"))
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--time", type=duration_s, default=120.0, help="of each run, such as 2m")
    parser.add_argument("--system", default="mysql:8.0.15")
    parser.add_argument("--threads", default="1,8")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--workspace", help="where runs are kept; nowhere unless given")
    return parser.parse_args()


def _widths(options: argparse.Namespace, workspace: Path) -> None:
    shares = []
    for seed in range(1, options.runs + 1):
        given = _measured(_plan(options, seed, design=BLOCKS, trial=TRIAL), workspace)
        took_s = _seconds(given)
        timed = _measured(_plan(options, seed, design={"time_s": took_s}), workspace)
        cells = [
            (_half(g), _half(t)) for g, t in zip(_verdicts(given), _verdicts(timed), strict=True)
        ]
        shares += [narrow / wide for wide, narrow in cells]
        said = "; ".join(f"±{wide:.1%} and ±{narrow:.1%}" for wide, narrow in cells)
        print(f"{seed}: {took_s:.0f} s and {_seconds(timed):.0f} s: {said}", flush=True)
    print(f"half width with a time over that of three blocks: {median(shares):.2f} in the median")


def _count(options: argparse.Namespace, workspace: Path, wanted: tuple[Word, ...]) -> None:
    found = Counter[str]()
    for seed in range(1, options.runs + 1):
        run = _measured(_plan(options, seed, design={"time_s": options.time}), workspace)
        words = [verdict.word for verdict in _verdicts(run)]
        found["runs"] += any(word in wanted for word in words)
        found.update(word.value for word in words)
        said = ", ".join(str(verdict.word.value) for verdict in _verdicts(run))
        blocks = max(m.trial.block for m in run.trials) + 1
        print(f"{seed}: {said}; {blocks} blocks in {_seconds(run):.0f} s", flush=True)
    among = " or ".join(word.value for word in wanted)
    print(f"{among} in {found['runs']} of {options.runs} runs; words of all cells: {dict(found)}")


def _plan(options: argparse.Namespace, seed: int, **parts: dict[str, Any]) -> Plan:
    settings = dict(one.split("=", 1) for one in options.settings)
    systems = [
        {"label": label, "reference": options.system, "settings": settings}
        for label in ("first", "second")
    ]
    return Plan.model_validate(
        {
            "systems": systems,
            "workloads": ["oltp_read_write"],
            "dataset": {"tables": 4, "rows": options.rows},
            "load": {"threads": options.threads.split(",")},
            "seed": seed,
            **parts,
        }
    )


def _measured(plan: Plan, workspace: Path) -> api.Run:
    with redirect_stdout(io.StringIO()):
        run_id = flow.begin(plan, workspace, "validation.power", flow.ReportOptions(Output.PLAIN))
    return api.load(run_id, workspace)


def _verdicts(run: api.Run) -> tuple[Verdict, ...]:
    return run.judgement.verdicts


def _half(verdict: Verdict) -> float:
    if verdict.low is None or verdict.high is None:
        return math.inf
    return math.log(verdict.high / verdict.low) / 2


def _seconds(run: api.Run) -> float:
    """From the first trial's beginning to the last one's end."""
    began = [datetime.fromisoformat(m.started_at).timestamp() for m in run.trials]
    ended = [at_s + m.warmup_s + m.window_s for at_s, m in zip(began, run.trials, strict=True)]
    return max(ended) - min(began)


@contextmanager
def _slower(label: str) -> Iterator[None]:
    """That system's load stands still for a share of the time."""

    def planted(plan: Plan, trial: Trial, server: Server) -> dict[str, Any]:
        asked = spec.run_spec(plan, trial, server)
        if trial.system != label:
            return asked
        period_s = standstill_period_s(plan.trial.window_s)
        return {**asked, "standstill": {"share": PLANTED, "period_s": period_s}}

    before = trials.run_spec
    trials.run_spec = planted
    try:
        yield
    finally:
        trials.run_spec = before


if __name__ == "__main__":
    sys.exit(main())
