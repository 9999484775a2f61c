"""Servers that mean harm or are none: they say what a mode has, and keep what they are told."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

Talk = Callable[["Caller"], None]
CAPABILITIES = 0x000FFFFF & ~0x0800  # all of 5.7's, without TLS
PLENTY = 4000
"""Packets of a mode without end; more than any reader takes."""


class Caller:
    """Somebody who connected: packets of the MySQL protocol to and from him."""

    def __init__(self, line: socket.socket, heard: bytearray) -> None:
        self.line, self.heard, self.number = line, heard, 0

    def send(self, payload: bytes) -> None:
        self.raw(struct.pack("<I", len(payload))[:3] + bytes([self.number % 256]) + payload)
        self.number += 1

    def raw(self, text: bytes) -> None:
        self.line.sendall(text)

    def take(self) -> bytes:
        """His next packet."""
        head = self._exactly(4)
        self.number = head[3] + 1
        return self._exactly(int.from_bytes(head[:3], "little"))

    def hear(self) -> None:
        """All he says until he leaves."""
        while text := self.line.recv(65536):
            self.heard += text

    def _exactly(self, count: int) -> bytes:
        text = b""
        while len(text) < count:
            more = self.line.recv(count - len(text))
            if not more:
                raise ConnectionError
            text += more
        self.heard += text
        return text


@contextmanager
def rogue(talk: Talk) -> Iterator[tuple[int, bytearray]]:
    """A server on loopback that talks so to everybody: its port, and what it was told."""
    heard = bytearray()
    listening = socket.create_server(("127.0.0.1", 0))
    lines: list[socket.socket] = []

    def meet(line: socket.socket) -> None:
        with line, suppress(OSError):
            line.settimeout(6)
            talk(Caller(line, heard))
            Caller(line, heard).hear()

    def serve() -> None:
        callers: list[threading.Thread] = []
        with suppress(OSError):
            while True:
                line, _ = listening.accept()
                lines.append(line)
                callers.append(threading.Thread(target=meet, args=(line,), daemon=True))
                callers[-1].start()
        for caller in callers:
            caller.join()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], heard
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for line in lines:  # a caller who has given up may not have closed his end
            with suppress(OSError):
                line.shutdown(socket.SHUT_RD)  # what he said until now is still read
        thread.join(30)


def greeting(
    plugin: bytes = b"mysql_native_password",
    version: bytes = b"8.0.15",
    capabilities: int = CAPABILITIES,
) -> bytes:
    low, high = capabilities & 0xFFFF, capabilities >> 16
    middle = struct.pack("<HBHHB", low, 45, 2, high, 21) + bytes(10)
    return (
        b"\x0a"
        + version
        + b"\0"
        + bytes(4)
        + b"saltsalt\0"
        + middle
        + b"s" * 12
        + b"\0"
        + plugin
        + b"\0"
    )


def switch_to(plugin: bytes, data: bytes = b"s" * 20 + b"\0") -> Talk:
    def talk(caller: Caller) -> None:
        caller.send(greeting())
        caller.take()
        caller.send(b"\xfe" + plugin + b"\0" + data)

    return talk


def says(*packets: bytes) -> Talk:
    """A greeting; then to each of his packets the next of these."""

    def talk(caller: Caller) -> None:
        caller.send(greeting())
        for packet in packets:
            caller.take()
            caller.send(packet)

    return talk


OK = bytes(7)
LOGGED_IN = (OK, OK, OK)  # the login, SET NAMES, SET AUTOCOMMIT


def answers(*packets: bytes) -> Talk:
    """A good login; then these packets at once to whatever is asked."""

    def talk(caller: Caller) -> None:
        says(*LOGGED_IN)(caller)
        caller.take()
        for packet in packets:
            caller.send(packet)

    return talk


def column(name: bytes) -> bytes:
    words = b"".join(bytes([len(word)]) + word for word in (b"def", b"", b"", b"", name, name))
    return words + b"\x0c" + struct.pack("<HIBHBH", 45, 400, 253, 0, 0, 0)


END = b"\xfe\0\0\2\0"
REFUSAL = b"\xff\x15\x04#28000no"
SALT = b"saltsalt" + b"s" * 12


def asks_for_all(caller: Caller) -> None:
    """The whole password, as a server with a cold cache does; sealed with a key of its own."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    caller.send(b"\x01\x04")
    if caller.take() != b"\x02":
        caller.send(REFUSAL)
        return
    caller.send(b"\x01" + pem_of(key))
    caller.heard += opened(key, caller.take())
    caller.send(REFUSAL)


