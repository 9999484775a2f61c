"""The docs name what exists: commands, options, targets, files, the plan file that is shown."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from tests import test_tidy
from typer.main import get_command

from dbdyno import __version__, _engine
from dbdyno.cli.app import DEMO, app
from dbdyno.judge import audit
from dbdyno.measurement.cost import COSTS
from dbdyno.plan.file import read
from dbdyno.report.tell.findings import FINDINGS
from dbdyno.report.tell.measured import cost_label
from dbdyno.servers import open
from dbdyno.servers.mysql import settings, versions
from dbdyno.sysbench.options.table import GLOBAL_TABLE, OWN, WITHOUT_DATABASE, by_name, of_test
from dbdyno.sysbench.options.values import canonical
from support.source import LAB, ROOT, named, with_suffix

PAGES = [
    page
    for page in with_suffix(".md")
    # A report that is kept holds SQL and other people's words.
    if "tests" not in page.relative_to(ROOT).parts and page.name != "report.md"
]
GROUPS = ("servers", "plan", "runs", "workload")
NAMED_PAGE = re.compile(r"\b(docs/[\w./-]+\.(?:md|ipynb)\b)(?:#([\w-]+))?")
COMMAND_LINE = re.compile(r"^(?:\.venv/bin/)?dbdyno(?:\s|$)")


def code(page: Path) -> list[str]:
    """Every line of code of a page, continued lines joined, and every inline piece."""
    text = page.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line.strip() for line in [*lines, *re.findall(r"`([^`]+)`", prose)]]


def dbdyno_lines(page: Path) -> list[list[str]]:
    """The words after `dbdyno` of every command line on a page; ends at a redirection."""
    lines = [line for line in code(page) if COMMAND_LINE.match(line)]
    words = [shlex.split(line.replace("…", "").split(">")[0], comments=True) for line in lines]
    return [line[1:] for line in words]


def options_of(*path: str) -> set[str]:
    """The options of a command; fails if there is no such command."""
    command = get_command(app)
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]
    return {opt for p in command.params for opt in (*p.opts, *p.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem != "CHANGELOG"], ids=named)
def test_every_command_line_can_be_typed(page: Path) -> None:
    for words in dbdyno_lines(page):
        if words[:1] == ["sysbench"]:
            _check_sysbench(words[1:])
            continue
        path = words[:2] if len(words) > 1 and words[0] in GROUPS else words[:1]
        typed = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert typed <= options_of(*[p for p in path if not p.startswith("--")]), words


def _check_sysbench(words: list[str]) -> None:
    # These have options of their own.
    is_script = any(word.endswith(".lua") or word in WITHOUT_DATABASE for word in words)
    for word in words:
        name = canonical(word.removeprefix("--").partition("=")[0])
        if word.startswith("--"):
            own = by_name(option for test in (*OWN, "oltp") for option in of_test(test))
            assert is_script or name in {*GLOBAL_TABLE, *own, "test"}, word
        elif not word.endswith(".lua"):
            commands = ("prepare", "run", "check", "cleanup", "help")
            assert word in {*_engine.workloads(), *WITHOUT_DATABASE, *commands}, word


def test_every_command_is_in_the_docs() -> None:
    seen = {" ".join(words[:2]) for page in PAGES for words in dbdyno_lines(page)}
    top = get_command(app).commands  # type: ignore[attr-defined]
    wanted = {name for name in top if name not in GROUPS}
    wanted |= {f"{group} {name}" for group in GROUPS for name in top[group].commands}
    assert [name for name in wanted if not any(line.startswith(name) for line in seen)] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_make_target_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    words = [line.split() for line in code(page)]
    assert {w[1] for w in words if w[:1] == ["make"] and len(w) > 1} <= targets


def anchors(page: Path) -> set[str]:
    """What `#…` may name on a page: its headings as GitHub writes them into links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.is_file(), target
        assert not anchor or anchor in anchors(linked), target


def test_every_page_and_anchor_that_is_named_in_the_code_exists() -> None:
    wrong = [
        (named(path), page, anchor)
        for path in with_suffix(".py", ".rs", ".yaml", ".po", ".toml")
        for page, anchor in NAMED_PAGE.findall(path.read_text())
        if not (ROOT / page).is_file() or (anchor and anchor not in anchors(ROOT / page))
    ]
    assert wrong == []


def test_every_page_is_in_the_index_with_what_it_answers() -> None:
    index = ROOT / "docs" / "README.md"
    rows = re.findall(r"^\| \[[^]]+\]\(([^)]+)\) \| [^|]+ \|$", index.read_text(), re.MULTILINE)
    pages = {page for page in with_suffix(".md", ".ipynb") if index.parent in page.parents}
    assert len(rows) == len(set(rows))
    assert {index.parent / row for row in rows} == pages - {index}


def test_every_example_is_short_and_in_the_index_and_its_plan_comes_with_dbdyno() -> None:
    index = ROOT / "examples" / "README.md"
    pages = {page for page in with_suffix(".md") if index.parent in page.parents} - {index}
    linked = {index.parent / path for path in re.findall(r"\]\(([^)]+\.md)\)", index.read_text())}
    assert pages
    assert pages <= linked
    assert [page for page in pages if page.read_text().count("\n") > 200] == []
    for page in pages:
        command, name, *_ = dbdyno_lines(page)[0]
        assert (command, (LAB / "plans" / f"{name}.yaml").is_file()) == ("run", True), page


def test_the_version_is_the_same_everywhere_and_in_the_changelog() -> None:
    cargo, project, lock = (
        tomllib.loads((ROOT / name).read_text())
        for name in ("Cargo.toml", "pyproject.toml", "Cargo.lock")
    )
    crates = [crate for crate in lock["package"] if crate["name"].startswith("dbdyno-")]
    versions = {crate["version"] for crate in crates}
    versions |= {cargo["workspace"]["package"]["version"], project["project"]["version"]}
    assert versions == {__version__, _engine.version()}
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", __version__]


