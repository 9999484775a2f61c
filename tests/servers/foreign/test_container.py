"""Docker or Podman as a command line, what is in an image, and a container that runs."""

from __future__ import annotations

import pytest

from dbdyno.errors import ProvisionError, ServerError, UnknownSystemError, UsageError
from dbdyno.servers import open
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.foreign import container as module
from dbdyno.servers.foreign.container import ContainerServer, ContainerWatcher, log_end_of
from dbdyno.servers.reference import ImageReference, parse
from support.archives import program as script
from support.docker_on_path import DIGEST, IMAGE, REFERENCE, Docker
from support.scripted_server import FakeClient


def test_an_image_is_named_by_its_digest():
    assert parse(REFERENCE) == ImageReference(REFERENCE, IMAGE)


@pytest.mark.parametrize(
    "reference",
    [
        "container:mysql:8.0.33",
        "container:mysql@sha256:0f",
        f"container:-v/:/host@{DIGEST}",
        f"container:@{DIGEST}",
        "container:",
    ],
)
def test_a_tag_or_an_option_is_no_image(reference):
    with pytest.raises(UnknownSystemError, match="named with its digest"):
        open.check(reference)


def test_an_image_is_not_fetched_ahead():
    with pytest.raises(UsageError, match="pulled by docker or podman"):
        open.get(REFERENCE, str)


def test_docker_is_found_on_path(monkeypatch, tmp_path):
    docker = Docker(monkeypatch, tmp_path)
    program = module.find()
    assert program.path == str(docker.folder / "bin" / "docker")
    assert program.says("image", "inspect", "x") is None
    with pytest.raises(ServerError, match=r"docker image failed \(exit 1\)") as caught:
        program.call("image", "inspect", "x")
    assert caught.value.found == "no such image"


def test_podman_stands_in_for_a_docker_that_does_not_answer(monkeypatch, tmp_path):
    docker = Docker(monkeypatch, tmp_path)
    (docker.folder / "broken").touch()
    monkeypatch.setenv("PATH", str(docker.folder / "bin"))  # without this machine's podman
    with pytest.raises(ProvisionError, match="no containers can be run here") as caught:
        module.find()
    assert caught.value.found == (
        "docker: Cannot connect to the Docker daemon; podman is not on PATH"
    )
    podman = script(docker.folder / "bin" / "podman", "#!/bin/sh\n")
    assert module.find().path == str(podman)


