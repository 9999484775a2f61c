"""The file is what CI systems read: counted right, escaped, and without a test that passes by
saying nothing."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from dbdyno.judge.uses.gate import gate
from dbdyno.report.formats.gate import junit
from support.made_run import Run


def suite(run: Run, slower_max: float = 0.03, strict: bool = False) -> ElementTree.Element:
    made = gate(run.judgement.verdicts, slower_max, strict=strict)
    found = ElementTree.fromstring(junit(made, run.facts)).find("testsuite")
    assert found is not None
    return found


def counts(found: ElementTree.Element) -> tuple[str | None, ...]:
    return tuple(found.get(name) for name in ("tests", "failures", "skipped", "errors"))


def test_a_slower_system_is_a_failure(made: Run) -> None:
    found = suite(made)
    assert counts(found) == ("2", "1", "0", "0")
    (failed,) = [case for case in found.iter("testcase") if case.find("failure") is not None]
    assert failed.get("name") == "oltp_read_write, 8 threads"
    assert failed.get("classname") == "mysql:8.0.15 against mysql:5.7.22"
    failure = failed.find("failure")
    assert failure is not None
    assert "−22.8 %" in (failure.get("message") or "")


@pytest.mark.parametrize(("strict", "counted"), [(False, ("2", "0", "1")), (True, ("2", "1", "0"))])
def test_undecided_is_never_a_passed_test(made: Run, strict: bool, counted: tuple[str]) -> None:
    assert counts(suite(made, 0.228, strict))[:3] == counted


def test_a_gate_that_decides_nothing_has_a_test_that_fails(empty: Run) -> None:
    assert counts(suite(empty))[1] == "1"


def test_signs_that_no_xml_may_hold_are_replaced(made: Run) -> None:
    strange = made.facts.model_copy(update={"run_id": 'a\x00b\x1b<&>"\ud800é'})
    found = ElementTree.fromstring(junit(gate(made.judgement.verdicts, 0.03), strange))
    text = found[0].get("name")
    assert text == 'dbdyno gate a\ufffdb\ufffd<&>"\ufffdé'
