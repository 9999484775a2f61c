"""TLS and compression, in the spellings of both sysbenches."""

import pytest

from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Refusal, Values
from dbdyno.sysbench.target import transport

NO_FILES = {"ca": None, "cert": None, "key": None}


def of(**typed):
    options = {name.replace("_", "-"): value for name, value in typed.items()}
    return transport(Values(GLOBAL_TABLE, options))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("off", [{}, {"mysql_ssl": "off"}, {"mysql_ssl": "disabled"}])
def test_nothing_is_said_of_a_plain_connection(off):
    assert of(**off) == ({}, ())


def test_the_switch_of_1_0_takes_the_files_of_the_folder(folder):
    for name in ("cacert.pem", "client-cert.pem", "client-key.pem"):
        (folder / name).touch()
    for value in (None, "on", "1"):
        assert of(mysql_ssl=value, mysql_ssl_cipher="AES256") == (
            {
                "tls": {
                    "mode": "required",
                    "ca": "cacert.pem",
                    "cert": "client-cert.pem",
                    "key": "client-key.pem",
                    "ciphers": "AES256",
                }
            },
            (),
        )


def test_a_certificate_without_its_key_is_left_out(folder):
    (folder / "client-cert.pem").touch()
    found = of(mysql_ssl="on")
    assert found.fields["tls"] == {"mode": "required", **NO_FILES, "ciphers": ""}
    assert found.notes == (
        "--mysql-ssl: encrypted without cacert.pem, client-cert.pem, client-key.pem in this folder",
    )


def test_the_mode_of_1_1_has_files_of_its_own(folder):
    (folder / "a.pem").touch()
    found = of(mysql_ssl="VERIFY_CA", mysql_ssl_ca="a.pem")
    assert found.fields["tls"] == {**NO_FILES, "ca": "a.pem", "mode": "verify_ca", "ciphers": ""}
    assert found.notes == ()


def test_a_file_that_is_not_there_is_said():
    with pytest.raises(Refusal, match=r"--mysql-ssl-key: there is no file 'none\.pem'"):
        of(mysql_ssl="required", mysql_ssl_key="none.pem")


def test_an_unknown_mode_is_an_invalid_option():
    with pytest.raises(Refusal, match=r"invalid option: --mysql-ssl=maybe\n  hint: it takes on"):
        of(mysql_ssl="maybe")


def test_compression_is_zlib_s():
    assert of(mysql_compression=None) == ({"compression": True}, ())
    assert of(mysql_compression_algorithms="zstd") == ({}, ())
    assert of(
        mysql_compression="on", mysql_compression_algorithms="zstd,zlib,uncompressed"
    ).fields == {"compression": True}
    with pytest.raises(Refusal, match="compression by other algorithms than zlib"):
        of(mysql_compression="on", mysql_compression_algorithms="zstd")


def test_every_command_is_protected(sysbench, engine):
    for word in ("prepare", "run", "cleanup", "prewarm"):
        assert sysbench(f"oltp_read_only --mysql-ssl=required --mysql-compression {word}") == 0
        assert engine.specs[-1]["tls"]["mode"] == "required"
        assert engine.specs[-1]["compression"] is True
