import os
import subprocess

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs import debian
from dbdyno.servers.programs.debian import lay, mirror

OWN = "Packages|main|bookworm|Debian|http://mirror.example/debian/"
SECURITY = "Packages|main|bookworm-security|Debian|http://mirror.example/debian-security/"
OTHER = "Packages|main|nodistro|Node|http://other.example/node/"


def answering(monkeypatch, text):
    monkeypatch.setattr(debian, "run_client", lambda command, what, work: text)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join([OTHER, SECURITY, "DEP-11|main|bookworm|Debian|http://x/debian/", OWN]),
        "Packages|main|trixie|$(ORIGIN)|http://mirror.example/debian/\n",  # never updated
    ],
)
def test_the_mirror_is_the_one_of_the_machines_own_packages(monkeypatch, tmp_path, text):
    answering(monkeypatch, text)
    assert mirror(tmp_path) == "http://mirror.example/debian/"


@pytest.mark.parametrize(("text", "found"), [("", "none"), (OTHER, "sources of other packages")])
def test_a_machine_without_a_debian_mirror_is_told_what_else_to_do(
    monkeypatch, tmp_path, text, found
):
    answering(monkeypatch, text)
    with pytest.raises(ProvisionError, match="no Debian mirror here") as caught:
        mirror(tmp_path)
    assert (caught.value.found or "").startswith(found)
    assert "path:/folder" in (caught.value.hint or "")


def test_apt_works_in_its_own_folder_and_takes_nothing_unsigned(monkeypatch, tmp_path):
    answering(monkeypatch, OWN)
    apt = lay(tmp_path / "apt", "sid", ("perl",))
    said = subprocess.run(
        ["apt-config", "dump", *apt.options], capture_output=True, text=True, check=True
    ).stdout
    for name in ("Dir::State", "Dir::Cache", "Dir::Etc::sourcelist", "Dir::State::status"):
        assert f'\n{name} "{tmp_path / "apt"}' in said
    assert 'APT::Get::AllowUnauthenticated "false"' in said
    assert 'Acquire::AllowInsecureRepositories "false"' in said
    assert ('APT::Sandbox::User "root"' in said) == (os.geteuid() == 0)
    line = (tmp_path / "apt" / "sources.list").read_text()
    assert line.startswith("deb ")
    assert line.endswith(" http://mirror.example/debian/ sid main\n")
    assert "[trusted" not in line
    assert (
        "Package: perl\nStatus: install ok installed\n" in (tmp_path / "apt" / "status").read_text()
    )
