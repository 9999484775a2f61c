"""What the steps share: the real makers unless told otherwise, and the count of trials."""

from tests import making
from tests.bench.fakes import Progress

from dbdyno import servers
from dbdyno.bench import trials_of
from dbdyno.bench.engine_process import COMMAND
from dbdyno.bench.forecast import Forecast
from dbdyno.bench.lab import Lab, Makers


def test_the_makers_are_the_real_ones_unless_told_otherwise(monkeypatch):
    assert Makers().open_instance is servers.instance
    assert Makers().command == COMMAND
    assert COMMAND[-2:] == ("-m", "dbdyno.worker")


def test_trials_are_counted_over_the_whole_plan(tmp_path):
    plan = making.plan(blocks=3)
    left = trials_of(plan, "r")[4:]
    lab = Lab(plan, None, tmp_path, Progress(), Makers(), Forecast(plan), left, total=6)
    assert lab.number() == 5
    left.pop(0)
    assert lab.number() == 6
