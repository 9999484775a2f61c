"""sysbench's grammar: what is an option, what is a word, which of several wins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.sysbench.options import command_line
from dbdyno.sysbench.options.values import Refusal


def test_options_and_words_in_any_order():
    line = command_line.read_command_line(
        ["--threads=4", "oltp_read_write", "--table_size=5", "run", "--x"]
    )
    assert (line.test, line.command) == ("oltp_read_write", "run")
    assert line.typed == {"threads": "4", "table-size": "5", "x": None}


def test_the_last_of_several_wins_however_it_is_spelled():
    line = command_line.read_command_line(["--table-size=1", "--table_size=2"])
    assert line.typed == {"table-size": "2"}
    assert line.spelled == {"table-size": "--table_size=2"}


def test_a_value_may_have_anything_in_it():
    assert (
        command_line.read_command_line(["--mysql-password=a=b c--"]).typed["mysql-password"]
        == "a=b c--"
    )


def test_one_dash_makes_a_word():
    assert command_line.read_command_line(["-h"]).test == "-h"


def test_nothing_is_abbreviated():
    line = command_line.read_command_line(["oltp_read_only", "--thread=4", "run"])
    with pytest.raises(
        Refusal, match=r"invalid option: --thread=4\n  hint: did you mean --threads"
    ):
        command_line.workload_values(line, "oltp_read_only", line.typed)


@given(st.lists(st.text(max_size=10), max_size=6))
def test_any_arguments_are_sorted_or_refused(arguments):
    words = [argument for argument in arguments if not argument.startswith("--")]
    if len(words) > 2:
        with pytest.raises(Refusal, match="Unrecognized command line argument: "):
            command_line.read_command_line(arguments)
    else:
        line = command_line.read_command_line(arguments)
        assert [word for word in (line.test, line.command) if word is not None] == words
