"""From a plan to a told verdict, in a world without servers."""

import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_of

from dbdyno import __main__, api
from dbdyno.cli import flow, machines
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.machines import Machines, machines_of
from dbdyno.errors import Interrupted, LoadError, StoreError, UsageError
from dbdyno.experiment import certify
from dbdyno.experiment.context import Makers
from dbdyno.language.catalogues import Language
from dbdyno.measurement.certificate import CertificateFacts, KnownAnswer
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.plan import DesignPlan, TrialPlan
from dbdyno.report.formats.stdout import Output
from dbdyno.store.resolved import resolved_run
from dbdyno.store.store import Store
from support import making
from support.fakes import SideBySide
from support.stored_run import store_trials

PLAIN, JSON, MARKDOWN = (ReportOptions(output) for output in Output)


@pytest.fixture
def workspace(tmp_path, world):
    return tmp_path / "dbdyno-runs"


def begin(workspace, plan=None, options=PLAIN):
    plan = plan or making.plan(blocks=3)
    return flow.begin(plan, workspace, "dbdyno compare a b", options, machines.HERE)


def until_decided(blocks):
    return making.plan(blocks=blocks, design={"stop": "decided"})


def timed():
    design = DesignPlan.model_validate({"time_s": 300})
    return making.plan(design=design, trial=TrialPlan())


def runs(workspace):
    with Store.open(workspace) as store:
        return [resolved_run(store, run) for run in store.runs()]


def blocks_begun(workspace):
    with Store.open(workspace) as store:
        return store.blocks_begun(store.run_ids()[0])


def done(workspace, **asked):
    with Store.open(workspace) as store:
        return len(store.done(store.run_ids()[0], **asked))


def test_time_is_added_to_a_run_and_its_intervals_grow_for_it(workspace, capsys):
    begin(workspace, timed())
    (run,) = runs(workspace)
    chosen = run.plan.design.chosen
    assert blocks_begun(workspace) == 3 < chosen.blocks  # −30 % is decided by then
    four_blocks_s = 4 * chosen.block_s + 1
    flow.resume("latest", workspace, PLAIN, time_s=four_blocks_s)
    (run,) = runs(workspace)
    wider = {"blocks": 7, "additions": 1, "all_blocks": True}
    assert run.plan.design.chosen == chosen.model_copy(update=wider)
    assert blocks_begun(workspace) == 7, "all that was added is wanted"
    assert run.finished_at is not None
    assert "7 blocks" in capsys.readouterr().out
    flow.resume("latest", workspace, PLAIN, time_s=1.0)
    (run,) = runs(workspace)
    assert (run.plan.design.blocks, run.plan.design.chosen.additions) == (8, 2)


def test_a_run_tells_its_answer_after_each_block_from_the_third(workspace, capsys):
    begin(workspace, making.plan(blocks=5))
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("after ")]
    assert {line.partition(":")[0] for line in told} == {"after 3 blocks", "after 4 blocks"}
    assert all("Compared with mysql:5.7.22, mysql:8.0.15" in line for line in told)


def test_time_is_added_on_each_of_the_machines_that_there_are(workspace, monkeypatch):
    begin(workspace, timed())
    (run,) = runs(workspace)
    three = Machines(Makers(hosts=SideBySide(3)), "auto")
    monkeypatch.setattr(flow, "machines_of", lambda plan, address: nullcontext(three))
    time_s = 4 * run.plan.design.chosen.block_s + 1
    flow.resume("latest", workspace, PLAIN, time_s=time_s, fleet="auto")
    (run,) = runs(workspace)
    assert run.plan.design.blocks == 3 + 3 * 4


def test_no_time_adds_more_blocks_than_a_run_can_have(workspace, monkeypatch):
    monkeypatch.setattr(flow, "BLOCKS_LOOKED_AHEAD", 5)
    begin(workspace, timed())
    flow.resume("latest", workspace, PLAIN, time_s=86_400.0)
    (run,) = runs(workspace)
    assert run.plan.design.blocks == 5
    with pytest.raises(UsageError, match="no block can be added"):
        flow.resume("latest", workspace, PLAIN, time_s=86_400.0)
    assert runs(workspace) == [run]


def test_all_that_was_added_to_a_decided_run_is_run_after_an_interrupt_too(workspace, world):
    run_id = begin(workspace, timed())
    (run,) = runs(workspace)
    world.at["run", 8] = KeyboardInterrupt()
    with pytest.raises(Interrupted):
        flow.resume(run_id, workspace, PLAIN, time_s=4 * run.plan.design.chosen.block_s + 1)
    assert blocks_begun(workspace) == 4
    flow.resume(run_id, workspace, PLAIN)
    assert blocks_begun(workspace) == 7


