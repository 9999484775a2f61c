"""What a program says it is, and where its files lie."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import ProvisionError
from dbdyno.servers import process
from dbdyno.servers.programs import identify
from dbdyno.servers.programs.identify import (
    ProgramIdentity,
    ServerFiles,
    ask,
    files_of,
    program_in,
    understood,
)
from support.archives import program

SHA2 = "caching_sha2_password"
NATIVE = "mysql_native_password"
SCRAM = "scram-sha-256"
OLD, NEW = ("mysql", "5.6.24", NATIVE), ("mysql", "8.0.33", SHA2)


@pytest.mark.parametrize(
    ("words", "identity"),
    [
        ("Ver 5.6.24 for linux-glibc2.5 on x86_64 (MySQL Community Server (GPL))", OLD),
        ("Ver 8.0.33 for Linux on x86_64 (MySQL Community Server - GPL)", NEW),
        ("Ver 9.7.4-2 for Linux on x86_64 ((Debian))", ("mysql", "9.7.4", SHA2)),
        ("Ver 8.0.36-28 for Linux (Percona Server (GPL), Release 28)", ("percona", "8.0.36", SHA2)),
        ("Ver 8.0.32-26 for Linux (GreatSQL, Release 26)", ("greatsql", "8.0.32", SHA2)),
        ("Ver 10.1.23-MariaDB for Linux (MariaDB Server)", ("mariadb", "10.1.23", NATIVE)),
        ("Ver 11.8.6-MariaDB-0+deb13u1 from Debian", ("mariadb", "11.8.6", NATIVE)),
        ("Ver 5.7.44-48 (Percona Server (GPL), Release 48)", ("percona", "5.7.44", NATIVE)),
        ("Ver 8.0.36-28.1 (Percona XtraDB Cluster (GPL), WSREP)", ("percona", "8.0.36", SHA2)),
        ("Ver 8.4.6-commercial for Linux (MySQL Enterprise Server)", ("mysql", "8.4.6", SHA2)),
        ("Ver 10.6.18-14-MariaDB-enterprise for Linux", ("mariadb", "10.6.18", NATIVE)),
        ("postgres (PostgreSQL) 17.5 - Percona Server 17.5.2", ("postgres", "17.5", SCRAM)),
        ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", ("postgres", "15.18", SCRAM)),
        ("postgres (PostgreSQL) 9.6.24", ("postgres", "9.6.24", SCRAM)),
        ("GNU bash, version 5.2.15(1)-release", None),
        ("", None),
    ],
)
def test_a_programs_words_are_understood(words, identity):
    said = f"/x/mysqld  {words}" if words.startswith("Ver") else words
    assert understood(said) == (identity and ProgramIdentity(*identity))


@given(st.text())
def test_whatever_a_program_says_is_understood_or_not_but_no_error(words):
    found = understood(words)
    known = {"mysql", "percona", "greatsql", "mariadb", "postgres"}
    assert found is None or found.product in known


def server(folder, text):
    return program(folder / "bin" / "mysqld", f"#!/bin/sh\n{text}\n")


@pytest.fixture
def ourselves(monkeypatch):
    """Programs are asked as ourselves: pytest's folder is closed to other users."""
    monkeypatch.setattr(process, "server_user", lambda: None)


def test_the_program_is_asked_itself(tmp_path, ourselves):
    made = server(tmp_path, 'echo "mysqld  Ver 8.0.33 for Linux on $LC_ALL"')
    assert ask(made) == ProgramIdentity(*NEW)


def test_a_program_that_is_no_server_is_quoted(tmp_path, ourselves):
    made = server(tmp_path, "echo libaio.so.1: cannot open >&2; exit 127")
    with pytest.raises(ProvisionError, match="does not say that it is a server") as caught:
        ask(made)
    assert caught.value.found == "libaio.so.1: cannot open"


def test_a_program_that_does_not_answer_is_given_up(tmp_path, ourselves, monkeypatch):
    monkeypatch.setattr(identify, "ANSWER_S_MAX", 0.3)
    with pytest.raises(ProvisionError, match=r"did not end within 0\.3 s"):
        ask(server(tmp_path, "exec sleep 30"))


def test_a_program_that_is_asked_learns_nothing_of_the_labs_environment(
    tmp_path, ourselves, monkeypatch
):
    monkeypatch.setenv("MYSQL_PWD", "hunter2")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/lib/of/its/own")
    said = identify.said_by(server(tmp_path, "exec env"), "ASKED=for this").stdout
    assert "ASKED=for this" in said
    assert "LD_LIBRARY_PATH=/lib/of/its/own" in said
    assert "hunter2" not in said


def test_a_program_is_looked_for_in_the_usual_folders_and_must_be_executable(tmp_path):
    assert program_in(tmp_path) is None
    made = server(tmp_path, "")
    assert program_in(tmp_path) == "bin/mysqld"
    made.chmod(0o644)
    assert program_in(tmp_path) is None


@pytest.mark.parametrize(
    ("program", "base", "share", "plugins", "more", "libraries"),
    [
        # a program in its place finds its own libraries
        ("bin/mysqld", ".", "share", "lib/plugin", "bin/libssl.so.1", None),
        ("usr/sbin/mariadbd", "usr", "usr/share/mariadb", "usr/lib/mysql/plugin", None, None),
        ("mysqld", ".", "share", None, "libaio.so.1", "."),
    ],
    ids=["a vendor's archive", "a Debian package", "a program on top with libraries beside it"],
)
def test_files_are_found_around_the_program(
    tmp_path, program, base, share, plugins, more, libraries
):
    index = f"{share}/charsets/Index.xml"
    for name in filter(None, (program, index, plugins and f"{plugins}/clone.so", more)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert files_of(tmp_path / program) == ServerFiles(
        *(tmp_path / program, tmp_path / base, tmp_path / share),
        *(place and tmp_path / place for place in (plugins, libraries)),
    )


def test_a_program_alone_cannot_run(tmp_path):
    with pytest.raises(ProvisionError, match="no messages and character sets") as caught:
        files_of(tmp_path / "bin" / "mysqld")
    assert caught.value.hint == "unpack the server's whole archive"
