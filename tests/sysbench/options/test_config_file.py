"""Files of options: what sysbench reads is read, and what it loses is heeded and told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.sysbench.options import command_line
from dbdyno.sysbench.options.command_line import Setting
from dbdyno.sysbench.options.values import Refusal


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "sysbench.cnf"
        path.write_text(text)
        return str(path)

    return write


def read(path):
    return [(it.name, it.values) for it in command_line.read_config_file(path)]


def test_lines_and_what_is_none(written):
    text = "[client]\n# threads=7\nthreads=4\nno equals sign\nmysql_db=shop # the shop\n"
    assert read(written(text)) == [("threads", ("4",)), ("mysql-db", ("shop",))]


def test_values_are_parts_between_blanks_and_commas(written):
    text = "a=1, 2 ,3\nb='x, y' \"#z\"\nc=3#2\nd=\ne=1\r\n"
    assert read(written(text)) == [
        ("a", ("1", "2", "3")),
        ("b", ("x, y", "#z")),
        ("c", ("3#2",)),
        ("d", ()),
        ("e", ("1",)),
    ]


def test_blanks_around_a_name_are_cut_off_and_remembered(written):
    path = written("threads = 4\ntime=1")
    assert command_line.read_config_file(path) == [
        Setting("threads", ("4",), f"{path}, line 1", True),
        Setting("time", ("1",), f"{path}, line 2", False),
    ]


def test_a_quotation_without_end_is_refused(written):
    with pytest.raises(Refusal, match=r"unexpected EOL on line 2 "):
        command_line.read_config_file(written("time=1\nmysql-user='abc"))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for path, why in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(Refusal, match=why):
            command_line.read_config_file(str(path))
    with pytest.raises(Refusal, match="it takes a file's name"):
        command_line.read_config_file(None)


PARTS = st.text(st.characters(codec="utf-8", exclude_characters="'\"", categories=["L", "N", "P"]))


@given(st.lists(PARTS.filter(bool)), st.sampled_from(["'", '"']), st.sampled_from([" ", ",", ", "]))
def test_quoted_parts_come_back_as_they_were(parts, quote, between):
    value = between.join(f"{quote}{part}{quote}" for part in parts)
    setting = command_line._setting(f"name={value} # comment", "f, line 1")
    assert setting == Setting("name", tuple(parts), "f, line 1", False)


@given(st.text(max_size=60))
def test_any_line_is_read_or_refused(line):
    told = ""
    try:
        setting = command_line._setting(line, "f, line 1")
    except Refusal as refusal:
        told, setting = refusal.lines[0], None
    assert told in ("", "unexpected EOL on line 1 (f, line 1)")
    assert setting is None or "=" in line


def test_the_place_on_the_command_line_decides(sysbench, engine, written):
    path = written("threads=4\nmysql-host=a,b\nmysql-password='p w'\n")
    assert sysbench(f"--threads=2 --config-file={path} oltp_read_only run") == 0
    assert engine.specs[-1]["connections"] == 4
    assert [it["host"] for it in engine.specs[-1]["endpoint"]] == ["a", "b"]
    assert engine.specs[-1]["password"] == "p w"
    assert sysbench(f"--config-file={path} --threads=2 oltp_read_only run") == 0
    assert engine.specs[-1]["connections"] == 2
    assert sysbench.stderr == ""


def test_what_sysbench_loses_is_heeded_with_a_note(sysbench, engine, written):
    path = written("threads = 4\ntables=7\nnonsense=1\n")
    assert sysbench(f"--config-file={path} oltp_read_only run") == 0
    spec = engine.specs[-1]
    assert (spec["connections"], spec["workload"]["options"]["tables"]) == (4, 7)
    assert sysbench.stderr.splitlines() == [
        f"note: {path}, line 1: sysbench does not see threads for the blanks around it",
        f"note: {path}, line 2: tables is heeded; sysbench heeds no test's own options",
        f"note: {path}, line 3: no option is called nonsense; it is ignored",
    ]
    assert sysbench(f"--config-file={path} oltp_read_only --tables=2 run") == 0
    assert engine.specs[-1]["workload"]["options"]["tables"] == 2
    assert "tables" not in sysbench.stderr


def test_a_test_may_be_named_in_a_file(sysbench, engine, written):
    path = written("test=oltp_read_only\n")
    assert sysbench(f"--config-file={path} run") == 0
    assert engine.specs[-1]["workload"]["name"] == "oltp_read_only"


REFUSED = {
    "mysql-dry-run=maybe": "invalid option: --mysql-dry-run=maybe (PATH, line 1)",
    "mysql-password=a,b": "PATH, line 1: mysql-password has several values: put them in quotes",
    "threads=1K": "Invalid value for the 'threads' option: '1K'",
    "config-file=x": "PATH, line 1: a file cannot name another one",
}


@pytest.mark.parametrize("line", REFUSED)
def test_lines_that_cannot_be_meant_are_refused(sysbench, engine, written, line):
    path = written(line)
    assert sysbench(f"--config-file={path} oltp_read_only run") == 1
    assert sysbench.stderr.splitlines()[0] == REFUSED[line].replace("PATH", path)
    assert engine.specs == []
