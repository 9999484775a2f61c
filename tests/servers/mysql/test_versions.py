import pytest

from dbdyno.errors import UnknownSystemError
from dbdyno.servers.mysql.versions import FAMILIES, family_of


@pytest.mark.parametrize(
    ("product", "version", "since"),
    [
        ("mysql", (5, 6, 24), (5, 6)),
        ("mysql", (5, 7, 22), (5, 7)),
        ("mysql", (8, 0, 15), (8, 0)),
        ("mysql", (8, 0, 29), (8, 0, 21)),
        ("mysql", (8, 0, 31), (8, 0, 30)),
        ("mysql", (9, 7, 4), (8, 4)),
        ("percona", (8, 0, 33), (8, 0, 30)),
        ("greatsql", (8, 0, 32), (8, 0, 30)),
        ("mariadb", (10, 2, 11), (10, 1)),
        ("mariadb", (10, 11, 5), (10, 5)),
        ("mariadb", (11, 8, 6), (11, 4, 2)),
        ("mariadb", (12, 0), (11, 4, 2)),
    ],
)
def test_the_newest_row_that_the_version_has_reached_holds(product, version, since):
    assert family_of(product, version).since == since


@pytest.mark.parametrize(("product", "version"), [("mysql", (5, 5, 9)), ("oracle", (23,))])
def test_what_cannot_be_run_is_reported_with_what_can(product, version):
    with pytest.raises(UnknownSystemError) as caught:
        family_of(product, version)
    assert caught.value.wanted == "mysql from 5.6 on or mariadb from 10.1 on"


def test_rows_of_a_product_rise_by_version():
    for product in {family.product for family in FAMILIES}:
        versions = [family.since for family in FAMILIES if family.product == product]
        assert versions == sorted(set(versions))