@pytest.mark.parametrize("time", ["", "soon", "-5m"])
def test_a_time_that_is_none_adds_nothing(workspace, capsys, time):
    begin(workspace, timed())
    (run,) = runs(workspace)
    status = __main__.main(["resume", "latest", f"--time={time}", "--workspace", str(workspace)])
    assert status == 2
    assert "is no time" in capsys.readouterr().err
    assert runs(workspace) == [run]


def test_nothing_is_added_to_a_run_of_blocks_or_one_that_is_not_complete(workspace, world):
    begin(workspace)
    with pytest.raises(UsageError, match="nothing can be added") as caught:
        flow.resume("latest", workspace, PLAIN, time_s=300.0)
    assert caught.value.hint == "begin a new run with --time, or with more blocks"
    world.at["run", 6 + 3] = KeyboardInterrupt()
    with pytest.raises(Interrupted):
        begin(workspace, timed())
    with pytest.raises(UsageError, match="is not complete"):
        flow.resume("latest", workspace, PLAIN, time_s=300.0)


def test_a_run_ends_with_the_verdict_and_where_the_report_is(workspace, capsys):
    begin(workspace)
    said = capsys.readouterr()
    (run,) = runs(workspace)
    assert "slower" in said.out
    assert said.out.splitlines()[-2].startswith("report: ")
    for line in said.out.splitlines()[-2:]:
        assert Path(line.removeprefix("report:").strip()).is_file()
    assert said.err.startswith(f"run {run.run_id}: 6 trials, about ")
    assert said.err.splitlines()[1].startswith("disk: about ")


def test_a_run_of_blocks_that_leaves_cells_open_says_what_to_try(workspace, capsys):
    begin(workspace)
    assert "some verdicts lack data" not in capsys.readouterr().err
    begin(workspace, making.plan(blocks=1))
    assert "some verdicts lack data; for narrower intervals begin" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ratios", "is_told"), [((0.94, 1.0, 1.06), True), ((0.3, 1.0, 3.3), False)]
)
def test_more_blocks_are_advised_only_if_they_would_decide(workspace, capsys, ratios, is_told):
    store_trials(workspace, making.plan(blocks=3), making.pairs(ratios))
    flow.resume("latest", workspace, PLAIN)
    said = capsys.readouterr()
    assert "not enough data" in said.out
    assert ("some verdicts lack data" in said.err) == is_told


@pytest.mark.parametrize(
    ("limits", "is_open"), [((940, 1000, 1060), True), ((900, 5000, 900), False)]
)
def test_a_highest_rate_is_open_unless_its_rates_are_to_blame(workspace, capsys, limits, is_open):
    store_trials(workspace, plan_of(3), trials_of({making.A: [1000.0] * 3, making.B: list(limits)}))
    flow.resume("latest", workspace, PLAIN)
    assert ("some verdicts lack data" in capsys.readouterr().err) == is_open


def test_a_run_on_a_machine_whose_generator_did_not_pass_is_told_at_once(
    workspace, monkeypatch, capsys
):
    wrong = (KnownAnswer(question="rate", statistic="p99", truth=10.0, seen=20.0),)
    facts = CertificateFacts(digest="d", made_at="2026-11-23T08:48:10+00:00", wrong=wrong)
    monkeypatch.setattr(certify, "known", lambda: facts)
    begin(workspace)
    assert "did not pass on this machine (2026-11-23T08:48:10+00:00)" in capsys.readouterr().err


def test_json_and_markdown_are_all_of_stdout_and_chinese_leaves_json_alone(workspace, capsys):
    begin(workspace, options=JSON)
    english = capsys.readouterr().out
    assert isinstance(json.loads(english), dict)
    flow.report("latest", workspace, MARKDOWN)
    assert "| Cell | System | Verdict |" in capsys.readouterr().out
    flow.report("latest", workspace, ReportOptions(Output.PLAIN, Language.ZH))
    out = capsys.readouterr().out
    assert "慢于" in out
    page = Path(out.splitlines()[-2].removeprefix("报告："))
    assert '<html lang="zh-Hans">' in page.read_text()
    assert "## 判定" in page.with_suffix(".md").read_text()
    assert "worse" in page.with_suffix(".json").read_text()
    flow.report("latest", workspace, ReportOptions(Output.JSON, Language.ZH))
    assert capsys.readouterr().out == english


