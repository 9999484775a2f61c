import pytest

from dbdyno.errors import ProvisionError, ServerError, UnknownSystemError, UsageError
from dbdyno.servers import open
from dbdyno.servers.foreign import container
from support.docker_on_path import DIGEST, IMAGE, REFERENCE, Docker


def test_an_image_is_named_by_its_digest():
    assert container.image_of(REFERENCE) == IMAGE
    assert open.check(REFERENCE) is None


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
    program = container.find()
    assert program.path == str(docker.folder / "bin" / "docker")
    assert program.says("image", "inspect", "x") is None
    with pytest.raises(ServerError, match=r"docker image failed \(exit 1\)") as caught:
        program.call("image", "inspect", "x")
    assert caught.value.found == "no such image"


def test_podman_stands_in_for_a_docker_that_does_not_answer(monkeypatch, tmp_path):
    docker = Docker(monkeypatch, tmp_path)
    (docker.folder / "broken").touch()
    with pytest.raises(ProvisionError, match="no containers can be run here") as caught:
        container.find()
    assert caught.value.found == (
        "docker: Cannot connect to the Docker daemon; podman is not on PATH"
    )
    podman = docker.folder / "bin" / "podman"
    podman.write_text("#!/bin/sh\n")
    podman.chmod(0o755)
    assert container.find().path == str(podman)


def test_a_command_that_hangs_is_ended(monkeypatch, tmp_path):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    with pytest.raises(ServerError, match="did not end within"):
        container.ContainerProgram(str(slow)).call("version", seconds_max=0.2)
