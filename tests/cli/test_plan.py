"""What `plan show` says: golden text for a plan with everything in it, then each warning."""

import pytest

from dbdyno.cli import plan as plan_command
from dbdyno.cli.plan import in_budget, told
from dbdyno.experiment import forecast
from dbdyno.experiment.forecast import fitted
from dbdyno.plan import file
from dbdyno.plan.plan import Plan, SystemPlan, known_workloads
from dbdyno.plan.settings import SettingsPlan
from support import making
from support.source import ROOT

GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture(autouse=True)
def _known_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts are others' business: an hour for each block and 4.2 GB."""

    def hours(plan: Plan) -> float:
        return 3600.0 * plan.design.blocks

    monkeypatch.setattr(forecast, "seconds_expected", hours)
    monkeypatch.setattr(plan_command, "bytes_expected", lambda plan: 4_200_000_000)


def read(scale: str = "") -> Plan:
    path = GOLDEN / "plan_show.yaml"
    return file.read(path, known_workloads(), lambda reference: None, scale)


@pytest.mark.parametrize("scale", ["", "small"])
def test_a_plan_in_words(scale):
    golden = GOLDEN / f"plan_show{scale and '_'}{scale}.txt"
    assert told(read(scale)) == golden.read_text()


def with_design(plan, **values):
    return plan.model_copy(update={"design": plan.design.model_copy(update=values)})


def test_a_budget_says_how_many_blocks_fit_and_what_they_see():
    plan = with_design(making.plan(blocks=8, window_s=60), budget_s=5 * 3600 + 60)
    fit = in_budget(plan, fitted(plan))
    assert fit == (
        "budget 5 h 01 min: 5 of 8 blocks fit; differences of 4.1 % are seen where starts of one"
        " system differ by 1.5 %"
    )
    assert "trials       10 = 5 blocks × 2 systems × cells" in told(plan).splitlines()


def test_a_budget_too_short_for_a_verdict_says_so():
    plan = with_design(making.plan(blocks=8), budget_s=2.5 * 3600)
    fit = in_budget(plan, fitted(plan))
    assert fit == "budget 2 h 30 min: 2 of 8 blocks fit, too few for a verdict (3 are the least)"
    assert "2 blocks: no verdict, 3 blocks are the least" in told(plan)


def test_a_plan_without_a_budget_says_nothing_of_one():
    assert in_budget(making.plan(), making.plan()) is None
    assert "budget" not in told(making.plan())


def test_servers_that_others_run_are_not_started():
    elsewhere = SystemPlan(label="cluster", reference="mysql://me@127.0.0.1:4000/db")
    both = (*making.plan(blocks=3).systems[:1], elsewhere)
    shown = told(making.plan(blocks=3).model_copy(update={"systems": both})).splitlines()
    assert "starts       3 of a server" in shown
    assert "             none of cluster, which others run" in shown
    alone = told(making.plan(blocks=3).model_copy(update={"systems": (elsewhere,)})).splitlines()
    assert "starts       none of cluster, which others run" in alone


def test_a_plan_of_one_setting_that_a_system_cannot_have_says_the_reason_alone():
    only = making.plan().model_copy(update={"settings": SettingsPlan(thread_pool=("on",))})
    said = told(only).split("cannot run, and will be void with this reason\n")[1].split("\n\n")[0]
    assert said.splitlines() == [
        f"  {label}: {label.replace(':', ' ')} has no thread pool" for label in (making.A, making.B)
    ]


def test_a_setting_that_a_system_cannot_have_is_told_with_its_reason():
    shown = told(read())
    said = shown.split("cannot run, and will be void with this reason\n")[1].split("\n\n")[0]
    assert said.splitlines() == [
        "  mysql:8.0.15: mysql 8.0.15 has no thread pool",
        "    thread_pool on",
        "  tuned: mysql 8.0.31 has no thread pool",
        "    thread_pool on",
    ]
