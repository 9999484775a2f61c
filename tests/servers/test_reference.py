"""Each form of a reference is read into what it names, or refused with what to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UnknownSystemError, UsageError
from dbdyno.files import private
from dbdyno.servers import open
from dbdyno.servers.base import Encryption
from dbdyno.servers.programs.catalog import CATALOG
from dbdyno.servers.programs.given import TarballSource
from dbdyno.servers.reference import (
    RECIPES,
    EndpointReference,
    FolderReference,
    VersionReference,
    credentials,
    parse,
)


@pytest.mark.parametrize(
    ("reference", "message", "nearest"),
    [
        ("mysql:8.0", "no version '8.0' of mysql", "mysql:8.0.33"),
        ("postgres:17", "no version '17' of postgres", "postgres:17.11"),
        ("mysq:8.0.15", "no product 'mysq'", "mysql:8.0.15"),
        ("mysql", "does not name a product and a version", "mysql:9.7.4"),
        ("oracle:23", "no product 'oracle'", None),
    ],
)
def test_an_unknown_reference_is_answered_with_what_is_known_and_the_nearest(
    reference, message, nearest
):
    with pytest.raises(UnknownSystemError) as caught:
        open.check(reference)
    assert message in caught.value.message
    product = reference.partition(":")[0]
    of_product = [entry.reference for entry in CATALOG if entry.product == product]
    listed = of_product or [entry.reference for entry in CATALOG]
    assert caught.value.wanted == f"one of {', '.join(listed)}"
    hint = f"did you mean {nearest}?" if nearest else "see: dbdyno servers list"
    assert caught.value.hint == hint
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("reference", "archive", "image", "nearest"),
    [
        ("mysql:8.4.3", "mysql-8.4.3-linux-", "container:mysql@sha256:HEX", "mysql:8.0.33"),
        ("mysql:8.0.18", "mysql-8.0.18-linux-", "container:mysql@sha256:HEX", "mysql:8.0.15"),
        ("mysql:5.5.62", "mysql-5.5.62-linux-", "container:mysql@sha256:HEX", "mysql:5.6.24"),
        ("mariadb:10.5.9", "mariadb-10.5.9-linux-", "container:mariadb@sha256", "mariadb:10.2.11"),
    ],
)
def test_a_version_that_no_registry_has_is_answered_with_how_to_get_it(
    reference, archive, image, nearest
):
    with pytest.raises(UnknownSystemError) as caught:
        open.check(reference)
    hint = caught.value.hint or ""
    assert hint.startswith("write URL#sha256=HEX with the address and digest of its ")
    assert archive in hint
    assert image in hint
    assert hint.endswith(f"the nearest that dbdyno fetches by name is {nearest}")


def test_a_version_of_postgres_is_answered_with_its_image():
    with pytest.raises(UnknownSystemError, match=r"no version '17\.12' of postgres") as caught:
        open.check("postgres:17.12")
    assert caught.value.hint == (
        "write container:postgres@sha256:HEX with the digest of the image's tag 17.12; see "
        "docs/reference/servers.md; the nearest that dbdyno fetches by name is postgres:17.11"
    )


ONE = EndpointReference("bench", (("db1", 3306),), "sbtest")
(EIGHT,) = (entry for entry in CATALOG if entry.reference == "mysql:8.0.31")


@pytest.mark.parametrize(
    ("reference", "wanted"),
    [
        ("mysql://bench@db1/sbtest", ONE),
        (" MySQL://bench@db1:3306/sbtest ", ONE),
        ("MySQL:8.0.31 ", VersionReference(EIGHT)),
        ("path:~/mysql", FolderReference("path:~/mysql", Path("/home/somebody/mysql"))),
        (
            "mysql://root@10.0.0.1:4000,10.0.0.2:4000,tidb-3/sb_2",
            EndpointReference(
                "root", (("10.0.0.1", 4000), ("10.0.0.2", 4000), ("tidb-3", 3306)), "sb_2"
            ),
        ),
        ("mysql://u@[::1]:3307/d", EndpointReference("u", (("::1", 3307),), "d")),
        (
            "mysql://u@h/d?ssl-mode=VERIFY_IDENTITY&ssl-ca=/etc/ca.pem",
            EndpointReference(
                "u", (("h", 3306),), "d", Encryption("verify_identity", Path("/etc/ca.pem"))
            ),
        ),
        ("mysql://u@h/d?ssl-mode=DISABLED", EndpointReference("u", (("h", 3306),), "d")),
        (
            "mysql://u@h/d?server-public-key-path=/etc/key.pem",
            EndpointReference("u", (("h", 3306),), "d", Encryption(key=Path("/etc/key.pem"))),
        ),
        (
            "mysql://u@h/d?get-server-public-key=true",
            EndpointReference("u", (("h", 3306),), "d", Encryption(takes_any_key=True)),
        ),
        ("postgres://u@h/d", EndpointReference("u", (("h", 5432),), "d", driver="pgsql")),
        (
            "postgresql://u@a:1,b/d?sslmode=verify-full&sslrootcert=/ca.pem",
            EndpointReference(
                *("u", (("a", 1), ("b", 5432)), "d"),
                *(Encryption("verify_identity", Path("/ca.pem")), "pgsql"),
            ),
        ),
    ],
)
def test_a_reference_says_who_where_and_what(reference, wanted, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert parse(reference) == wanted


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("mysql://db1:3306/sbtest", "lacks a user"),
        ("mysql://bench@db1", "lacks a database"),
        ("mysql://bench@db1/", "lacks a database"),
        ("mysql://bench@/sbtest", "no address"),
        ("mysql://bench@db1:0/sbtest", "'db1:0' is no address"),
        ("mysql://bench@db1:99999/sbtest", "no address"),
        ("mysql://bench@db1,/sbtest", "'' is no address"),
        ("mysql://bench@db1/a`b", "odd one"),
        ("mysql://bench@db1/a?ssl-mode=SURELY", "'ssl-mode=SURELY' is not what an endpoint takes"),
        ("mysql://bench@db1/a?ssl=1", "'ssl=1' is not what an endpoint takes"),
        ("mysql://bench@db1/a?ssl-mode=VERIFY_CA", "VERIFY_CA lacks ssl-ca"),
        ("mysql://bench@db1/a?ssl-mode=REQUIRED&ssl-ca=ca.pem", "from the root on"),
        ("mysql://bench@db1/a?ssl-mode=REQUIRED&ssl-ca=/ca.pem", "REQUIRED takes no ssl-ca"),
        ("mysql://bench@db1/a?ssl-ca=/ca.pem", "DISABLED takes no ssl-ca"),
        ("mysql://bench@db1/a?server-public-key-path=key.pem", "from the root on"),
        ("mysql://bench@db1/a?get-server-public-key", "is not what an endpoint takes"),
        (
            "mysql://bench@db1/a?ssl-mode=REQUIRED&get-server-public-key=true",
            "more than once how the password is encrypted",
        ),
        ("mariadb://bench@db1/sbtest", "mariadb:// is no endpoint"),
        ("mysql://bench:hunter@2:x/y@db1/sbtest", "holds a password"),
        ("postgres://db1/sbtest", "lacks a user"),
        ("postgresql://bench:hunter@db1/sbtest", "holds a password"),
        ("postgresql://bench@db1/a?ssl-mode=REQUIRED", "is not what an endpoint takes"),
        ("postgresql://bench@db1/a?sslmode=require&sslrootcert=/ca.pem", "takes no sslrootcert"),
        ("postgresql://bench@db1/a?server-public-key-path=/k.pem", "is not what an endpoint takes"),
    ],
)
def test_a_mistake_is_reported_with_the_form_and_no_password(reference, message):
    with pytest.raises(UnknownSystemError) as caught:
        open.check(reference)
    is_postgres = reference.startswith("postgres")
    product, option = ("postgresql", "sslmode") if is_postgres else ("mysql", "ssl-mode")
    form = f"{product}://USER@HOST[:PORT][,HOST[:PORT]…]/DATABASE[?{option}=MODE]"
    assert message in caught.value.message
    assert caught.value.wanted == form
    assert "hunter" not in str(caught.value)
    if "holds a password" in message:
        assert ("PGPASSWORD" if is_postgres else "MYSQL_PWD") in (caught.value.hint or "")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        found = parse(f"mysql://{text}")
    except UnknownSystemError:
        return
    assert found.user
    assert found.addresses
    assert not set("'`\\") & set(found.database)


def test_the_password_comes_from_the_named_variable_or_the_clients_own(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MYSQL_PWD", "common")
    monkeypatch.setenv("DB1", "own")
    assert credentials(ONE, "DB1").password == "own"
    assert credentials(ONE, "").password == "common"
    monkeypatch.setenv("PGPASSWORD", "of postgres")
    assert credentials(parse("postgresql://u@h/d"), "").password == "of postgres"
    monkeypatch.delenv("MYSQL_PWD")
    assert credentials(ONE, "").password == ""
    with pytest.raises(UsageError, match="the password of bench is not there") as caught:
        credentials(ONE, "DB2")
    assert "DB2" in (caught.value.wanted or "")


POSTGRES = parse("postgresql://u@h/d")


@pytest.mark.parametrize(
    ("reference", "name", "text", "secret"),
    [
        (ONE, ".my.cnf", "[client]\npassword = plain # mine\n", "plain"),
        (ONE, ".my.cnf", "[client]\nuser=bench\npassword='a#\\sb'\n[x]\npassword=y\n", "a# b"),
        (ONE, ".my.cnf", "[client]\nuser=other\npassword=x\n", ""),
        (ONE, ".my.cnf", "[mysqld]\npassword=x\n", ""),
        (POSTGRES, ".pgpass", "#\nh:1:d:u:no\n*:5432:*:u:a\\:b\\\\c\n*:*:*:*:no", "a:b\\c"),
        (POSTGRES, ".pgpass", "h:5432:d\nh:5432:d:v:x\n", ""),
    ],
)
def test_the_password_comes_from_the_clients_own_file(
    reference, name, text, secret, monkeypatch, tmp_path
):
    for variable in ("MYSQL_PWD", "PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = private(tmp_path / name, text)
    assert credentials(reference, "").password == secret
    path.chmod(0o644)
    if not secret:
        assert credentials(reference, "").password == ""
        return
    with pytest.raises(UsageError, match="others may read the password") as caught:
        credentials(reference, "")
    assert secret not in str(caught.value)


def test_a_path_that_depends_on_where_one_stands_is_refused():
    with pytest.raises(UnknownSystemError, match="from the root on") as caught:
        parse("path:mysql")
    assert "did you mean path:/" in (caught.value.hint or "")
    with pytest.raises(UnknownSystemError):
        parse("path:")


DIGEST = "ab" * 32


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("http://example.com/x.tar.gz", "over http others can change the archive"),
        ("tarball:http://example.com/x.tar.gz", "over http others can change the archive"),
        ("https://example.com/x.tar.gz#sha256=12", "is no digest"),
        ("https://example.com/x.tar.gz#", "is no digest"),
        (f"https://example.com/x.tar.gz#md5={DIGEST}", "is no digest"),
        (f"tarball:x.tar.gz#sha256={DIGEST}", "has no address"),
        (f"tarball:ftp://example.com/x.tar.gz#sha256={DIGEST}", "has no address"),
        (f"tarball:#sha256={DIGEST}", "has no address"),
        ("https://example.com", "has no address"),
        ("https:///x.tar.gz", "has no address"),
        ("https://[::1/x.tar.gz", "cannot be read"),
        ("https://me:secret/x.tar.gz", "cannot be read"),
        (f"tarball:https://me:secret@example.com/x.tar.gz#sha256={DIGEST}", "would be stored"),
        ("https://secret@example.com/x.tar.gz", "would be stored"),
        ("file://me:secret@localhost/x.tar.gz", "would be stored"),
        ("https://me:my/secret@example.com/x.tar.gz", "would be stored"),
        ("https://me:my#secret@example.com/x.tar.gz", "would be stored"),
        ("https://example.com/x.tar.gz?a=b&X-Amz-Signature=secret", "would be stored"),
        ("https://example.com/x.tar.gz?access_token=secret", "would be stored"),
    ],
)
def test_a_reference_that_cannot_be_is_refused_with_its_form(reference, message):
    with pytest.raises(UnknownSystemError, match=message) as caught:
        parse(reference)
    assert "#sha256=" in (caught.value.wanted or "")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "address"),
    [
        (" https://example.com/x.tar.gz ", "https://example.com/x.tar.gz"),
        ("tarball:https://example.com/x.zip?mirror=1", "https://example.com/x.zip?mirror=1"),
        ("http://127.0.0.1:8000/x.tar.gz", "http://127.0.0.1:8000/x.tar.gz"),
        ("http://localhost/x.tar.gz", "http://localhost/x.tar.gz"),
        ("file:///home/me@here/x.tar.gz", "file:///home/me@here/x.tar.gz"),
        ("http://example.com/x.tar.gz#sha256=", "http://example.com/x.tar.gz"),
    ],
)
def test_an_archive_is_named_by_its_address_and_may_lack_its_digest(reference, address):
    digest = DIGEST if reference.endswith("=") else ""
    assert parse(f"{reference}{digest.upper()}").source == TarballSource(address, digest)


@given(st.text(max_size=60))
def test_any_address_is_an_archive_s_or_refused(text):
    try:
        read = parse(f"https://{text}")
    except UnknownSystemError:
        return
    assert "@" not in read.text
    assert read.source.name.startswith("https://")


DOCS = Path(__file__).parents[2] / "docs" / "reference" / "servers.md"


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("greatsql:8.0.32-26", "GreatSQL-8.0.32-26-Linux-glibc2.28-x86_64.tar.xz"),
        ("greatsql", "GreatSQL-8.0.32-26-"),
        ("GreatSQL:8.0.25-17", "image's tag 8.0.25-17"),
        ("percona:8.0.36-28", "Percona-Server-8.0.36-28-Linux"),
        ("percona-server:8.0.36-28", "container:percona/percona-server@sha256:HEX"),
        ("tidb:v7.5.1", "tiup playground v7.5.1 --db 3"),
        ("tdsql:8.0", "mysql://USER@HOST:PORT/DATABASE"),
    ],
)
def test_a_server_no_registry_has_is_answered_with_what_to_write(reference, words):
    with pytest.raises(UnknownSystemError, match=r"cannot fetch .* by name") as caught:
        open.check(reference)
    hint = caught.value.hint or ""
    assert words in hint
    assert hint.endswith("see docs/reference/servers.md")
    assert "VERSION" not in hint


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.product)
def test_each_recipe_is_in_the_docs_and_names_no_password(recipe):
    advice = recipe.written_for("")
    assert re.search(r"URL#|container:|mysql://", advice)
    assert not re.search(r"://[^/ ]*:[^/@ ]*@", advice)
    assert recipe.product in DOCS.read_text().lower()
