"""From a plan to a told verdict, with a bench that makes its measurements up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_of

from dbdyno import __main__, api
from dbdyno.cli import flow
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.machines import Machines, machines_of
from dbdyno.errors import Interrupted, LoadError, ServerError, StoreError, UsageError
from dbdyno.experiment import certify, runner
from dbdyno.experiment.context import Makers, Progress
from dbdyno.experiment.schedule import order
from dbdyno.experiment.watch import environment
from dbdyno.language.catalogues import Language
from dbdyno.measurement.certificate import CertificateFacts, KnownAnswer
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.plan import ChosenDesign, DesignPlan, Plan, TrialPlan
from dbdyno.report.formats.stdout import Output
from dbdyno.store.reading import StoredRun
from dbdyno.store.resolved import resolved_run
from dbdyno.store.store import Store
from support import making
from support.fakes import SideBySide

PLAIN, JSON, MARKDOWN = (ReportOptions(output) for output in Output)
Bench = Callable[[Plan, Store, StoredRun, Path, Progress], None]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "dbdyno-runs"


@pytest.fixture(autouse=True)
def _known_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "describe", lambda workspace: {"cpu": "made"})


def made_bench(
    stop_after: int | None = None,
    error: BaseException | None = None,
    failing: int | None = None,
    impossible: bool = False,
    is_void: bool = False,
    spread: tuple[float, ...] = (0.7,),
) -> Bench:
    """A bench whose trials are made.

    Args:
        stop_after, error: it ends with `error` after so many trials.
        failing: number of a trial that is stored as failed.
        impossible: whether that one cannot be run.
        is_void: whether the generator was at its limit in all of them.
        spread: the second system's share of the first one's throughput, block by block.
    """

    def run(
        store: Store,
        run: StoredRun,
        folder: Path,
        progress: Progress,
        makers: Makers,
        retry: bool = False,
        enough: runner.Enough | None = None,
    ) -> None:
        plan = run.plan
        if plan.design.time_s is not None and plan.design.chosen is None:
            store.choose(run.run_id, CHOSEN)
            plan = resolved_run(store, run).plan
        done = store.done(run.run_id, impossible=not retry)
        left = [t for t in order.trials_of(plan, run.run_id) if t.key not in done]
        block = 0
        for number, trial in enumerate(left):
            if trial.block > block and enough and enough(store.measurements(run.run_id), plan):
                break
            block = trial.block
            if number == stop_after and error is not None:
                raise error
            made = making.measurement(
                trial.system,
                threads=trial.cell.threads,
                tps=1000.0 * (1.0 if trial.system == making.A else spread[block % len(spread)])
                + trial.block,
                cpu_share_max=0.99 if is_void else 0.2,
            )
            failure = "the server died in the window" if number == failing else None
            kept = {"trial": trial, "failure": failure, "impossible": bool(failure) and impossible}
            store.append(made.model_copy(update=kept))
        store.finish(run.run_id)

    return run


CHOSEN = ChosenDesign(
    warmup_s=2, window_s=10, blocks=4, start_noise=0.02, second_noise=0.1, block_s=30
)
"""What a made run with a time chooses."""


def begin(workspace: Path, options: ReportOptions = PLAIN, blocks: int = 3) -> None:
    flow.begin(making.plan(blocks=blocks), workspace, "dbdyno compare a b", options)


def until_decided(blocks: int) -> Plan:
    plan = making.plan(blocks=blocks)
    return plan.model_copy(update={"design": plan.design.model_copy(update={"stop": "decided"})})


def runs(workspace: Path) -> list[StoredRun]:
    with Store.open(workspace) as store:
        return [resolved_run(store, run) for run in store.runs()]


def begin_timed(workspace: Path) -> str:
    design = DesignPlan.model_validate({"time_s": 300})
    plan = making.plan().model_copy(update={"design": design, "trial": TrialPlan()})
    return flow.begin(plan, workspace, "dbdyno compare a b", PLAIN)


def test_time_is_added_to_a_run_and_its_intervals_grow_for_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    run_id = begin_timed(workspace)
    with Store.open(workspace) as store:
        assert store.blocks_begun(run_id) == 3  # −30 % is decided by then
    flow.resume("latest", workspace, PLAIN, time_s=120.0)  # four blocks of 30 s, all of them wanted
    (run,) = runs(workspace)
    wider = {"blocks": 7, "additions": 1, "all_blocks": True}
    assert run.plan.design.chosen == CHOSEN.model_copy(update=wider)
    with Store.open(workspace) as store:
        assert store.blocks_begun(run_id) == 7
    assert run.finished_at is not None
    assert "7 blocks" in capsys.readouterr().out
    flow.resume("latest", workspace, PLAIN, time_s=1.0)
    (run,) = runs(workspace)
    assert (run.plan.design.blocks, run.plan.design.chosen.additions) == (8, 2)


def test_time_is_added_on_each_of_the_machines_that_there_are(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    begin_timed(workspace)
    three = Machines(Makers(hosts=SideBySide(3)), "auto")
    monkeypatch.setattr(flow, "machines_of", lambda plan, address: nullcontext(three))
    flow.resume(
        "latest", workspace, PLAIN, time_s=120.0, fleet="auto"
    )  # four blocks of 30 s on each
    (run,) = runs(workspace)
    assert run.plan.design.blocks == 3 + 3 * 4


def test_no_time_adds_more_blocks_than_a_run_can_have(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    monkeypatch.setattr(flow, "BLOCKS_LOOKED_AHEAD", 5)
    begin_timed(workspace)
    flow.resume("latest", workspace, PLAIN, time_s=86_400.0)
    (run,) = runs(workspace)
    assert run.plan.design.blocks == 5
    with pytest.raises(UsageError, match="no block can be added"):
        flow.resume("latest", workspace, PLAIN, time_s=86_400.0)
    assert runs(workspace) == [run]


def test_all_that_was_added_to_a_decided_run_is_run_after_an_interrupt_too(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    run_id = begin_timed(workspace)
    monkeypatch.setattr(runner, "run", made_bench(2, KeyboardInterrupt()))
    with pytest.raises(Interrupted):
        flow.resume(run_id, workspace, PLAIN, time_s=120.0)
    monkeypatch.setattr(runner, "run", made_bench())
    flow.resume(run_id, workspace, PLAIN)
    with Store.open(workspace) as store:
        assert store.blocks_begun(run_id) == 7


@pytest.mark.parametrize("time", ["", "soon", "-5m"])
def test_a_time_that_is_none_adds_nothing(
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    time: str,
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    begin_timed(workspace)
    (run,) = runs(workspace)
    status = __main__.main(["resume", "latest", f"--time={time}", "--workspace", str(workspace)])
    assert status == 2
    assert "is no time" in capsys.readouterr().err
    assert runs(workspace) == [run]


def test_nothing_is_added_to_a_run_of_blocks_or_one_that_is_not_complete(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    begin(workspace)
    with pytest.raises(UsageError, match="nothing can be added") as caught:
        flow.resume("latest", workspace, PLAIN, time_s=300.0)
    assert caught.value.hint == "begin a new run with --time, or with more blocks"
    monkeypatch.setattr(runner, "run", made_bench(stop_after=3, error=KeyboardInterrupt()))
    with pytest.raises(Interrupted):
        begin_timed(workspace)
    with pytest.raises(UsageError, match="is not complete"):
        flow.resume("latest", workspace, PLAIN, time_s=300.0)


def test_a_run_ends_with_the_verdict_and_where_the_report_is(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    begin(workspace)
    said = capsys.readouterr()
    (run,) = runs(workspace)
    assert "worse" in said.out
    assert said.out.splitlines()[-2].startswith("report: ")
    for line in said.out.splitlines()[-2:]:
        assert Path(line.removeprefix("report:").strip()).is_file()
    assert said.err.startswith(f"run {run.run_id}: 6 trials, about ")


def test_a_run_of_blocks_that_leaves_cells_open_says_what_to_try(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    begin(workspace)
    assert "some cells are open" not in capsys.readouterr().err
    begin(workspace, blocks=1)
    assert "some cells are open; for narrower intervals begin a run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limits", "is_open"), [((940, 1000, 1060), True), ((900, 5000, 900), False)]
)
def test_a_highest_rate_is_open_unless_its_rates_are_to_blame(
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    limits: tuple[float, ...],
    is_open: bool,
) -> None:
    def bench(store: Store, run: StoredRun, *_: object) -> None:
        for one in trials_of({making.A: [1000.0] * 3, making.B: list(limits)}):
            store.append(making.with_trial(one, run_id=run.run_id))
        store.finish(run.run_id)

    monkeypatch.setattr(runner, "run", bench)
    flow.begin(plan_of(3), workspace, "dbdyno compare a b", PLAIN)
    assert ("some cells are open" in capsys.readouterr().err) == is_open


def test_a_run_on_a_machine_whose_generator_did_not_pass_is_told_at_once(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = (KnownAnswer(question="rate", statistic="p99", truth=10.0, seen=20.0),)
    facts = CertificateFacts(digest="d", made_at="2026-11-23T08:48:10+00:00", wrong=wrong)
    monkeypatch.setattr(certify, "known", lambda: facts)
    monkeypatch.setattr(runner, "run", made_bench())
    begin(workspace)
    assert "did not pass on this machine (2026-11-23T08:48:10+00:00)" in capsys.readouterr().err


def test_json_and_markdown_are_all_of_stdout(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    begin(workspace, JSON)
    assert isinstance(json.loads(capsys.readouterr().out), dict)
    flow.report("latest", workspace, MARKDOWN)
    assert "| Cell | System | Verdict |" in capsys.readouterr().out


def test_a_stored_run_is_told_in_chinese_but_for_its_json(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    begin(workspace, JSON)
    english = capsys.readouterr().out
    flow.report("latest", workspace, ReportOptions(Output.PLAIN, Language.ZH))
    out = capsys.readouterr().out
    assert "更差" in out
    page = Path(out.splitlines()[-2].removeprefix("报告："))
    assert '<html lang="zh-Hans">' in page.read_text()
    assert "## 判定" in page.with_suffix(".md").read_text()
    assert "worse" in page.with_suffix(".json").read_text()
    flow.report("latest", workspace, ReportOptions(Output.JSON, Language.ZH))
    assert capsys.readouterr().out == english


def test_an_interrupted_run_is_told_and_says_how_to_go_on(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(4, KeyboardInterrupt()))
    with pytest.raises(Interrupted) as caught:
        begin(workspace)
    (run,) = runs(workspace)
    assert caught.value.found == "4 of 6 trials are stored; nothing stored is measured again"
    resume = f"dbdyno resume {run.run_id} --workspace {workspace}"
    assert caught.value.hint == f"to go on: {resume}"
    assert "report: " in capsys.readouterr().out
    monkeypatch.setattr(runner, "run", made_bench())
    flow.resume(run.run_id, workspace, PLAIN)
    with Store.open(workspace) as store:
        assert len(store.measurements(run.run_id)) == 6


def test_a_report_that_is_interrupted_says_how_to_have_it_written(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runner, "run", made_bench())
        patch.setattr(api.Run, "report", interrupt)
        with pytest.raises(Interrupted, match="the report was interrupted") as caught:
            begin(workspace)
        (whole,) = runs(workspace)
        command = f"dbdyno report {whole.run_id} --workspace {workspace}"
        assert caught.value.hint == f"to write it: {command}"
        patch.setattr(runner, "run", made_bench(4, KeyboardInterrupt()))
        with pytest.raises(Interrupted, match="the run was interrupted") as caught:
            begin(workspace)
        assert (caught.value.hint or "").startswith("to go on: dbdyno resume ")
    flow.report(whole.run_id, workspace, PLAIN)
    assert (workspace / whole.run_id / "report.html").is_file()


def test_a_run_stopped_before_its_first_trial_has_no_report(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(0, KeyboardInterrupt()))
    with pytest.raises(Interrupted, match="interrupted"):
        begin(workspace)
    assert capsys.readouterr().out == ""


def test_a_failure_keeps_its_own_words_and_its_exit_status(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(2, ServerError("mysql:8.0.15 did not start")))
    with pytest.raises(ServerError, match="did not start"):
        begin(workspace)
    assert "2 of 6 trials are stored; to go on: dbdyno resume" in capsys.readouterr().err


def test_a_run_with_failed_trials_is_told_and_is_a_failure(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(failing=2))
    with pytest.raises(LoadError, match="1 of 6 trials failed") as caught:
        begin(workspace)
    assert caught.value.found == "the server died in the window"
    assert "report: " in capsys.readouterr().out
    monkeypatch.setattr(runner, "run", made_bench())
    flow.resume("latest", workspace, PLAIN)
    assert len(runs(workspace)) == 1


def test_a_run_until_decided_ends_early_and_is_complete(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    flow.begin(until_decided(12), workspace, "dbdyno compare a b", JSON)
    said = capsys.readouterr()
    printed = json.loads(said.out)
    (run,) = runs(workspace)
    assert said.err.startswith(f"run {run.run_id}: 24 trials at most, about ")
    assert said.err.splitlines()[0].endswith("it ends when every cell is decided")
    assert (printed["run"]["complete"], printed["run"]["trials_planned"]) == (True, 6)


def test_a_run_until_decided_that_was_interrupted_is_not_complete(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(4, KeyboardInterrupt()))
    with pytest.raises(Interrupted) as caught:
        flow.begin(until_decided(12), workspace, "dbdyno compare a b", PLAIN)
    assert caught.value.found == "4 of 24 trials are stored; nothing stored is measured again"
    assert "incomplete (24 trials planned)" in capsys.readouterr().out
    monkeypatch.setattr(runner, "run", made_bench())
    flow.resume("latest", workspace, PLAIN)
    assert "incomplete" not in capsys.readouterr().out


def test_a_failed_trial_of_a_run_that_was_decided_is_owed_and_no_more(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(failing=1))
    with pytest.raises(LoadError, match="1 of 8 trials failed"):
        flow.begin(until_decided(12), workspace, "dbdyno compare a b", PLAIN)
    monkeypatch.setattr(runner, "run", made_bench())
    flow.resume("latest", workspace, PLAIN)
    with Store.open(workspace) as store:
        (run,) = store.runs()
        assert len(store.done(run.run_id)) == 8


def test_a_cell_that_cannot_be_run_leaves_the_run_complete_and_is_retried_on_demand(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(failing=2, impossible=True))
    with pytest.raises(LoadError, match="every cell is void") as caught:
        begin(workspace)
    assert "--retry" in str(caught.value.hint)
    assert "cell-cannot-run" in capsys.readouterr().out
    monkeypatch.setattr(runner, "run", made_bench())
    with pytest.raises(LoadError, match="every cell is void"):
        flow.resume("latest", workspace, PLAIN)
    flow.resume("latest", workspace, PLAIN, retry=True)
    with Store.open(workspace) as store:
        (run,) = store.runs()
        assert len(store.done(run.run_id, impossible=False)) == 6


def test_an_empty_workspace_has_no_latest_run(workspace: Path) -> None:
    with pytest.raises(StoreError, match="holds no run yet"):
        flow.report("latest", workspace, PLAIN)


def test_a_fleet_takes_an_address_and_a_plan_that_wants_it() -> None:
    plan = making.plan()
    with pytest.raises(UsageError, match="many machines") as error, machines_of(plan, "auto"):
        pass
    assert "found: --fleet auto alone" in str(error.value)
    wanted = plan.model_copy(update={"fleet": FleetPlan(generators=2)})
    with pytest.raises(UsageError, match="found: no --fleet"), machines_of(wanted, ""):
        pass


def test_the_command_that_resumes_a_run_of_a_fleet_names_its_cluster(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(2, KeyboardInterrupt()))
    cluster = Machines(address="10.0.0.1:6379")
    with pytest.raises(Interrupted) as caught:
        flow.begin(making.plan(), workspace, "dbdyno compare a b", PLAIN, cluster)
    assert str(caught.value.hint).endswith(f"--workspace {workspace} --fleet 10.0.0.1:6379")


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_ray_is_imported_only_for_a_fleet(tmp_path: Path) -> None:
    code = "import sys, dbdyno.cli.measure; print('ray' in sys.modules)"
    assert python(code).stdout == "False\n"
    words = ["compare", making.A, making.B, "--fleet", "auto", "--workspace", str(tmp_path)]
    begin = f"from dbdyno.__main__ import main; sys.exit(main({words}))"
    without = python(f"import sys; sys.modules['ray'] = None; {begin}")
    assert without.returncode == 2
    assert "pip install 'dbdyno[fleet]'" in without.stderr


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o777])
def test_nothing_that_a_run_leaves_can_be_changed_by_others_whatever_the_umask(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    monkeypatch.setattr(runner, "run", made_bench())
    before = os.umask(umask)
    try:
        words = ["compare", making.A, making.B, "--blocks", "3", "--workspace", str(workspace)]
        assert __main__.main(words) == 0
    finally:
        os.umask(before)
    left = [workspace, *workspace.rglob("*")]
    assert {"dbdyno.sqlite", "live.jsonl", "log.txt", "report.html"} <= {one.name for one in left}
    assert [str(one) for one in left if one.stat().st_mode & 0o022] == []
    assert [str(one) for one in left if not one.stat().st_mode & 0o400] == []


def test_a_log_is_not_written_through_a_link(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(2, KeyboardInterrupt()))
    with pytest.raises(Interrupted):
        begin(workspace)
    (run,) = runs(workspace)
    (tmp_path / "precious").write_text("kept")
    log = workspace / run.run_id / "log.txt"
    log.unlink()
    log.symlink_to(tmp_path / "precious")
    monkeypatch.setattr(runner, "run", made_bench())
    flow.resume("latest", workspace, PLAIN)
    assert (tmp_path / "precious").read_text() == "kept"


BUSY = "found: client-bound in 6 of 6 trials, such as: the busiest generator thread used 99 %"


@pytest.mark.parametrize(
    ("bench", "status", "with_exit_code", "said"),
    [
        (made_bench(), 0, 0, ""),
        (made_bench(is_void=True), 1, 4, BUSY),
        (made_bench(spread=(0.8, 1.0, 1.2)), 0, 3, "undecided verdicts: 1 of 1"),
    ],
)
def test_a_run_without_a_verdict_is_no_success(
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bench: Bench,
    status: int,
    with_exit_code: int,
    said: str,
) -> None:
    monkeypatch.setattr(runner, "run", bench)
    typed = ["compare", making.A, making.B, "--blocks", "3", "--threads", "8"]
    typed += ["--workspace", str(workspace)]
    assert __main__.main(typed) == status
    assert __main__.main([*typed, "--exit-code"]) == with_exit_code
    seen = capsys.readouterr()
    assert said in seen.err
    assert "decided after" not in seen.err


def test_a_run_until_decided_that_is_void_does_not_say_decided(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run", made_bench(is_void=True))
    with pytest.raises(LoadError, match="every cell is void") as caught:
        flow.begin(until_decided(4), workspace, "dbdyno compare a b", PLAIN)
    with Store.open(workspace) as store:
        assert store.blocks_begun(runs(workspace)[0].run_id) == 3
    assert "client-bound in 6 of 6 trials" in str(caught.value.found)
    assert str(caught.value.hint).endswith("; then measure in a new run")
