"""The gate in CI: the action, and what docs show of GitHub and GitLab, name what exists."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML

from dbdyno.cli.app import loaded
from support.source import ROOT

ACTION = "action.yml"
PAGE = ROOT / "docs" / "how-to" / "gate.md"


def parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def action() -> Any:
    return parsed((ROOT / ACTION).read_text())


def snippets() -> list[Any]:
    """The pieces of YAML on the page of the gate: a workflow, then a job of GitLab."""
    pieces = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [parsed(piece) for piece in pieces]


def scripts() -> Iterator[str]:
    """Every shell script of the action and of GitLab's job."""
    yield from (step["run"] for step in action()["runs"]["steps"] if "run" in step)
    _, gitlab = snippets()
    (job,) = gitlab.values()
    yield from (*job["script"], *job["after_script"])


def commands() -> list[list[str]]:
    """The words after `dbdyno` of its command lines in these scripts."""
    lines = [line.strip() for script in scripts() for line in script.splitlines()]
    called = [line for line in lines if re.match(r"(\S*/)?dbdyno ", line)]
    return [shlex.split(line)[1:] for line in called]


def test_every_command_line_is_one_that_dbdyno_takes() -> None:
    assert Counter(words[0] for words in commands()) == {"bundle": 2, "compare": 2, "gate": 3}
    for name, *words in commands():
        loaded(name).make_context(name, words)
    against = [words for words in commands() if "--against" in words]
    assert len(against) == 2


def test_every_script_is_one_that_bash_takes() -> None:
    for script in scripts():
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_inputs_reach_scripts_as_variables_and_each_is_used() -> None:
    steps = action()["runs"]["steps"]
    assert all("${{" not in step.get("run", "") for step in steps), "else they could be commands"
    assert all(step["shell"] == "bash" for step in steps if "run" in step)
    used = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", (ROOT / ACTION).read_text()))
    assert used == action()["inputs"].keys()


def test_the_workflow_gives_the_action_inputs_that_it_has() -> None:
    workflow, _ = snippets()
    (job,) = workflow["jobs"].values()
    (step,) = (step for step in job["steps"] if "with" in step)
    required = {name for name, one in action()["inputs"].items() if one.get("required")}
    assert required <= step["with"].keys() <= action()["inputs"].keys()
    words = shlex.split(re.sub(r"\$\{\{[^}]*\}\}", "here", step["with"]["compare"]))
    loaded("compare").make_context("compare", words)
