"""All cells together as a person reads it."""

from __future__ import annotations

import numpy as np

from dbdyno.language.words import Said
from dbdyno.report.parts import Items, Paragraph, Section, Table
from dbdyno.report.sections.cells import grid
from support import making
from support.made_run import Run, run


def ladder(ratios: dict[int, float], blocks: int = 5) -> Run:
    random = np.random.default_rng(5)
    trials = [
        trial
        for threads, ratio in ratios.items()
        for trial in making.pairs(
            tuple(ratio * float(np.exp(random.normal(0, 0.002))) for _ in range(blocks)),
            threads=threads,
            tps=1000.0 - threads,
        )
    ]
    return run(making.plan(threads=tuple(ratios), blocks=blocks), trials)


def tables(section: Section) -> list[Table]:
    return [part for part in section.parts if isinstance(part, Table)]


def test_counts_ratio_and_selected_cells_of_each_system() -> None:
    section = grid(ladder({1: 1.2, 8: 1.0, 64: 0.8}).judgement)
    counts, together, _ = tables(section)
    assert counts.rows == ((making.B, "1", "1", "1", "0", "0", "0"),)
    (row,) = together.rows
    assert row[:3] == (making.B, "3", "5")
    assert row[5].startswith("oltp_read_write, 1 thread: +")
    assert row[6].startswith("oltp_read_write, 64 threads: −")
    assert together.caption == f"All cells against {making.A}"
    assert "never of higher averages" in next(
        part.text for part in section.parts if isinstance(part, Paragraph)
    )


def test_a_crossover_says_between_which_levels_and_none_that_it_is_not_proven() -> None:
    (crossed,) = [
        part.items
        for part in grid(ladder({1: 1.2, 8: 1.0, 64: 0.8}).judgement).parts
        if isinstance(part, Items)
    ]
    assert crossed == (
        f"oltp_read_write: {making.B} and {making.A} cross between 1 and 64 threads: {making.B} is "
        "better at 1 and worse at 64.",
    )
    (none,) = [
        part.items
        for part in grid(ladder({1: 1.2, 8: 1.1}).judgement).parts
        if isinstance(part, Items)
    ]
    assert "no proven crossover" in none[0]


def test_the_course_to_the_highest_level_is_told_of_every_system() -> None:
    fell = ladder({1: 1.0, 8: 1.0, 64: 0.8})
    course = tables(grid(fell.judgement))[-1]
    assert [row[:4] for row in course.rows] == [
        (making.A, "oltp_read_write", "8", "64"),
        (making.B, "oltp_read_write", "8", "64"),
    ]
    assert [row[5] for row in course.rows] == ["falls, beyond the margin"] * 2
    few = tables(grid(ladder({1: 1.0, 8: 1.0}, blocks=2).judgement))[-1]
    assert [row[5] for row in few.rows] == ["too few blocks"] * 2


def test_one_cell_or_one_system_has_no_such_section(empty: Run) -> None:
    assert grid(ladder({8: 1.0}).judgement).parts == ()
    alone = run(making.plan(systems=(making.A,)), [making.measurement(block=b) for b in range(3)])
    assert grid(alone.judgement).parts == ()
    assert grid(empty.judgement).parts == ()


def test_every_sentence_can_be_told_in_another_language() -> None:
    section = grid(ladder({1: 1.2, 64: 0.8}).judgement)
    said = [part.text for part in section.parts if isinstance(part, Paragraph)]
    said += [item for part in section.parts if isinstance(part, Items) for item in part.items]
    said += [column.heading for table in tables(section) for column in table.columns]
    said += [table.caption for table in tables(section)]
    assert all(isinstance(text, Said) for text in said)
