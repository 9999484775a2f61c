"""An authority, and certificates it signed, made anew for the tests of TLS."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates; keeps all files in one folder that any user may read."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = _named(name)
        self.ca = folder / f"{name}-ca.pem"
        _write(self.ca, self._signed(self._name, self._key, None))

    def issue(self, name: str, host: str) -> tuple[Path, Path]:
        """The files of a certificate for `host`, an address, and of its private key."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        paths = self.folder / f"{name}-cert.pem", self.folder / f"{name}-key.pem"
        _write(paths[0], self._signed(_named(name), key, host))
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        # The form of OpenSSL 1.0, which is all that MySQL 5.7 reads.
        form = serialization.PrivateFormat.TraditionalOpenSSL
        _write(paths[1], key.private_bytes(pem, form, plain))
        return paths

    def _signed(self, name: x509.Name, key: rsa.RSAPrivateKey, host: str | None) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        )
        if host is not None:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
            builder = builder.add_extension(names, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o644)  # the server runs as another user; these keys guard nothing