def pem_of(key: rsa.RSAPrivateKey) -> bytes:
    """The public part of a server's key."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def opened(key: rsa.RSAPrivateKey, sealed: bytes) -> bytes:
    """The password in a packet for the owner of this key, with the zero at its end."""
    way = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
    return bytes(a ^ SALT[n % len(SALT)] for n, a in enumerate(key.decrypt(sealed, way)))


def with_a_cold_cache(caller: Caller) -> None:
    caller.send(greeting(b"caching_sha2_password"))
    caller.take()
    asks_for_all(caller)


def switching_to_a_cold_cache(caller: Caller) -> None:
    switch_to(b"caching_sha2_password", SALT + b"\0")(caller)
    caller.take()
    asks_for_all(caller)


def with_a_cold_cache_in_tls(context: ssl.SSLContext) -> Talk:
    """The same, inside TLS with whatever certificate the context has."""

    def talk(caller: Caller) -> None:
        caller.send(greeting(b"caching_sha2_password", capabilities=CAPABILITIES | 0x0800))
        caller.take()
        with context.wrap_socket(caller.line, server_side=True) as line:
            caller.line = line
            caller.take()
            asks_for_all(caller)

    return talk


def postgres_message(kind: bytes, payload: bytes = b"") -> bytes:
    return kind + struct.pack(">I", 4 + len(payload)) + payload


def postgres_asks_for(kind: int, more: bytes = b"") -> Talk:
    def talk(caller: Caller) -> None:
        caller.heard += caller.line.recv(4096)
        caller.raw(postgres_message(b"R", struct.pack(">I", kind) + more))

    return talk


def postgres_with_a_clear_password(caller: Caller) -> None:
    """Asks for the password, and refuses it."""
    postgres_asks_for(3)(caller)
    caller.heard += caller.line.recv(4096)
    caller.raw(postgres_message(b"E", b"SFATAL\0C28P01\0Mno\0\0"))


def postgres_in_tls(context: ssl.SSLContext, talk: Talk) -> Talk:
    """As another, inside TLS, and hears what follows."""

    def inside(caller: Caller) -> None:
        caller.line.recv(8)
        caller.raw(b"S")
        with context.wrap_socket(caller.line, server_side=True) as line:
            caller.line = line
            talk(caller)
            caller.hear()

    return inside


def postgres_with_rounds(rounds: int) -> Talk:
    """SCRAM, whose proof takes so many rounds of a hash."""

    def talk(caller: Caller) -> None:
        postgres_asks_for(10, b"SCRAM-SHA-256\0\0")(caller)
        first = caller.line.recv(4096)
        nonce = first[first.index(b"r=") + 2 :]
        words = b"r=" + nonce + b"more,s=c2FsdHNhbHQ=,i=" + str(rounds).encode()
        caller.raw(postgres_message(b"R", struct.pack(">I", 11) + words))

    return talk


def rows_without_end(caller: Caller) -> None:
    answers(b"\x01", column(b"v"), END)(caller)
    row = b"\xfd\x40\x42\x0f" + b"x" * 1_000_000
    for _ in range(PLENTY):
        caller.send(row)


def rows_that_stop(caller: Caller) -> None:
    """Eight rows of a megabyte, and never the end."""
    answers(b"\x01", column(b"v"), END)(caller)
    for _ in range(8):
        caller.send(b"\xfd\x40\x42\x0f" + b"x" * 1_000_000)
    caller.take()


def packets_without_end(caller: Caller) -> None:
    says(*LOGGED_IN)(caller)
    caller.take()
    for _ in range(PLENTY):
        caller.send(b"x" * 0xFFFFFF)


def trickle(caller: Caller) -> None:
    """A byte now and then: each read succeeds, no answer is ever whole."""
    pause = threading.Event()
    caller.raw(b"\xff\xff\x00\x00")
    for _ in range(PLENTY):
        pause.wait(0.05)
        caller.raw(b"x")


MODES: dict[str, Talk] = {
    "asks for a clear password": switch_to(b"mysql_clear_password"),
    "asks by dialog": switch_to(b"dialog", b"\x04Password: "),
    "asks for an old password": switch_to(b"mysql_old_password", b"saltsalt\0"),
    "asks for a sha256 password": switch_to(b"sha256_password", SALT + b"\0"),
    "greets for a sha256 password": lambda c: (
        c.send(greeting(b"sha256_password")),
        asks_for_all(c),
    )[0],
    "asks for a plugin nobody knows": switch_to(b"no_such_plugin"),
    "asks for a plugin that is no text": switch_to(b"\xff\xfe\x80"),
    "greets for a clear password": lambda c: (
        c.send(greeting(b"mysql_clear_password")),
        c.take(),
        c.send(b"\x01x"),
    )[0],
    "greets for a plugin that is no text": lambda c: c.send(greeting(b"\xff\xfe")),
    "greets with garbage": lambda c: c.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9),
    "greets with nothing": lambda c: c.send(b""),
    "greets with half a packet": lambda c: c.send(greeting()[:20]),
    "greets with an odd version": lambda c: c.send(greeting(version=b"\xff.x")),
    "says nothing": lambda c: None,
    "leaves after the greeting": lambda c: (c.send(greeting()), c.line.shutdown(socket.SHUT_WR))[0],
    "answers the login with nothing": says(b""),
    "answers the login with half an error": says(b"\xff\x15"),
    "answers the login with data": says(b"\x01\x04"),
    "trickles": trickle,
    "answers with nothing": answers(b""),
    "answers with no rows": answers(OK),
    "answers with half a column": answers(b"\x01", b"\x03de", END),
    "answers with no columns' end": answers(b"\x02", column(b"a"), b"\x02"),
    "answers with half a row": answers(b"\x01", column(b"v"), END, b"\xfd\xff"),
    "asks for a file": answers(b"\xfb/etc/passwd"),
    "answers without end": rows_without_end,
    "answers one packet without end": packets_without_end,
}
