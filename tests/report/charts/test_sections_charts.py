from __future__ import annotations

from dbdyno.report.charts import charts
from dbdyno.report.charts.charts import figures
from dbdyno.report.parts import Figure, Paragraph, Section, Table
from support import making
from support.made_run import Run, run


def drawn(made: Run) -> tuple[Figure, ...]:
    return figures(made.plan, made.measurements, made.judgement)


def names(section: Section) -> list[str]:
    return [part.name for part in section.parts if isinstance(part, Figure)]


def test_all_verdicts_stand_at_a_glance_in_pictures_and_words(made: Run) -> None:
    section = charts.matrix(made.plan, made.measurements, made.judgement, drawn(made))
    assert names(section) == ["verdicts", "ratios"]
    assert isinstance(section.parts[-1], Table)


def test_one_verdict_has_no_matrix() -> None:
    one = run(making.plan(), making.pairs((0.77, 0.76, 0.78)))
    section = charts.matrix(one.plan, one.measurements, one.judgement, drawn(one))
    assert section.parts == ()


def test_charts_over_load_and_over_time_have_their_sections(made: Run) -> None:
    assert names(charts.over_load(drawn(made))) == [
        "throughput",
        "latency",
        "latency-throughput",
    ]
    assert names(charts.over_time(drawn(made))) == ["seconds-1"]
    (said,) = charts.over_load(()).parts
    assert isinstance(said, Paragraph)
    assert charts.over_time(()).parts == ()


def test_charts_stand_behind_what_introduces_them(made: Run) -> None:
    head, table = Paragraph("head"), Table("t", (), ())
    section = charts.with_charts(Section("S", (head, table)), drawn(made), "costs")
    assert [type(part) for part in section.parts] == [Paragraph, Figure, Table]
    section = charts.with_charts(Section("S", (table,)), drawn(made), "cpu", "disk")
    assert [type(part) for part in section.parts] == [Figure, Figure, Table]
