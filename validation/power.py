"""Does a comparison decide in the time it has, and is it right? Real servers, truths known.

    .venv/bin/python -m validation.power ties --runs 40 --time 2m     # about two hours
    .venv/bin/python -m validation.power planted --runs 10 --time 10m
    .venv/bin/python -m validation.power demo --runs 10 --time 5m \
        --workload oltp_read_only,oltp_write_only --threads 8           # about one hour

`ties` counts wrong words between equal systems. `planted` slows the second system down by 5 % (its
server is stopped for that share of the time) and counts how often that is found. `demo` counts how
often the comparison of `make demo` decides both cells. With `--keep FILE` each of them goes on
where it was ended.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Any, Final

from validation.outcomes import Outcome, Outcomes

from dbdyno import api
from dbdyno.cli import flow
from dbdyno.errors import LoadError
from dbdyno.experiment import trial as trials
from dbdyno.experiment.engine import spec
from dbdyno.judge.verdict import Word
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.plan.plan import Plan
from dbdyno.plan.spelling import duration_s
from dbdyno.report.formats.stdout import Output
from dbdyno.servers.base import Server

PLANTED: Final = 0.05
PERIOD_S: Final = 0.4
"""Pieces of 20 ms, which the client's own work cannot hide."""
LOGIN_S: Final = 0.3
"""Stopped for so much longer than warm-up and window, as logins come before them."""
WORDS: Final = {"ties": (Word.BETTER, Word.WORSE), "planted": (Word.WORSE,), "demo": (Word.WORSE,)}
"""Whose number is told: wrong words of equal systems, and what is true of the others."""
DECIDED: Final = (Word.BETTER, Word.WORSE, Word.EQUIVALENT)
DEMO: Final = ("mysql:5.7.22", "mysql:8.0.15")
ASKED: Final = ("what", "time", "system", "workload", "threads", "rows", "settings")
"""Options that runs must share to be counted together."""


def main() -> int:
    """Runs what was asked for and prints one line a run, then the sum."""
    options = _options()
    outcomes = Outcomes(options.keep, {name: getattr(options, name) for name in ASKED})
    for seed in range(len(outcomes.ended) + 1, options.runs + 1):
        # Each run has rows of its own; the cache keeps a quarter of the disk's room of them.
        with tempfile.TemporaryDirectory(prefix="dbdyno-power-") as folder:
            workspace = Path(options.workspace or folder)
            with _slower("second") if options.what == "planted" else nullcontext():
                outcome = _outcome(_measured(_plan(options, seed), workspace))
            outcomes.add(outcome)
            words = ", ".join(outcome["words"])
            print(
                f"{seed}: {words}; {outcome['blocks']} blocks in {outcome['seconds']} s", flush=True
            )
    print(_words(options, outcomes.ended))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("ties", "planted", "demo"))
    parser.add_argument("--runs", type=int, default=6, help="with those that were kept")
    parser.add_argument("--time", type=duration_s, default=120.0, help="of each run, such as 2m")
    parser.add_argument("--system", default="mysql:8.0.15")
    parser.add_argument("--workload", default="oltp_read_write", help="one or more: A,B")
    parser.add_argument("--threads", default="1,8")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--workspace", help="where runs are kept; nowhere unless given")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="outcomes, a line each; goes on")
    return parser.parse_args()


def _outcome(run: api.Run) -> Outcome:
    """What a run found, and what it took."""
    return {
        "words": [verdict.word.value for verdict in run.judgement.verdicts],
        "intervals": [(verdict.low, verdict.high) for verdict in run.judgement.verdicts],
        "blocks": max(m.trial.block for m in run.trials) + 1,
        "repeated": sum(m.trial.repeat > 0 for m in run.trials),
        "seconds": round(_seconds(run)),
        "rates": [_rates(measured) for measured in run.trials if measured.events],
    }


def _rates(measured: Measurement) -> list[Any]:
    """A trial's cell, system and block, and its events of each second of the window."""
    trial = measured.trial
    return [trial.cell.key, trial.system, trial.block, *(i.events for i in measured.measured)]


def _words(options: argparse.Namespace, outcomes: Sequence[Outcome]) -> str:
    wanted = WORDS[options.what]
    found = sum(any(word in wanted for word in one["words"]) for one in outcomes)
    decided = sum(all(word in DECIDED for word in one["words"]) for one in outcomes)
    words = Counter(word for one in outcomes for word in one["words"])
    among = " or ".join(word.value for word in wanted)
    return (
        f"{among} in {found} of {len(outcomes)} runs, all cells decided in {decided};"
        f" words of all cells: {dict(words)}"
    )


def _plan(options: argparse.Namespace, seed: int) -> Plan:
    settings = dict(one.split("=", 1) for one in options.settings)
    references = DEMO if options.what == "demo" else (options.system, options.system)
    systems = [
        {"label": label, "reference": reference, "settings": settings}
        for label, reference in zip(("first", "second"), references, strict=True)
    ]
    return Plan.model_validate(
        {
            "systems": systems,
            "workloads": options.workload.split(","),
            "dataset": {"tables": 4, "rows": options.rows},
            "load": {"threads": options.threads.split(",")},
            "design": {"time_s": options.time},
            "seed": seed,
        }
    )


def _measured(plan: Plan, workspace: Path) -> api.Run:
    with redirect_stdout(io.StringIO()):
        try:
            flow.begin(plan, workspace, "validation.power", flow.ReportOptions(Output.PLAIN))
        except LoadError:  # a void run ends so, and its word counts like any other
            if any(trial.failure for trial in api.load("latest", workspace).trials):
                raise
    return api.load("latest", workspace)


def _seconds(run: api.Run) -> float:
    """From the first trial's beginning to the last one's end."""
    spans = [(at_s, at_s + m.load_s) for m in run.trials if (at_s := m.started_s) is not None]
    return max(end_s for _, end_s in spans) - min(begin_s for begin_s, _ in spans)


@contextmanager
def _slower(label: str) -> Iterator[None]:
    """That system's server is stopped for a share of the time, which the lab is not told."""

    def planted(plan: Plan, trial: Trial, server: Server) -> dict[str, Any]:
        asked = spec.run_spec(plan, trial, server)
        if trial.system == label:
            until_s = time.monotonic() + asked["warmup_s"] + asked["window_s"] + LOGIN_S
            threading.Thread(target=_stop_by_turns, args=(server.pid, until_s)).start()
        return asked

    before = trials.run_spec
    trials.run_spec = planted
    try:
        yield
    finally:
        trials.run_spec = before


def _stop_by_turns(pid: int, until_s: float) -> None:
    """Stops a process for a share of each period, at a moment drawn anew, as long as it lives."""
    at_s = time.monotonic()
    with suppress(ProcessLookupError):
        while at_s < until_s:
            time.sleep(max(0.0, at_s + random.uniform(0, PERIOD_S / 2) - time.monotonic()))
            os.kill(pid, signal.SIGSTOP)
            try:
                time.sleep(PLANTED * PERIOD_S)
            finally:
                os.kill(pid, signal.SIGCONT)
            at_s += PERIOD_S
            time.sleep(max(0.0, at_s - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