def test_an_interrupted_run_is_told_and_says_how_to_go_on(workspace, world, capsys):
    world.at["run", 4] = KeyboardInterrupt()
    with pytest.raises(Interrupted) as caught:
        begin(workspace)
    (run,) = runs(workspace)
    assert caught.value.found == "4 of 6 trials are stored; nothing stored is measured again"
    resume = f"dbdyno resume {run.run_id} --workspace {workspace}"
    assert caught.value.hint == f"to go on: {resume}"
    assert "report: " in capsys.readouterr().out
    flow.resume(run.run_id, workspace, PLAIN)
    with Store.open(workspace) as store:
        assert len(store.measurements(run.run_id)) == 6


def test_a_report_that_is_interrupted_says_how_to_have_it_written(workspace, world, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(api.Run, "report", interrupt)
        with pytest.raises(Interrupted, match="the report was interrupted") as caught:
            begin(workspace)
        (whole,) = runs(workspace)
        command = f"dbdyno report {whole.run_id} --workspace {workspace}"
        assert caught.value.hint == f"to write it: {command}"
        world.at["run", 6 + 4] = KeyboardInterrupt()
        with pytest.raises(Interrupted, match="the run was interrupted") as caught:
            begin(workspace)
        assert (caught.value.hint or "").startswith("to go on: dbdyno resume ")
    flow.report(whole.run_id, workspace, PLAIN)
    assert (workspace / whole.run_id / "report.html").is_file()


def test_a_run_stopped_before_its_first_trial_has_no_report(workspace, world, capsys):
    world.at["run", 0] = KeyboardInterrupt()
    with pytest.raises(Interrupted, match="interrupted"):
        begin(workspace)
    assert capsys.readouterr().out == ""


def test_a_failure_keeps_its_own_words_and_its_exit_status(workspace, world, capsys):
    world.at["run", 2] = LoadError("the engine's child cannot be started")
    with pytest.raises(LoadError, match="cannot be started"):
        begin(workspace)
    assert "2 of 6 trials are stored; to go on: dbdyno resume" in capsys.readouterr().err


def test_a_run_with_failed_trials_is_told_and_is_a_failure(workspace, world, capsys):
    world.kills = {2}
    with pytest.raises(LoadError, match="1 of 6 trials failed") as caught:
        begin(workspace)
    assert "the server died" in caught.value.found
    assert "report: " in capsys.readouterr().out
    flow.resume("latest", workspace, PLAIN)
    assert done(workspace) == 6


def test_a_run_until_decided_ends_early_and_is_complete(workspace, capsys):
    begin(workspace, until_decided(12), JSON)
    said = capsys.readouterr()
    printed = json.loads(said.out)
    (run,) = runs(workspace)
    assert said.err.startswith(f"run {run.run_id}: 24 trials at most, about ")
    assert said.err.splitlines()[0].endswith("it ends when every verdict has enough data")
    assert (printed["run"]["complete"], printed["run"]["trials_planned"]) == (True, 6)


def test_a_run_until_decided_that_was_interrupted_is_not_complete(workspace, world, capsys):
    world.at["run", 5] = KeyboardInterrupt()
    with pytest.raises(Interrupted) as caught:
        begin(workspace, until_decided(12))
    assert caught.value.found == "5 of 24 trials are stored; nothing stored is measured again"
    said = capsys.readouterr()
    assert set(re.findall(r"(\d+) (?:planned )?trials", said.out + said.err)) == {"24"}
    flow.resume("latest", workspace, PLAIN)
    assert "incomplete" not in capsys.readouterr().out


def test_a_failed_trial_of_a_run_that_was_decided_is_owed_and_no_more(workspace, world):
    world.kills = {1}
    with pytest.raises(LoadError, match="1 of 8 trials failed"):
        begin(workspace, until_decided(12))
    flow.resume("latest", workspace, PLAIN)
    assert done(workspace) == 8


def test_a_cell_that_cannot_be_run_leaves_the_run_complete_and_is_retried_on_demand(
    workspace, world, capsys
):
    world.connections_max = {making.B: 4}
    with pytest.raises(LoadError, match="every cell is void") as caught:
        begin(workspace)
    assert "--retry" in str(caught.value.hint)
    assert "cell-cannot-run" in capsys.readouterr().out
    world.connections_max = {}
    with pytest.raises(LoadError, match="every cell is void"):
        flow.resume("latest", workspace, PLAIN)
    flow.resume("latest", workspace, PLAIN, retry=True)
    assert done(workspace, impossible=False) == 6


def test_an_empty_workspace_has_no_latest_run(workspace):
    with pytest.raises(StoreError, match="holds no run yet"):
        flow.report("latest", workspace, PLAIN)


def test_a_fleet_takes_an_address_and_a_plan_that_wants_it():
    plan = making.plan()
    with pytest.raises(UsageError, match="many machines") as error, machines_of(plan, "auto"):
        pass
    assert "found: --fleet auto alone" in str(error.value)
    wanted = plan.model_copy(update={"fleet": FleetPlan(generators=2)})
    with pytest.raises(UsageError, match="found: no --fleet"), machines_of(wanted, ""):
        pass


def test_the_command_that_resumes_a_run_of_a_fleet_names_its_cluster(workspace, world):
    world.at["run", 2] = KeyboardInterrupt()
    cluster = machines.HERE._replace(address="10.0.0.1:6379")
    with pytest.raises(Interrupted) as caught:
        flow.begin(making.plan(), workspace, "dbdyno compare a b", PLAIN, cluster)
    assert str(caught.value.hint).endswith(f"--workspace {workspace} --fleet 10.0.0.1:6379")


def test_ray_is_imported_only_for_a_fleet(tmp_path):
    words = ["compare", making.A, making.B, "--fleet", "auto", "--workspace", str(tmp_path)]
    code = f"""
import sys
import dbdyno.cli.measure
assert "ray" not in sys.modules
sys.modules["ray"] = None
from dbdyno.__main__ import main
sys.exit(main({words}))
"""
    command = [sys.executable, "-c", code]
    without = subprocess.run(command, capture_output=True, text=True, check=False)
    assert without.returncode == 2
    assert "pip install 'dbdyno[fleet]'" in without.stderr


def typed(workspace, *more):
    words = ["compare", making.A, making.B, "--blocks", "3", "--warmup", "2", "--window", "10"]
    return __main__.main([*words, "--workspace", str(workspace), *more])


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_nothing_that_a_run_leaves_can_be_changed_by_others_whatever_the_umask(workspace, umask):
    before = os.umask(umask)
    try:
        assert typed(workspace) == 0
    finally:
        os.umask(before)
    left = [workspace, *workspace.rglob("*")]
    assert {"dbdyno.sqlite", "live.jsonl", "log.txt", "report.html"} <= {one.name for one in left}
    assert [str(one) for one in left if one.stat().st_mode & 0o022] == []
    assert [str(one) for one in left if not one.stat().st_mode & 0o400] == []


def test_a_log_is_not_written_through_a_link(workspace, world, tmp_path):
    world.at["run", 2] = KeyboardInterrupt()
    with pytest.raises(Interrupted):
        begin(workspace)
    (run,) = runs(workspace)
    (tmp_path / "precious").write_text("kept")
    log = workspace / run.run_id / "log.txt"
    log.unlink()
    log.symlink_to(tmp_path / "precious")
    flow.resume("latest", workspace, PLAIN)
    assert (tmp_path / "precious").read_text() == "kept"


BUSY = (
    "found: client-bound in 6 of 6 trials, such as: "
    "the busiest thread of the load generator used 99 %"
)
WIDE = {making.A: (1000, 1000, 1000), making.B: (800, 1000, 1200)}


@pytest.mark.parametrize(
    ("wrong", "status", "with_exit_code", "said"),
    [
        ({}, 0, 0, ""),
        ({"cpu_share_max": 0.99}, 1, 4, BUSY),
        (
            {"tps": lambda system, n: WIDE[system][n % 3]},
            0,
            3,
            "verdicts without enough data: 1 of 1",
        ),
    ],
)
def test_a_run_without_a_verdict_is_no_success(
    workspace, world, capsys, wrong, status, with_exit_code, said
):
    for name, value in wrong.items():
        setattr(world, name, value)
    assert typed(workspace, "--threads", "8") == status
    assert typed(workspace, "--threads", "8", "--exit-code") == with_exit_code
    seen = capsys.readouterr()
    assert said in seen.err
    assert "decided after" not in seen.err


def test_a_run_until_decided_that_is_void_does_not_say_decided(workspace, world):
    world.cpu_share_max = 0.99
    with pytest.raises(LoadError, match="every cell is void") as caught:
        begin(workspace, until_decided(4))
    assert blocks_begun(workspace) == 3
    assert "client-bound in 6 of 6 trials" in str(caught.value.found)
    assert str(caught.value.hint).endswith("; then measure in a new run")
