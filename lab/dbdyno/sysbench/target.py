"""How connections are protected and packed: ``--mysql-ssl*`` and ``--mysql-compression*``.

In sysbench 1.0 ``--mysql-ssl`` is a switch and takes three files from the working directory; in 1.1
it is a mode and the files are options. Both spellings work in both.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from dbdyno.sysbench.options.not_yet import refusal
from dbdyno.sysbench.options.refusal import argument_error, fatal
from dbdyno.sysbench.options.values import Values, boolean

MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_FILES_OF_1_0 = {"ca": "cacert.pem", "cert": "client-cert.pem", "key": "client-key.pem"}


class Transport(NamedTuple):
    """Fields of the engine's specs, and what a person should know of them."""

    fields: dict[str, Any]
    notes: tuple[str, ...]


def transport(values: Values) -> Transport:
    """The fields that differ from a plain connection.

    Raises:
        Refusal: a mode is unknown, or a named file is not there.
    """
    tls, notes = _tls(values)
    fields: dict[str, Any] = {} if tls is None else {"tls": tls}
    if _compresses(values):
        fields["compression"] = True
    return Transport(fields, notes)


def _tls(values: Values) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    mode, is_switch = _mode(values)
    if mode == "disabled":
        return None, ()
    files = {name: values.text(f"mysql-ssl-{name}") or None for name in _FILES_OF_1_0}
    for name, path in files.items():
        if path and not _is_there(path):
            raise fatal(f"Invalid value for --mysql-ssl-{name}: there is no file '{path}'.")
    notes: tuple[str, ...] = ()
    if is_switch and not any(files.values()):
        there = {name: path for name, path in _FILES_OF_1_0.items() if _is_there(path)}
        if not {"cert", "key"} <= set(there):
            there = {name: path for name, path in there.items() if name == "ca"}
        files = {name: there.get(name) for name in _FILES_OF_1_0}
        if missing := [path for name, path in _FILES_OF_1_0.items() if name not in there]:
            notes = (f"--mysql-ssl: encrypted without {', '.join(missing)} in this folder",)
    return {"mode": mode, **files, "ciphers": values.text("mysql-ssl-cipher")}, notes


def _mode(values: Values) -> tuple[str, bool]:
    """The mode, and whether it was given as 1.0's switch."""
    raw = values.raw("mysql-ssl")
    switch = boolean(raw)
    if switch is not None:
        return ("required" if switch else "disabled"), True
    mode = (raw or "").lower()
    if mode not in MODES:
        hint = f"  hint: it takes on, off, {', '.join(MODES)}"
        raise argument_error(f"invalid option: --mysql-ssl={raw}", hint)
    return mode, False


def _compresses(values: Values) -> bool:
    if not values.flag("mysql-compression"):
        return False
    algorithms = values.items("mysql-compression-algorithms")
    if "zlib" not in algorithms:
        named = f"--mysql-compression-algorithms={','.join(algorithms)}"
        raise refusal(named, "compression by other algorithms than zlib")
    return True


def _is_there(path: str) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - pathlib costs a fifth of the start-up time
