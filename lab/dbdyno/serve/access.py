"""Who may look at the pages: this machine, or those who have the token.

A local page has two kinds of stranger. Another machine is kept out by listening on loopback; who
wants it otherwise gives a host and a token. A page in the user's own browser can reach loopback by
letting its name point there (DNS rebinding); the name in the request's Host header gives it away.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dbdyno.errors import UsageError

LOOPBACK: Final = "127.0.0.1"
TOKEN_LENGTH_MIN: Final = 16
NAME: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:/@\s]+)(?::\d{1,5})?")


@dataclass(frozen=True)
class Access:
    """Where to listen, and what a visitor must bring.

    Attributes:
        host: address or name to listen on.
        token: what a visitor has to type; None where loopback is the protection.
    """

    host: str = LOOPBACK
    token: str | None = field(default=None, repr=False)

    def allows_host(self, header: str) -> bool:
        """Whether a request under this Host header was meant for us.

        Loopback answers to loopback's names only. Elsewhere any address will do, since a name is
        what rebinding needs, and of names the one that was given.
        """
        named = NAME.fullmatch(header)
        if named is None:
            return False
        name = named["host"].strip("[]").rstrip(".").lower()
        if is_loopback(name):
            return True
        return not is_loopback(self.host) and (_is_address(name) or name == self.host.lower())

    def is_token(self, text: str) -> bool:
        """Whether the text is the token, in a time that does not depend on where they differ."""
        return self.token is not None and hmac.compare_digest(text.encode(), self.token.encode())


def decide(host: str | None, token_file: Path | None) -> Access:
    """Access as it was asked for on the command line.

    Raises:
        UsageError: other machines were to be let in without a token, or the token is no secret.
    """
    token = None if token_file is None else read_token(token_file)
    if host is not None and not is_loopback(host) and token is None:
        raise UsageError(
            "other machines are let in with a token only",
            wanted=f"--host {host} with --token-file FILE",
            found="no --token-file",
            hint="leave --host out, or write a token: "
            "(umask 077; openssl rand -hex 24 > dbdyno-token)",
        )
    return Access(host or LOOPBACK, token)


def read_token(path: Path) -> str:
    """The token in a file: one line that nobody else can read.

    Raises:
        UsageError: the file cannot be read, others can read it, or what it holds is too short.
    """
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(
                "the token's file can be read by others",
                wanted=f"{path.name} for its owner alone",
                found=stat.filemode(path.stat().st_mode),
                hint=f"chmod 600 {path.name}",
            )
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "the token's file cannot be read",
            wanted=f"{path.name}, text of one line",
            found=error.strerror if isinstance(error, OSError) else "bytes that are no text",
            hint="(umask 077; openssl rand -hex 24 > dbdyno-token)",
        ) from error
    if len(token) < TOKEN_LENGTH_MIN or not re.fullmatch(r"[!-~]+", token):
        raise UsageError(
            "this token is no secret",
            wanted=f"one line of {TOKEN_LENGTH_MIN} or more letters, digits and signs",
            found=f"{len(token)} characters",
            hint="(umask 077; openssl rand -hex 24 > dbdyno-token)",
        )
    return token


def is_loopback(host: str) -> bool:
    """Whether the name or address never leaves this machine."""
    name = host.strip("[]").lower()
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
