"""A gate's outcome as a JUnit file, which every CI system shows beside its other tests.

A comparison is a test. Slower is a failure; undecided and void are failures of a strict gate and
skipped tests of another, which CI systems show too: never passed ones. A gate that holds nothing
has one more test that says so, as a file without tests would pass.
"""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree

from dbdyno.judge.uses.gate import Gate, Outcome, Passage
from dbdyno.measurement.facts import RunFacts

NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Signs that no XML file may hold, not even escaped."""


def junit(gate: Gate, run: RunFacts) -> bytes:
    """The file."""
    suite = ElementTree.Element("testsuite", name=_clean(f"dbdyno gate {run.run_id}"))
    suite.set("timestamp", _clean(run.created_at[:19]))
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(gate, run).items():
        ElementTree.SubElement(properties, "property", name=name, value=_clean(value))
    for passage in gate.passages:
        _case(suite, passage)
    if not gate.decided:
        case = ElementTree.SubElement(suite, "testcase", classname="dbdyno", name="decided")
        ElementTree.SubElement(case, "failure", message=_clean(gate.text), type="undecided")
    counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
    for name, path in counts.items():
        suite.set(name, str(len(suite.findall(path))))
    suite.set("errors", "0")
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    ElementTree.indent(whole)
    made: bytes = ElementTree.tostring(whole, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _case(suite: ElementTree.Element, passage: Passage) -> None:
    verdict = passage.verdict
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_clean(f"{verdict.system} against {verdict.baseline}"),
        name=_clean(verdict.cell.title),
    )
    text, outcome = _clean(passage.text), passage.outcome
    if not passage.holds:
        made = ElementTree.SubElement(case, "failure", message=text, type=outcome.value)
        made.text = "\n".join(map(_clean, (passage.text, *verdict.reasons)))
    elif outcome is not Outcome.HELD:
        ElementTree.SubElement(case, "skipped", message=text)
    ElementTree.SubElement(case, "system-out").text = text


def _properties(gate: Gate, run: RunFacts) -> dict[str, str]:
    return {
        "run": run.run_id,
        "plan_hash": run.plan_hash,
        "dbdyno": run.dbdyno_version,
        "slower_max": f"{gate.slower_max:g}",
        "strict": str(gate.strict).lower(),
        "complete": str(run.complete).lower(),
    }


def _clean(text: str) -> str:
    return NOT_IN_XML.sub("\ufffd", text)