def test_every_check_of_the_audit_gives_the_levels_that_are_told() -> None:
    checks = {check.__name__.replace("_", "-"): check for check in audit.CHECKS}
    assert set(FINDINGS) == set(checks)
    for name, check in checks.items():
        levels = [level for level in LEVELS if re.search(rf"\b{level}\b", check_words(check))]
        assert list(FINDINGS[name].levels) == levels, name


LEVELS = ("void", "doubtful", "note")


def check_words(check: object) -> str:
    """The first line of a check's docstring, in small letters: it names its levels."""
    return (check.__doc__ or "").split("\n")[0].lower()


def test_every_common_setting_of_a_server_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    told = set(re.findall(r"`(\w+)`", page))
    special = {name for f in versions.FAMILIES for name in (*f.redo, *f.common)}
    assert {*settings.COMMON, *settings.BINLOGGED, *special} <= told


def test_every_error_and_finding_with_advice_is_one_of_dbdynos() -> None:
    page = (ROOT / "docs" / "how-to" / "errors.md").read_text()
    errors, findings = (_first_column(page.partition(after)[2]) for after in AFTER)
    sources = [p for p in with_suffix(".py", ".sh") if "tests" not in p.relative_to(ROOT).parts]
    code = "".join(path.read_text() for path in sources)
    assert len(errors) > 10
    assert [message for message in errors if message not in code] == []
    checks = {check.__name__.replace("_", "-") for check in audit.CHECKS}
    assert findings
    assert set(findings) <= checks


AFTER = ("| message |", "| finding |")
"""The beginnings of the tables of that page."""


def _first_column(text: str) -> list[str]:
    """The pieces of code in the first column of a table, to its end."""
    rows = text.partition("\n\n")[0].splitlines()
    return [piece for row in rows for piece in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def test_every_cost_is_explained() -> None:
    page = (ROOT / "docs" / "reference" / "costs.md").read_text()
    explained = re.findall(r"^\| ([^|`]+) \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    assert explained == ["cost", "---", *(cost_label(cost) for cost in COSTS)]


def test_the_plan_file_that_is_shown_is_a_plan(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "plan-file.md").read_text()
    shown = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    file = tmp_path / "shown.yaml"
    file.write_text(shown[0])
    plan = read(file, open.check)
    assert [system.label for system in plan.systems] == ["mysql:5.7.22", "tuned"]
    assert plan.workload("short-ranges").options == {"range_size": 10}
    assert read(file, open.check, "small").dataset.rows == 10_000
    (about_it,) = [part for part in shown[1:] if part.startswith("published:")]
    file.write_text(f"{shown[0]}{about_it}")
    published = read(file, open.check).published
    assert published is not None
    assert [claim.of for claim in published.claims] == ["mysql:5.7.22", "tuned"]
    for part in (part for part in shown[1:] if part != about_it):
        file.write_text(f"systems: [mysql:8.0.15]\nworkloads: [oltp_read_only]\n{part}")
        assert read(file, open.check).settings != plan.settings


def test_the_first_run_is_the_demonstration() -> None:
    assert ["compare", *DEMO] in dbdyno_lines(ROOT / "docs" / "first-steps" / "first-run.md")


def test_every_ready_plan_is_a_plan() -> None:
    for file in with_suffix(".yaml"):
        if file.parent == LAB / "plans":
            assert read(file, open.check).systems


def test_each_promise_of_security_has_its_test() -> None:
    rows = [
        line.split("|")[-2]
        for line in (ROOT / "SECURITY.md").read_text().split("\n## Attacks")[0].splitlines()
        if line.startswith("| ") and not line.startswith(("| threat", "| ---"))
    ]
    assert len(rows) > 15
    for one in ",".join(rows).split(","):
        path, _, test = one.strip().partition("::")
        assert re.search(rf"\b(def|fn) {re.escape(test)}\(", (ROOT / path).read_text()), one


def test_the_architecture_stays_a_map() -> None:
    assert (ROOT / "ARCHITECTURE.md").read_text().count("\n") <= 150


def test_the_architecture_has_the_arrows_that_are_tested() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text().split("## Arrows")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", page, re.MULTILINE)
    shown = {room: set(cell.split(", ")) for room, cell in rows}
    assert shown.pop("cli") == {"everything below"}
    tested = {room: set(names.split()) for room, names in test_tidy.ARROWS.items()}
    assert shown == {room: tested[room] for room in shown}
    assert tested.keys() - shown.keys() == {"cli", "interpreter", "shipped", "_engine"}


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem != "CHANGELOG"], ids=named)
def test_every_source_file_that_a_page_names_exists(page: Path) -> None:
    homes = (ROOT, LAB, ROOT / "engine" / "core" / "src")
    paths = re.findall(r"[\w.-]+/[\w./-]*\w\.(?:py|rs|po|sh)\b", page.read_text())
    assert [path for path in paths if not any((home / path).is_file() for home in homes)] == []


def test_the_page_of_findings_has_the_rule_and_the_levels_of_each_check() -> None:
    page = (ROOT / "docs" / "reference" / "findings.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \| ([^|]+) \|", page, re.MULTILINE)
    wanted = {(check, ", ".join(one.levels), one.rule) for check, one in FINDINGS.items()}
    assert set(rows) == wanted
    assert len(rows) == len(wanted)


def test_the_readme_gives_the_command_that_ci_runs() -> None:
    ci = (ROOT / ".ci" / "run").read_text().splitlines()
    assert ci[-1] == "make test"
    assert any(line.startswith("make test") for line in code(ROOT / "README.md"))