def test_a_command_that_hangs_is_ended(monkeypatch, tmp_path):
    slow = script(tmp_path / "slow", "#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(ServerError, match="did not end within"):
        module.ContainerProgram(str(slow)).call("version", seconds_max=0.2)


def looked(report=str):
    return module.look(module.find(), parse(REFERENCE), report)


def test_an_image_is_pulled_once_and_asked_what_it_is(monkeypatch, tmp_path):
    docker, messages = Docker(monkeypatch, tmp_path), []
    image = looked(messages.append)
    assert (image.name, image.data) == (IMAGE, "/var/lib/mysql")
    assert (image.entry.product, image.entry.version) == ("mysql", "8.0.15")
    assert image.entry.reference == REFERENCE
    assert messages == [f"{REFERENCE}: pulling the image"]
    assert ["pull", IMAGE] in docker.calls()
    looked(pytest.fail)


def test_the_keys_of_a_settings_axis_follow_from_what_the_image_holds(monkeypatch, tmp_path):
    Docker(monkeypatch, tmp_path)
    assert open.product_before(REFERENCE) is None
    assert open.product_of(REFERENCE) == ("mysql", "8.0.15")


MARIADB = "mariadbd  Ver 11.4.5-MariaDB-ubu2404 for Linux"
POSTGRES = "postgres (PostgreSQL) 18.6 (Debian 18.6-1.pgdg13+1)"


@pytest.mark.parametrize(
    ("says", "volumes", "product", "data"),
    [
        (MARIADB, "null", "mariadb", "/var/lib/mysql"),
        (MARIADB, '{"/data/GreatSQL": {}}', "mariadb", "/data/GreatSQL"),
        (POSTGRES, "null", "postgres", "/var/lib/postgresql/data"),
        (POSTGRES, '{"/var/lib/postgresql": {}}', "postgres", "/var/lib/postgresql"),
        (
            POSTGRES,
            '{"/backup": {}, "/var/lib/postgresql/data": {}}',
            "postgres",
            "/var/lib/postgresql/data",
        ),
    ],
)
def test_data_are_kept_where_the_image_says(monkeypatch, tmp_path, says, volumes, product, data):
    docker = Docker(monkeypatch, tmp_path, says)
    (docker.folder / "pulled").write_text(volumes)
    image = looked()
    assert (image.data, image.entry.product) == (data, product)


@pytest.mark.parametrize(
    ("says", "kind", "message"),
    [
        ("hello", ProvisionError, "does not say that it holds a server"),
        ("postgres (PostgreSQL) 14.20", UsageError, "PostgreSQL from 15 on"),
    ],
)
def test_another_image_is_refused(monkeypatch, tmp_path, says, kind, message):
    Docker(monkeypatch, tmp_path, says)
    with pytest.raises(kind, match=message):
        looked()


def test_an_image_that_cannot_be_run_is_refused_with_dockers_words(monkeypatch, tmp_path):
    docker = Docker(monkeypatch, tmp_path)
    (docker.folder / "says").unlink()
    with pytest.raises(ProvisionError, match="does not say that it holds a server") as caught:
        looked()
    assert "FileNotFoundError" in (caught.value.found or "")
    asked = next(call for call in docker.calls() if call[0] == "run")
    # What was asked may go on without the client that was ended.
    assert ["rm", "--force", "--volumes", asked[asked.index("--name") + 1]] in docker.calls()


def test_unclear_data_are_refused(monkeypatch, tmp_path):
    docker = Docker(monkeypatch, tmp_path)
    (docker.folder / "pulled").write_text('{"/a": {}, "/b": {}}')
    with pytest.raises(ProvisionError, match="not clear where") as caught:
        looked()
    assert caught.value.found == "/a, /b"


WHO = Credentials("load", "secret-4711")


@pytest.fixture
def program(monkeypatch, tmp_path):
    Docker(monkeypatch, tmp_path)
    return module.find()


def begun(program, tmp_path):
    environment = tmp_path / "env"
    environment.touch()
    name = program.call("create", "--env-file", str(environment), "image")
    program.call("start", name)
    return name


def server_of(program, name):
    return ContainerServer("boxed", program, name, Endpoint("127.0.0.1", 1, None), WHO)


def test_a_container_that_ends_while_it_starts_is_an_error_with_the_end_of_its_log(
    program, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "MysqlClient", lambda *_: FakeClient(ready=False))
    name = begun(program, tmp_path)
    server = server_of(program, name)
    assert server.alive()
    (tmp_path / "docker" / "containers" / name / "log").write_text("[ERROR] unknown variable\n")
    program.call("stop", name)
    with pytest.raises(ServerError, match="boxed: its container ended") as caught:
        server.wait_ready(WHO)
    assert caught.value.found == "[ERROR] unknown variable"
    program.call("rm", "--force", name)
    assert server.last_words() == log_end_of(program, name) == ""


def test_a_process_of_that_number_that_is_not_the_containers_is_nobody(program, tmp_path):
    name = begun(program, tmp_path)
    server = server_of(program, name)
    assert server.pid > 0
    group = tmp_path / "docker" / "containers" / name / "cgroup"
    group.write_text("0::/user.slice/a-strangers.scope\n")  # docker runs in a virtual machine
    assert server.alive()  # by docker's word
    assert server_of(program, name).pid == 0
    program.call("stop", name)
    assert not server.alive()


def test_one_that_never_answers_is_given_up(program, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MysqlClient", lambda *_: FakeClient(ready=False))
    monkeypatch.setattr(module, "START_S_MAX", 0.1)
    name = begun(program, tmp_path)
    server = server_of(program, name)
    with pytest.raises(ServerError, match="no answer within"):
        server.wait_ready(WHO)
    program.call("rm", "--force", name)


def test_a_service_that_hangs_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ANSWER_S_MAX", 0.2)
    slow = script(tmp_path / "docker", "#!/bin/sh\nexec sleep 60\n")
    hung = module.ContainerProgram(str(slow))
    assert log_end_of(hung, "id1") == ""
    watcher = ContainerWatcher(hung, "id1")
    with pytest.raises(ServerError, match="not removed within") as caught:
        watcher.remove()
    assert caught.value.found == "id1 is still being removed"
    with watcher._waiting as left:
        left.kill()


def test_a_watcher_removes_its_container_when_asked(program, tmp_path):
    name = begun(program, tmp_path)
    ContainerWatcher(program, name).remove()
    assert program.says("inspect", "--format", "{{.State.Running}}", name) is None
