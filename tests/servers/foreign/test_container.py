import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.foreign import container as module
from dbdyno.servers.foreign.container import ContainerServer, Leash, words_of
from support.docker_on_path import Docker

WHO = Credentials("load", "secret-4711")


class Deaf:
    """Nobody answers."""

    def __init__(self, *_):
        self.asked = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def try_login(self):
        return False


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


def test_a_container_that_ends_while_it_starts_tells_its_last_words(program, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Client", Deaf)
    name = begun(program, tmp_path)
    server = ContainerServer("boxed", program, name, Endpoint("127.0.0.1", 1, None), WHO)
    assert server.alive()
    (tmp_path / "docker" / "containers" / name / "log").write_text("[ERROR] unknown variable\n")
    program.call("stop", name)
    with pytest.raises(ServerError, match="boxed: its container ended") as caught:
        server.wait_ready(WHO)
    assert caught.value.found == "[ERROR] unknown variable"
    program.call("rm", "--force", name)
    assert server.last_words() == words_of(program, name) == ""


def test_one_that_never_answers_is_given_up(program, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Client", Deaf)
    monkeypatch.setattr(module, "START_S_MAX", 0.1)
    name = begun(program, tmp_path)
    server = ContainerServer("boxed", program, name, Endpoint("127.0.0.1", 1, None), WHO)
    with pytest.raises(ServerError, match="no answer within"):
        server.wait_ready(WHO)
    program.call("rm", "--force", name)


def test_a_leash_removes_what_it_holds_when_it_is_let_go(program, tmp_path):
    name = begun(program, tmp_path)
    Leash(program, name).let_go()
    assert program.says("inspect", "--format", "{{.State.Running}}", name) is None
