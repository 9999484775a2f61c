from __future__ import annotations

from dbdyno.report.formats.stdout import padded, printable, table_lines
from dbdyno.report.parts import Column, Table


def test_columns_stand_side_by_side_and_numbers_to_the_right() -> None:
    columns = (Column("Name"), Column("TPS", numeric=True), Column("State"))
    rows = (("mysql", "1\u202f234", "sound"), ("数据库", "7", ""))
    assert list(table_lines(Table("caption", columns, rows))) == [
        "Name      TPS  State",
        "mysql   1 234  sound",
        "数据库      7",
    ]


def test_nothing_steers_the_terminal() -> None:
    assert printable("a\x1b[31mb\u202fc\n") == "a [31mb c "


def test_a_cell_is_padded_by_the_columns_it_takes() -> None:
    assert padded("p95", 5) == "p95  "
    assert padded("p95", 5, right=True) == "  p95"
    assert padded("请求", 5, right=True) == " 请求"
    assert padded("too long", 3) == "too long"
