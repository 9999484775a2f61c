"""The pages that `make site` builds: all are in the menu, all commands in the reference."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.test_docs import GROUPS, options_of
from tools.site import pages

from dbdyno.cli.app import COMMANDS, SECTIONS
from support.source import ROOT, with_suffix


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the site's pages and settings."""
    folder = tmp_path_factory.mktemp("site")
    assert pages.main(folder) == 0
    return folder


def _leaves(items: list[object]) -> list[str]:
    """The pages of a menu, in its order."""
    return [
        page
        for item in items
        for value in (item.values() if isinstance(item, dict) else [item])
        for page in (_leaves(value) if isinstance(value, list) else [str(value)])
    ]


def test_the_menu_has_every_page_once_in_the_order_of_the_index(site: Path) -> None:
    settings = json.loads((site / "mkdocs.yml").read_text())
    listed = _leaves(settings["nav"])
    written = [path.relative_to(site / "pages") for path in site.rglob("*.md")]
    assert sorted(listed) == sorted(path.as_posix() for path in written)
    of_docs = {
        page.relative_to(ROOT) for page in with_suffix(".md") if ROOT / "docs" in page.parents
    }
    assert of_docs < set(written)
    in_index = re.findall(r"^\| \[[^]]+\]\((.+?)\.\w+\)", (ROOT / pages.INDEX).read_text(), re.M)
    assert listed[2 : 2 + len(in_index)] == [f"docs/{page}.md" for page in in_index]
    sections = [title for item in settings["nav"] for title in item]
    headings = re.findall(r"^## (.+)$", (ROOT / pages.INDEX).read_text(), re.M)
    assert sections == ["Start", "All pages", *headings, "Commands", "Project"]


def test_every_link_of_the_site_leads_to_a_file_of_it(site: Path) -> None:
    links = [
        (page, link) for page in site.rglob("*.md") for link in pages.LINK.findall(page.read_text())
    ]
    assert len(links) > 200
    assert [(page, link) for page, link in links if not (page.parent / link).is_file()] == []


def test_the_reference_has_every_command_with_its_options_in_the_sections_of_help(
    site: Path,
) -> None:
    text = (site / "pages" / pages.REFERENCE).read_text()
    parts = dict(re.findall(r"^#{3,4} `dbdyno ([^`]+)`\n(.*?)(?=^#|\Z)", text, re.M | re.S))
    assert [name for name in parts if " " not in name] == list(COMMANDS)
    for name, part in parts.items():
        options = {option for option in options_of(*name.split()) if option.startswith("-")}
        assert set(re.findall(r"(?<=[` ])-[\w-]+(?=[`, ])", part)) >= options, name
    assert {name.split()[0] for name in parts if " " in name} >= {*GROUPS}
    assert re.findall(r"^## (.+)$", text, re.M) == list(SECTIONS)
    assert re.search(r"^\*\*Load\*\*\n\n- `--threads N,N…`: \w", parts["compare"], re.M)


def test_a_notebook_is_a_page_with_its_code(site: Path) -> None:
    notebook = site / "pages" / "docs" / "notebooks" / "first-look.ipynb"
    page = notebook.with_suffix(".md").read_text()
    codes = [
        cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"
    ]
    assert page.startswith("# ")
    assert codes
    assert all(f"```python\n{''.join(cell['source'])}\n```" in page for cell in codes)


def test_the_script_that_the_theme_would_load_over_the_network_is_in_the_site(site: Path) -> None:
    (script,) = re.findall(r"polyfills: \[(.+)\]", pages.SETTINGS.read_text())
    assert (site / "pages" / script).is_file()
