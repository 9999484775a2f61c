import pytest

from dbdyno.errors import UnknownSystemError
from dbdyno.servers import open
from dbdyno.servers.programs.catalog import CATALOG
from dbdyno.servers.reference import find


@pytest.mark.parametrize("reference", ["mysql:5.7.22", "mysql:8.0.15", "MySQL:8.0.31 "])
def test_each_known_reference_finds_its_row(reference):
    assert find(reference).reference == reference.strip().lower()


@pytest.mark.parametrize(
    ("reference", "message", "nearest"),
    [
        ("mysql:8.0", "no version '8.0' of mysql", "mysql:8.0.33"),
        ("mysql:8.0.16", "no version '8.0.16' of mysql", "mysql:8.0.15"),
        ("mysq:8.0.15", "no product 'mysq'", "mysql:8.0.15"),
        ("mysql", "does not name a product and a version", "mysql:9.7.4"),
    ],
)
def test_an_unknown_reference_is_told_what_is_known_and_the_nearest(reference, message, nearest):
    with pytest.raises(UnknownSystemError) as caught:
        open.check(reference)
    assert message in caught.value.message
    assert all(entry.reference in (caught.value.wanted or "") for entry in CATALOG)
    assert caught.value.hint == f"did you mean {nearest}?"
    assert caught.value.exit_status == 2


def test_nothing_alike_points_to_the_list():
    with pytest.raises(UnknownSystemError) as caught:
        find("oracle:23")
    assert caught.value.hint == "see: dbdyno servers list"


def test_an_empty_reference_is_refused():
    with pytest.raises(UnknownSystemError, match="does not name"):
        find("")
