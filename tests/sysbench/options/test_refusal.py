"""Where a refusal is printed, and in which shape."""

from dbdyno.sysbench.options.values import Refusal, argument_error, fatal


def test_fatal_lines_are_for_stdout():
    refusal = fatal("first", "second")
    assert refusal.lines == ("FATAL: first", "FATAL: second")
    assert (refusal.to_stderr, refusal.exit_status) == (False, 1)


def test_argument_errors_are_for_stderr_without_prefix():
    refusal = argument_error("invalid option: --x", "  hint: y")
    assert refusal.lines == ("invalid option: --x", "  hint: y")
    assert refusal.to_stderr


def test_a_signal_s_status_is_kept():
    assert Refusal("stopped", exit_status=130).exit_status == 130
    assert str(Refusal("a", "b")) == "a\nb"
