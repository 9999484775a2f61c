import pytest

from dbdyno.errors import ProvisionError, UsageError
from dbdyno.servers import open
from dbdyno.servers.foreign import container
from support.docker_on_path import IMAGE, REFERENCE, Docker


def looked(report=str):
    return container.look(container.find(), REFERENCE, report)


def test_an_image_is_pulled_once_and_asked_what_it_is(monkeypatch, tmp_path):
    docker, told = Docker(monkeypatch, tmp_path), []
    image = looked(told.append)
    assert (image.name, image.data) == (IMAGE, "/var/lib/mysql")
    assert (image.entry.product, image.entry.version) == ("mysql", "8.0.15")
    assert image.entry.reference == REFERENCE
    assert told == [f"{REFERENCE}: pulling the image"]
    assert ["pull", IMAGE] in docker.calls()
    looked(pytest.fail)


def test_the_keys_of_a_settings_axis_follow_from_what_the_image_holds(monkeypatch, tmp_path):
    Docker(monkeypatch, tmp_path)
    assert open.product_before(REFERENCE) is None
    assert open.product_of(REFERENCE) == ("mysql", "8.0.15")


@pytest.mark.parametrize(
    ("volumes", "data"),
    [("null", "/var/lib/mysql"), ('{"/data/GreatSQL": {}}', "/data/GreatSQL")],
)
def test_data_are_kept_where_the_image_says(monkeypatch, tmp_path, volumes, data):
    docker = Docker(monkeypatch, tmp_path, "mariadbd  Ver 11.4.5-MariaDB-ubu2404 for Linux")
    (docker.folder / "pulled").write_text(volumes)
    image = looked()
    assert (image.data, image.entry.product) == (data, "mariadb")


@pytest.mark.parametrize(
    ("says", "kind", "message"),
    [
        ("hello", ProvisionError, "does not say that it holds a server"),
        ("postgres (PostgreSQL) 18.6", UsageError, "only images of MySQL and MariaDB"),
    ],
)
def test_another_image_is_refused(monkeypatch, tmp_path, says, kind, message):
    Docker(monkeypatch, tmp_path, says)
    with pytest.raises(kind, match=message):
        looked()


def test_unclear_data_are_refused(monkeypatch, tmp_path):
    docker = Docker(monkeypatch, tmp_path)
    (docker.folder / "pulled").write_text('{"/a": {}, "/b": {}}')
    with pytest.raises(ProvisionError, match="not clear where") as caught:
        looked()
    assert caught.value.found == "/a, /b"
