"""Which lines are shown at which verbosity."""

import pytest

from dbdyno.sysbench.output import Output


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
