import re

import pytest

from dbdyno.servers.catalog import CATALOG


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.reference)
def test_every_row_is_complete_and_well_formed(entry):
    assert re.fullmatch(r"[0-9a-f]{64}", entry.identity)
    assert re.fullmatch(r"[\w.-]+(:[\w.-]+){2,4}", entry.source.name)
    assert entry.source.tools
    assert entry.source.download_bytes > 1_000_000
    assert {"libaio.so.1", "libnuma.so.1"} <= {library.soname for library in entry.libraries}


def test_no_reference_and_no_digest_stands_twice():
    assert len({entry.reference for entry in CATALOG}) == len(CATALOG)
    assert len({entry.identity for entry in CATALOG}) == len(CATALOG)


def test_versions_compare_as_numbers():
    assert [entry.version_numbers for entry in CATALOG] == [(5, 7, 22), (8, 0, 15), (8, 0, 31)]
