import os
import pwd
from pathlib import Path

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs import sources
from dbdyno.servers.programs.sources import MavenSource

DIGEST_OF_CODE = "5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b"
SOURCE = MavenSource("com.example:server:1.0", DIGEST_OF_CODE, 4)


@pytest.fixture
def maven(monkeypatch):
    """A client that copies the four bytes ``code``."""
    calls: list[list[str]] = []

    def run(command, what, work):
        calls.append(command)
        folder = next(a.split("=", 1)[1] for a in command if a.startswith("-DoutputDirectory="))
        (Path(folder) / "server-1.0.jar").write_bytes(b"code")
        return ""

    monkeypatch.setattr(sources, "run_client", run)
    return calls


@pytest.mark.parametrize(
    ("coordinates", "file_name"),
    [
        ("g:server:1.0", "server-1.0.jar"),
        ("g:server:1.0:zip", "server-1.0.zip"),
        ("g:server:1.0:zip:linux-x86_64", "server-1.0-linux-x86_64.zip"),
    ],
)
def test_a_copy_is_named_as_maven_names_it(coordinates, file_name):
    assert MavenSource(coordinates, DIGEST_OF_CODE, 4).file_name == file_name


def test_the_clients_command_names_the_artifact_and_no_host(maven, tmp_path):
    assert SOURCE.fetch(tmp_path, str).read_bytes() == b"code"
    assert maven[0][0].rpartition("/")[2] == "mvn"
    assert "-Dartifact=com.example:server:1.0" in maven[0]
    assert not any("://" in argument for argument in maven[0])


def test_another_file_than_the_known_one_is_refused(maven, tmp_path):
    other = MavenSource("com.example:server:1.0", "0" * 64, 4)
    with pytest.raises(ProvisionError, match="not the file dbdyno knows") as caught:
        other.fetch(tmp_path, str)
    assert "local repository" in (caught.value.hint or "")


def test_a_user_without_a_home_gets_mavens_repository_in_the_cache(maven, monkeypatch, tmp_path):
    me = pwd.getpwuid(os.geteuid())
    assert sources._local_repository() == [] or not os.access(me.pw_dir, os.W_OK)

    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    SOURCE.fetch(tmp_path, str)
    assert f"-Dmaven.repo.local={tmp_path / 'cache' / 'maven'}" in maven[0]
