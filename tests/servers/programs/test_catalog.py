"""The catalog's rows are pinned, in order and named in one way."""

from __future__ import annotations

import dataclasses
import re

import pytest

from dbdyno.servers.programs.catalog import CATALOG
from dbdyno.servers.reference import find


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.reference)
def test_every_row_is_complete_and_well_formed(entry):
    assert re.fullmatch(r"[0-9a-f]{64}", entry.identity)
    assert "://" not in entry.source.name
    assert entry.source.tools
    assert entry.source.download_bytes > 1_000_000
    assert not entry.program.startswith("/")
    assert entry.authentication


def test_no_reference_and_no_digest_stands_twice():
    assert len({entry.reference for entry in CATALOG}) == len(CATALOG)
    assert len({entry.identity for entry in CATALOG}) == len(CATALOG)


def test_versions_compare_as_numbers():
    for product in ("mysql", "mariadb", "postgres"):
        numbers = [entry.version_numbers for entry in CATALOG if entry.product == product]
        assert numbers == sorted(numbers)
    assert find("mariadb:10.11.5").version_numbers == (10, 11, 5)


def test_the_catalog_has_what_the_published_experiments_need():
    known = {entry.reference for entry in CATALOG}
    assert {"mysql:5.6.24", "mysql:5.7.22", "mysql:8.0.15", "mysql:8.0.33"} <= known
    assert {"mariadb:10.1.23", "mariadb:10.2.11", "mariadb:10.11.5", "mariadb:11.4.5"} <= known
    majors = {e.version_numbers[0] for e in CATALOG if e.product == "postgres"}
    assert majors == {15, 16, 17, 18}


def test_programs_named_otherwise_are_kept_by_their_bytes():
    row = find("mysql:8.0.15")
    given = dataclasses.replace(row, named="tarball:https://example.com/x#sha256=ab")
    assert given.reference == "tarball:https://example.com/x#sha256=ab"
    assert given.folder_name == f"given-{row.identity[:16]}"
