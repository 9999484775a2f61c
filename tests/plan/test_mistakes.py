"""How single mistakes are told; the whole of them is golden text in test_plan_file."""

import pytest

from dbdyno.errors import UnknownSystemError
from dbdyno.plan.document import parse
from dbdyno.plan.mistakes import name_mistakes, nearest

WORKLOADS = ("oltp_read_write", "oltp_read_only")


def found(text, check=lambda reference: None):
    document = parse(text)

    return [str(mistake) for mistake in name_mistakes(document, check)]


def test_a_near_name_is_proposed_and_else_all_are_named():
    assert nearest("oltp_read_rite", WORKLOADS) == "; did you mean oltp_read_write?"
    assert nearest("oltp_rw", ("oltp_insert", *WORKLOADS)) == "; did you mean oltp_read_write?"
    assert nearest("qqq", WORKLOADS) == "; there are oltp_read_only, oltp_read_write"
    assert nearest("qqq", ()) == "; there are none"


def test_an_unknown_system_is_told_with_its_hint():
    def check(reference):
        raise UnknownSystemError(f"no {reference}", hint="try b")

    assert found("systems:\n  - a\n", check) == ["line 2: systems[0].reference: no a; try b"]


def test_a_reference_that_is_no_text_is_not_looked_up():
    def check(reference):
        raise AssertionError(reference)

    assert found("systems: [{label: a, reference: 5}, {label: b, reference: ''}]", check) == []


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("tables", "the tables are the same for all workloads: say dataset.tables"),
        ("table_size", "the tables are the same for all workloads: say dataset.rows"),
        ("skiptrx", "is no option of a workload; did you mean skip_trx?"),
    ],
)
def test_options_that_cannot_be(option, message):
    text = f"workloads:\n  - name: oltp_read_only\n    options:\n      {option}: 1\n"
    assert found(text) == [f"line 4: workloads[0].options.{option}: {message}"]


def test_names_are_looked_up_whatever_else_is_wrong():
    assert found("workloads: [oltp_read, 7, {name: [x]}, {options: {a: 1}}]\nload: 5\n")[0] == (
        "line 1: workloads[0].name: there is no workload 'oltp_read'; did you mean oltp_read_only?"
    )


def test_two_workloads_of_one_name_may_have_labels():
    two = "workloads: [oltp_read_only, {name: oltp_read_only, label: other}]"
    assert found(two) == []
