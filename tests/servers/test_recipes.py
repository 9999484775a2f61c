import re
from pathlib import Path

import pytest

from dbdyno.errors import UnknownSystemError
from dbdyno.servers import open
from dbdyno.servers.programs.catalog import CATALOG
from dbdyno.servers.reference import RECIPES, recipe_for

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "servers.md"


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("greatsql:8.0.32-26", "GreatSQL-8.0.32-26-Linux-glibc2.28-x86_64.tar.xz"),
        ("greatsql", "GreatSQL-8.0.32-26-"),
        ("GreatSQL:8.0.25-17", "image's tag 8.0.25-17"),
        ("percona:8.0.36-28", "Percona-Server-8.0.36-28-Linux"),
        ("percona-server:8.0.36-28", "container:percona/percona-server@sha256:HEX"),
        ("tidb:v7.5.1", "tiup playground v7.5.1 --db 3"),
        ("tdsql:8.0", "mysql://USER@HOST:PORT/DATABASE"),
    ],
)
def test_a_server_no_registry_has_is_answered_with_what_to_write(reference, words):
    with pytest.raises(UnknownSystemError, match=r"cannot fetch .* by name") as caught:
        open.check(reference)
    hint = caught.value.hint or ""
    assert words in hint
    assert hint.endswith("see docs/reference/servers.md")
    assert "VERSION" not in hint


def test_no_recipe_is_for_what_the_catalog_has():
    assert not {recipe.product for recipe in RECIPES} & {entry.product for entry in CATALOG}
    assert recipe_for("mysql") is None


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.product)
def test_each_recipe_is_in_the_docs_and_names_no_password(recipe):
    told = recipe.written_for("")
    assert re.search(r"tarball:|container:|mysql://", told)
    assert not re.search(r"://[^/ ]*:[^/@ ]*@", told)
    assert recipe.product in DOCS.read_text().lower()
