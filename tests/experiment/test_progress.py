"""The watcher of a run is told all of it, in the order in which it happens."""

import inspect

from tests.experiment.test_runner import small, start, store  # noqa: F401

from dbdyno.experiment.context import Progress
from support import fakes
from support.fakes import World


class Words(fakes.Progress):
    def __init__(self):
        super().__init__()
        self.words = []

    def stage(self, text):
        self.words.append(text)

    def begin(self, trial, number, total, seconds_left):
        self.words.append(f"begin {trial.system} {number}/{total}")

    def interval(self, trial, interval, seconds_left):
        self.words.append(f"{interval['phase']} {interval['at_s']:.0f}")

    def end(self, trial, measurement, seconds_left):
        self.words.append("end")


def test_one_arm_is_told_step_by_step(store):  # noqa: F811
    told = Words()
    start(store, small(systems=("mysql:5.7.22",), threads=(8,), blocks=1), World(), told)
    assert told.words == [
        "mysql:5.7.22: starting the server to load the dataset",
        "mysql:5.7.22: loading table 1, 25 %",
        "mysql:5.7.22: loading table 2, 50 %",
        "mysql:5.7.22: loading table 3, 75 %",
        "mysql:5.7.22: loading table 4, 100 %",
        "mysql:5.7.22: taking a digest of the rows",
        "mysql:5.7.22: copying the dataset aside",
        "begin mysql:5.7.22 1/1",
        "oltp_read_write: how fast the load is without a server",
        "mysql:5.7.22: restoring the dataset",
        "mysql:5.7.22: starting the server",
        "warmup 1",
        "measured 2",
        "measured 3",
        "measured 4",
        "mysql:5.7.22: counting the rows that are left",
        "end",
        "mysql:5.7.22: stopping the server",
    ]


def test_fakes_owe_what_the_protocol_says():
    for name in ("stage", "begin", "interval", "end"):
        owed = inspect.signature(getattr(Progress, name)).parameters
        assert list(inspect.signature(getattr(fakes.Progress, name)).parameters) == list(owed)
