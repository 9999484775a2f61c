"""Causes of a difference: in a line, in the section "Why", in both languages, and in JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbdyno.judge.beside.causes import Causes, Factor, TimePart
from dbdyno.judge.beside.counters import Change
from dbdyno.language.catalogues import Language
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import TrialEvidence
from dbdyno.report.formats import html, markdown
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.formats.summary import Summary
from dbdyno.report.parts import Items, Section, Table, translated
from dbdyno.report.rows import attempts
from dbdyno.report.sections.conclusion import conclusion
from dbdyno.report.sections.why import why
from dbdyno.report.story import story_of
from dbdyno.report.tell.causes import likeliest
from support import making
from support.made_run import Run, run
from support.making import A, B

SLOWER = (0.5, 0.51, 0.49)
SYNCS = Change(
    name="syncs",
    is_cost=True,
    baseline=0.01,
    system=0.96,
    ratio=96.0,
    low=90.0,
    high=103.0,
    explains=1.0,
)
LOG_WAITS = Change(
    name="Innodb_log_waits",
    is_cost=False,
    baseline=0.5,
    system=2.0,
    ratio=4.0,
    low=3.5,
    high=4.6,
    explains=0.2,
)
WORK = Factor(name="work", ratio=0.476, low=0.45, high=0.5)
WAITING = Factor(name="waiting", ratio=1.01, low=0.97, high=1.05)


def part(name: str, baseline_us: float, system_us: float) -> TimePart:
    off = system_us - baseline_us
    return TimePart(
        name=name,
        baseline_us=baseline_us,
        system_us=system_us,
        difference_us=off,
        low_us=off - 10,
        high_us=off + 10,
        share=0.5,
    )


def causes(threads: int = 8, *, changes: tuple[Change, ...] = (), **others: object) -> Causes:
    whole = Causes(
        cell=Cell(workload="oltp_read_write", threads=threads),
        baseline=A,
        system=B,
        factors=(WORK, WAITING),
        time=(part("cpu", 100.0, 210.0), part("queued", 20.0, 30.0)),
        cpu=(part("user", 60.0, 150.0), part("kernel", 40.0, 60.0)),
        threads=(part("connection", 90.0, 180.0), part("ib_own_thread", 10.0, 30.0)),
        states=(part("executing", 100.0, 105.0), part("commit", 40.0, 180.0)),
        changes=changes,
        examined=120,
        is_different=True,
    )
    return whole.model_copy(update=others)


def told(*of: Causes, ratios: tuple[float, ...] = SLOWER) -> Run:
    """A run of cells with these ratios, and these causes of theirs."""
    levels = tuple(dict.fromkeys(one.cell.threads for one in of)) or (8,)
    trials = [one for threads in levels for one in making.pairs(ratios, threads=threads)]
    made = run(making.plan(threads=levels, blocks=len(ratios)), trials)
    return replace(made, judgement=made.judgement.model_copy(update={"causes": of}))


def lines_of(*of: Causes) -> list[str]:
    return [str(line) for line in likeliest(told(*of).judgement)]


def test_a_counter_that_explains_the_whole_is_the_line() -> None:
    assert lines_of(causes(changes=(SYNCS, LOG_WAITS))) == [
        f"Why: {B} syncs files 96 times as often per transaction (0.960 against 0.0100 syncs); "
        "this can explain up to the whole difference."
    ]


def test_a_counter_that_explains_a_part_says_how_large_a_part() -> None:
    (line,) = lines_of(causes(changes=(SYNCS.model_copy(update={"explains": 0.604}),)))
    assert line.endswith("; this can explain at most 60 % of the difference.")


def test_cpu_names_the_threads_that_use_most_more_of_it() -> None:
    cpu = {"name": "server_cpu_us", "baseline": 442.0, "system": 1091.0, "ratio": 2.47}
    used = SYNCS.model_copy(update=cpu)
    threads = (
        part("connection", 346.0, 400.0).model_copy(update={"share": 0.083}),
        part("unnamed", 95.0, 692.0).model_copy(update={"share": 0.917}),
    )

    def line_of(*of_cells: tuple[TimePart, ...]) -> str:
        (line,) = lines_of(
            *(
                causes(level, changes=(used,)).model_copy(update={"threads": groups})
                for level, groups in zip((1, 8), of_cells, strict=False)
            )
        )
        return line

    assert "442 µs), 92 % of the difference in background threads; " in line_of(threads)
    assert "per transaction, 92 % of the difference in background threads; " in line_of(
        threads, threads
    )
    unsure = tuple(one.model_copy(update={"low_us": -1.0}) for one in threads)
    logs = tuple(one.model_copy(update={"name": f"ib_log_{one.name}"}) for one in threads)
    for others in (unsure, logs):
        assert "of the difference in" not in line_of(threads, others)


def test_cpu_leads_to_the_functions_that_use_it() -> None:
    cpu = {"name": "server_cpu_us", "baseline": 422.0, "system": 848.0, "ratio": 2.01}
    (line,) = lines_of(causes(changes=(SYNCS.model_copy(update=cpu),)))
    assert line == (
        f"Why: {B} uses 2.0 times the CPU per transaction (848 against 422 µs); "
        "`dbdyno explain RUN` shows in which functions."
    )


def test_the_subject_is_the_system_with_more_and_a_count_of_none_has_no_factor() -> None:
    fewer = {"baseline": 0.96, "system": 0.01, "ratio": 0.0104}
    (line,) = lines_of(causes(changes=(SYNCS.model_copy(update=fewer),)))
    assert line.startswith(f"Why: {A} syncs files 96 times as often")
    nothing = {"baseline": 0.0, "system": 0.96, "ratio": None, "low": None, "high": None}
    (line,) = lines_of(causes(changes=(SYNCS.model_copy(update=nothing),)))
    assert line.startswith(f"Why: {B} alone has syncs of data and log files (0.960 against 0 ")
    nothing |= {"baseline": 0.96, "system": 0.0}
    (line,) = lines_of(causes(changes=(SYNCS.model_copy(update=nothing),)))
    assert line.startswith(f"Why: {A} alone has syncs of data and log files (0.960 against 0 ")
    own = LOG_WAITS.model_copy(update={"explains": 0.6})
    (line,) = lines_of(causes(changes=(own,)))
    assert line.startswith(f"Why: {B} has 4.0 times the Innodb_log_waits per transaction (2.00 ")


def test_without_a_counter_that_explains_it_the_largest_factor_is_the_line() -> None:
    (line,) = lines_of(causes(changes=(LOG_WAITS,)))
    assert line.startswith(
        f"Why: {B} uses 2.1 times the CPU per transaction; `dbdyno explain RUN` "
    )
    waits = Factor(name="waiting", ratio=1.5, low=1.4, high=1.6)
    (line,) = lines_of(causes(factors=(waits,)))
    assert line.startswith(f"Why: {A} waits longer for locks, disks or the network; no counter ")
    taken = Factor(name="taken", ratio=0.5, low=0.4, high=0.6)
    (line,) = lines_of(causes(factors=(taken,)))
    assert line.startswith(f"Why: {B} lost CPU to other processes; measure again")


def test_cells_with_the_same_cause_share_a_line() -> None:
    more = WORK.model_copy(update={"ratio": 0.4})
    assert lines_of(causes(8), causes(16, factors=(more,)))[0].startswith(
        f"Why: {B} uses 2.1 to 2.5 times the CPU per transaction; "
    )
    common, other = lines_of(causes(8), causes(16), causes(32, changes=(SYNCS,)))
    assert common.startswith(f"Why, in 2 cells: {B} uses 2.1 times the CPU per transaction; ")
    assert other.startswith(f"Why, in oltp_read_write, 32 threads: {B} syncs files 96 times")


def test_nothing_is_said_without_a_difference() -> None:
    made = told(causes(changes=(SYNCS,), is_different=False), ratios=(0.7, 1.5, 1.0))
    assert likeliest(made.judgement) == []
    assert why(made.plan, made.measurements, made.judgement).parts == ()
    flat = causes(factors=(WORK.model_copy(update={"ratio": 1.001}),))
    assert lines_of(flat) == []


def section(made: Run) -> Section:
    return why(made.plan, made.measurements, made.judgement)


def test_the_section_has_the_factors_and_the_tables_of_each_cell() -> None:
    _, cell = section(told(causes(changes=(SYNCS, LOG_WAITS)))).parts
    assert isinstance(cell, Section)
    assert cell.heading == f"oltp_read_write, 8 threads: {B} against {A}"
    items, time, cpu, threads, states, changes = cell.parts
    assert isinstance(items, Items)
    assert items.items[1:] == (
        f"{B} uses 2.1 times the CPU per transaction: by itself this changes throughput by "
        "−52.4 % [−55.0, −50.0].",
        "Waiting for locks, disks and network: no certain effect on throughput "
        "(+1.0 % [−3.0, +5.0]).",
    )
    parts = (time, cpu, threads, states, changes)
    tables = [table for table in parts if isinstance(table, Table)]
    assert [len(table.rows) for table in tables] == [2, 2, 2, 2, 2]
    assert not any(table.folded for table in tables)
    assert tables[0].rows[0] == ("CPU", "100.0", "210.0", "+110.0 [+100.0, +120.0]", "50 %")
    assert [row[0] for row in tables[2].rows] == ["connection threads", "ib_own_thread"]
    assert [row[0] for row in tables[3].rows] == ["committing", "executing (CPU, pages, latches)"]
    assert tables[4].rows == (
        (
            "syncs of data and log files, syncs",
            "0.0100",
            "0.960",
            "× 96.0 [90.0, 103]",
            "100 %",
        ),
        ("Innodb_log_waits", "0.500", "2.00", "× 4.00 [3.50, 4.60]", "20 %"),
    )


def test_many_cells_fold_their_tables_and_no_counter_is_said() -> None:
    _, *cells = section(told(*(causes(threads) for threads in (1, 2, 4, 8, 16)))).parts
    assert len(cells) == 5
    for cell in cells:
        assert isinstance(cell, Section)
        assert {part.folded for part in cell.parts if isinstance(part, Table)} == {True}
        assert getattr(cell.parts[-1], "text", "").startswith("Of 120 counters, none surely ")


OPTIMIZER = "index_merge=on,mrr={},batched_key_access=off"
UNLIKE = {
    A: {"innodb_flush_neighbors": "1", "optimizer_switch": OPTIMIZER.format("on"), "lock": "a"},
    B: {"innodb_flush_neighbors": "0", "optimizer_switch": OPTIMIZER.format("off"), "lock": "b"},
}
WAYS = {
    A: {"deletes": "range PRIMARY", "point_selects": "const PRIMARY", "sum_ranges": "range k"},
    B: {"deletes": "ALL no index", "point_selects": "ALL no index", "sum_ranges": "range k"},
}


def unlike(*, plans: bool, workload: str = "oltp_read_write") -> Run:
    trials = [
        making.changed(
            one,
            server=one.server.model_copy(
                update={"settings": {**one.server.settings, **UNLIKE[one.trial.system]}}
            ),
            evidence=TrialEvidence(query_plans=WAYS[one.trial.system] if plans else {}),
        )
        for one in making.pairs(SLOWER, workload=workload)
    ]
    made = run(making.plan(workloads=(workload,), blocks=3), trials)
    return replace(made, judgement=made.judgement.model_copy(update={"causes": ()}))


def test_query_plans_and_settings_that_can_matter_are_shown() -> None:
    plans, settings, _ = section(unlike(plans=True)).parts
    assert isinstance(plans, Table)
    assert isinstance(settings, Table)
    assert plans.rows == (
        ("point_selects", "const PRIMARY", "ALL no index"),
        ("deletes", "range PRIMARY", "ALL no index"),
    )
    assert settings.rows == (
        ("optimizer_switch", "mrr=on", "mrr=off"),
        ("innodb_flush_neighbors", "1", "0"),
    )


@pytest.mark.parametrize(
    ("workload", "rows"),
    [("oltp_read_write", ["innodb_flush_neighbors"]), ("oltp_read_only", [])],
)
def test_settings_of_writes_matter_for_loads_that_write(workload: str, rows: list[str]) -> None:
    parts = section(unlike(plans=False, workload=workload)).parts
    tables = [part for part in parts if isinstance(part, Table)]
    assert [row[0] for table in tables for row in table.rows] == rows


def test_a_long_value_is_cut() -> None:
    made = unlike(plans=True)
    long = [
        making.changed(one, evidence=TrialEvidence(query_plans={"deletes": one.trial.system * 20}))
        for one in made.measurements
    ]
    plans, *_ = why(made.plan, long, made.judgement).parts
    assert isinstance(plans, Table)
    assert [len(cell) for cell in plans.rows[0][1:]] == [81, 81]
    assert plans.rows[0][1].endswith("…")


@pytest.mark.parametrize(
    ("language", "words"),
    [
        (Language.EN, ("Why: ", "Time of a transaction, µs", "Can explain at most")),
        (Language.ZH, ("原因：", "一个事务的时间，µs", "最多可以解释")),
    ],
)
def test_page_and_stdout_have_the_causes_in_both_languages(
    language: Language, words: tuple[str, ...]
) -> None:
    made = told(causes(changes=(SYNCS, LOG_WAITS)))
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    assert [one.heading for one in story.sections].count("Why") == 1
    chinese = translated(story, language)
    for page in (markdown.render(chinese, language), html.render(chinese, [], language=language)):
        assert all(word in page for word in words)
    summary = Summary(made.plan, made.judgement, made.facts)
    for output in (Output.PLAIN, Output.MARKDOWN):
        shown = render(summary, output, language)
        assert shown.count(words[0]) == 1
        assert "CPU per transaction × " not in shown


def test_the_first_screen_has_one_line_of_causes() -> None:
    made = told(causes(8), causes(16, changes=(SYNCS,)))
    tried = attempts(made.measurements, made.judgement)
    lines = conclusion(made.plan, made.judgement, made.facts, tried)
    assert sum(line.startswith("Why") for line in lines) == 1


def test_json_has_all_causes() -> None:
    made = told(causes(changes=(SYNCS,)))
    read = json.loads(render(Summary(made.plan, made.judgement, made.facts), Output.JSON))
    back = tuple(Causes.model_validate(one) for one in read["causes"])
    assert back == made.judgement.causes
