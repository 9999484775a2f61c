"""Which lines are shown at which verbosity."""

import pytest

from dbdyno.sysbench.console import Output


@pytest.mark.parametrize(
    ("verbosity", "shown"),
    [
        (0, "told\n"),
        (2, "told\nWARNING: doubt\n"),
        (3, "told\nWARNING: doubt\nline\nreport\n\n"),
    ],
)
def test_verbosity_decides(capsys, verbosity, shown):
    output = Output(verbosity)
    output.told("told")
    output.warning("doubt")
    output.line("line")
    output.notice("report\n")
    assert capsys.readouterr().out == shown


def test_where_stdout_is_not_for_texts_only_what_is_wrong_is_said_on_stderr(capsys):
    output = Output(5, is_text=False)
    output.notice("report\n")
    output.info("info")
    output.debug("debug")
    output.warning("doubt")
    output.fatal("end")
    output.note("silence")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "WARNING: doubt\nFATAL: end\nnote: silence\n"


def test_levels_above_reports_are_for_who_asks(capsys):
    output = Output(4)
    output.info("info")
    output.debug("debug")
    assert capsys.readouterr().out == "info\n"
