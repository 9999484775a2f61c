"""How a command ended; the words for each failure are in test_failure."""

import pytest

from dbdyno.sysbench.ending import Outcome, result, status


def test_a_result_is_handed_on():
    assert result(Outcome("{}", None, None), None, "run") == "{}"


def test_what_is_nobody_s_fault_but_ours_is_raised_as_it_is():
    with pytest.raises(KeyError, match="ours"):
        result(Outcome(None, KeyError("ours"), None), None, "run")


def test_a_signal_is_in_the_status():
    assert status(Outcome("{}", None, None)) == 0
    assert status(Outcome("{}", None, 15)) == 143
