"""Listens to a run: says that the load is on, then intervals and checkpoints as they end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from dbdyno.sysbench.general import General
from dbdyno.sysbench.output import Output
from dbdyno.sysbench.report import Ending, report
from dbdyno.sysbench.report_interval import Stretch, interval_line, moment, queue_line
from dbdyno.sysbench.totals import Totals

Listener = Callable[[Totals, Stretch], None]
"""Takes each whole interval, as totals and as what a line says of it."""

_WHOLE = 0.99
"""An interval cut short by the end has no line in sysbench."""


class Teller:
    """Takes the engine's news: an empty interval at the load's begin, then each as it ends.

    Args:
        rows: takes each interval in full; needs a run that tells records.

    Attributes:
        begun_at: when the load began, s since 1970; None before.
        checkpoint_s: the last checkpoint that was reported, s of the measured time; 0 for none.
    """

    def __init__(self, general: General, output: Output, rows: Listener | None = None) -> None:
        self._general = general
        self._telling = general.telling
        self._output = output
        self._rows = rows
        self._interval: list[Mapping[str, Any]] = []
        self._since_checkpoint: list[Mapping[str, Any]] = []
        limit_s = general.time_s or float("inf")
        self._checkpoints_s = [at_s for at_s in self._telling.checkpoints_s if at_s < limit_s]
        self.begun_at: float | None = None
        self.checkpoint_s = 0

    def started(self) -> None:
        """Says once that all connections are open."""
        if self.begun_at is not None:
            return
        self.begun_at = time.time()
        self._output.notice("Threads started!\n")
        if self._general.warmup_s:
            self._output.notice(f"Warming up for {self._general.warmup_s} seconds...\n")

    def tell(self, text: str) -> None:
        """Takes one interval as JSON."""
        self.started()
        news = json.loads(text)
        if news["phase"] != "measured" or news["seconds"] < self._telling.step_s() * _WHOLE:
            return
        at_s = news["at_s"] - self._general.warmup_s
        if "record" in news:
            self._interval.append(news["record"])
            if self._checkpoints_s:
                self._since_checkpoint.append(news["record"])
        self._tell_interval(news, at_s)
        self._tell_checkpoint(at_s)

    def _tell_interval(self, news: Mapping[str, Any], at_s: float) -> None:
        percentiles = self._telling.percentiles
        if not self._interval:
            if self._telling.report_interval_s:
                self._print(Stretch.of_news(news, at_s, percentiles))
            return
        if len(self._interval) < round(self._telling.interval_s() / self._telling.step_s()):
            return
        totals = Totals.of(self._interval)
        self._interval = []
        stretch = Stretch.of_totals(totals, news["connections"], at_s, percentiles)
        if self._telling.report_interval_s:
            self._print(stretch)
        if self._rows is not None:
            self._rows(totals, stretch)

    def _print(self, stretch: Stretch) -> None:
        interval_s = self._telling.report_interval_s
        self._output.line(interval_line(stretch, self._telling.percentiles, interval_s))
        if self._general.pace.rate_per_s:
            self._output.line(queue_line(stretch, interval_s))

    def _tell_checkpoint(self, at_s: float) -> None:
        if not self._checkpoints_s or at_s < self._checkpoints_s[0] - self._telling.step_s() / 2:
            return
        self.checkpoint_s = self._checkpoints_s.pop(0)
        totals = Totals.of(self._since_checkpoint)
        self._since_checkpoint = []
        self._output.line(f"{moment(self.checkpoint_s, 1)} Checkpoint report:")
        self._output.notice(report(totals, self._general, Ending(at_s, None)))
