"""What the steps share: the real makers unless told otherwise, and the count of trials."""

from dbdyno.experiment.context import Makers, RunContext
from dbdyno.experiment.engine.process import COMMAND
from dbdyno.experiment.forecast import Forecast
from dbdyno.experiment.order import trials_of
from dbdyno.servers import open
from support import making
from support.fakes import Progress


def test_the_makers_are_the_real_ones_unless_told_otherwise(monkeypatch):
    assert Makers().open_instance is open.instance
    assert Makers().command == COMMAND
    assert COMMAND[-2:] == ("-m", "dbdyno.experiment.engine.child")


def test_trials_are_counted_over_the_whole_plan(tmp_path):
    plan = making.plan(blocks=3)
    left = trials_of(plan, "r")[4:]
    context = RunContext(plan, None, tmp_path, Progress(), Makers(), Forecast(plan), left, total=6)
    assert context.number() == 5
    left.pop(0)
    assert context.number() == 6
