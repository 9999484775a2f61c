import dataclasses

from dbdyno.servers.reference import find

ROW = find("mysql:8.0.15")


def test_a_row_is_named_by_product_and_version():
    assert (ROW.reference, ROW.folder_name) == ("mysql:8.0.15", "mysql-8.0.15")
    assert ROW.version_numbers == (8, 0, 15)
    assert ROW.identity == ROW.source.identity


def test_what_was_named_otherwise_is_kept_by_its_bytes():
    given = dataclasses.replace(ROW, named="tarball:https://example.com/x#sha256=ab")
    assert given.reference == "tarball:https://example.com/x#sha256=ab"
    assert given.folder_name == f"given-{ROW.identity[:16]}"
