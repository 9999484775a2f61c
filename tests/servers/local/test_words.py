import pytest

from dbdyno.servers.local import server


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "server"
    folder.mkdir()
    return folder


def test_no_log_is_said_plainly(work):
    assert server.last_lines(work) == ""
    assert server.error_lines(work) == "it left no log"


def test_errors_come_before_chatter(work):
    (work / "err.log").write_text("[Note] a\n[ERROR] unknown variable 'x=1'\n\n[Note] b\n")
    assert server.error_lines(work) == "[ERROR] unknown variable 'x=1'"
    assert server.last_lines(work, 1) == "[Note] b"


def test_without_errors_the_last_lines_of_both_logs_are_given(work):
    server.printed_log(work).write_text("printed\n")
    (work / "err.log").write_text("logged\n")
    assert server.error_lines(work) == "printed\nlogged"


def test_a_huge_log_is_read_from_its_end(work):
    (work / "err.log").write_bytes(b"x" * 1_000_000 + b"\nlast\n")
    assert server.last_lines(work, 1) == "last"
