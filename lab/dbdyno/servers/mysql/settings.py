"""A MySQL's or MariaDB's configuration: dbdyno's common settings with the user's laid over them.

The common settings make servers comparable: same memory, same redo space, same durability, same
character set, no binary log, no feature that a single version switches on by itself. A version's
choices for its own engine (flushing, adaptive hash index, I/O capacity) are left alone, since they
are part of the comparison.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.settings import SettingValue
from dbdyno.servers.base import refuse_owned, unique_settings
from dbdyno.servers.mysql.versions import REDO_CAPACITY, REDO_PAIR, Family, family_of
from dbdyno.servers.programs.catalog import CatalogEntry
from dbdyno.servers.programs.identify import files_of

COMMON: Final[Mapping[str, str]] = {
    "innodb_buffer_pool_size": "256M",
    "innodb_flush_method": "O_DIRECT",
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_doublewrite": "ON",
    "innodb_buffer_pool_dump_at_shutdown": "OFF",  # every start begins with the same empty pool
    "innodb_buffer_pool_load_at_startup": "OFF",
    "log_bin": "OFF",  # on by default from 8.0, off before
    "sync_binlog": "1",
    "server_id": "1",
    "performance_schema": "OFF",
    "ssl": "OFF",
    "skip_name_resolve": "ON",
    "local_infile": "ON",  # off by default from 8.0: rows are then loaded the same way everywhere
    "max_connections": "1024",
    "max_prepared_stmt_count": "1000000",
    "table_open_cache": "2000",
    "transaction_isolation": "REPEATABLE-READ",
    "character_set_server": "utf8mb4",
    "collation_server": "utf8mb4_general_ci",
}
BINLOGGED: Final = {"binlog_format": "ROW", "binlog_checksum": "CRC32"}  # not so by default in all
AT_INITIALISATION: Final = (  # cannot be changed once the data directory exists
    "innodb_page_size",
    "innodb_data_file_path",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
)
AT_LOADING: Final = (  # a table takes them as it is made; arms begin on copies of loaded ones
    "innodb_file_per_table",
    "innodb_default_row_format",
    "character_set_server",
    "collation_server",
    "default_storage_engine",
    "default_table_encryption",
)
FORMAT: Final = (  # what decides the bytes of a data directory
    *AT_INITIALISATION,
    *AT_LOADING,
    "innodb_checksum_algorithm",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_redo_log_capacity",
)
OWNED: Final = frozenset(  # where an instance's files are is the lab's business
    {
        *("basedir", "datadir", "socket", "pid_file", "log_error", "tmpdir", "init_file"),
        *("lc_messages_dir", "character_sets_dir", "bind_address", "networking", "user"),
        *("defaults_file", "defaults_extra_file", "defaults", "no_defaults", "grant_tables"),
        *("innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory"),
        *("initialize", "initialize_insecure", "daemonize", "bootstrap", "plugin_dir"),
    }
)
REAL_SKIP: Final = frozenset(
    {"skip_name_resolve", "skip_external_locking", "skip_show_database", "skip_networking"}
)
ON_WORDS: Final = frozenset({"1", "on", "true", "yes"})
OFF_WORDS: Final = frozenset({"0", "off", "false", "no"})


class SeveralValues(str):
    """Values of a key given several times, a line each; no user's text holds a line break."""

    __slots__ = ()


def effective(entry: CatalogEntry, requested: Mapping[str, SettingValue]) -> dict[str, str]:
    """All settings given to the server, by variable name: the common ones, then the user's.

    Raises:
        UsageError: a key belongs to the lab, is malformed or given twice, or a value cannot stand
            in a configuration file.
    """
    own = normalise(requested)
    refuse_owned(entry.reference, own, OWNED)
    return {**_common(entry, own), **own}


def _common(entry: CatalogEntry, own: Mapping[str, str]) -> dict[str, str]:
    family = family_of(entry.product, entry.version_numbers)
    common = {**COMMON, **family.common}
    if family.redo is not REDO_CAPACITY or not REDO_PAIR.keys() & own.keys():
        common |= family.redo  # a capacity would silently overrule the old pair
    if own.get("log_bin", "OFF").lower() not in OFF_WORDS:
        common |= BINLOGGED
    if "character_set_server" in own:
        del common["collation_server"]  # may not fit the user's character set
    return common


def normalise(requested: Mapping[str, SettingValue]) -> dict[str, str]:
    """Keys as variable names, values as text: ``skip-log-bin: true`` becomes ``log_bin: OFF``."""
    return unique_settings((key, *_normal(key, value)) for key, value in requested.items())


def _normal(key: str, value: SettingValue) -> tuple[str, str]:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", key):
        raise UsageError(f"{key!r} is not the name of a setting")
    text = _text(key, value)
    name = key.lower().replace("-", "_").removeprefix("loose_")  # proven, so never loose
    if name in REAL_SKIP:
        return name, text or "ON"
    for prefix, word in (("skip_", "OFF"), ("disable_", "OFF"), ("enable_", "ON")):
        if name.startswith(prefix):
            return name.removeprefix(prefix), _switched(key, text, word)
    return name, text


def _text(key: str, value: SettingValue) -> str:
    if value == ():
        raise UsageError(f"{key} is given no value", hint="leave the key out")
    if isinstance(value, tuple):
        return SeveralValues("\n".join(_text(key, part) for part in value))
    if isinstance(value, SeveralValues):  # checked before
        return value
    text = ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
    if not text.isprintable() or '"' in text:
        raise UsageError(f"{key}: {text!r} cannot stand in a configuration file")
    return text


def _switched(key: str, text: str, word: str) -> str:
    """Value of x by its switch ``skip_x`` (word OFF) with the given text."""
    if text.lower() in ON_WORDS or text == "":
        return word
    if text.lower() in OFF_WORDS:
        return "OFF" if word == "ON" else "ON"
    raise UsageError(f"{key} takes no value but ON or OFF", found=repr(text))


def is_local(settings: Mapping[str, str]) -> bool:
    """True if the server can be reached through its Unix socket alone."""
    return settings.get("skip_networking", "OFF").lower() not in OFF_WORDS


def data_format(_: CatalogEntry, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that decide the bytes of a data directory."""
    return {name: settings[name] for name in FORMAT if name in settings}


def fixed(_: CatalogEntry, settings: Mapping[str, str]) -> str:
    """The settings that are fixed once a data directory exists with its tables; for messages."""
    first = {
        name: settings[name]
        for name in (*AT_INITIALISATION, *AT_LOADING)
        if name in settings and settings[name] != COMMON.get(name)
    }
    return ", ".join(f"{name} = {text}" for name, text in sorted(first.items()))


def at_initialisation(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings needed when a data directory is made."""
    return {name: settings[name] for name in AT_INITIALISATION if name in settings}


def check_tables_apart(label: str, settings: Mapping[str, str]) -> None:
    """Raise ServerError unless tables have files of their own, by which they are measured."""
    if settings.get("innodb_file_per_table", "ON").lower() in OFF_WORDS:
        raise ServerError(
            f"{label}: how large the loaded tables are is not known",
            wanted="innodb_file_per_table ON: a file for each table",
            found="OFF: all of them in one file with much else",
            hint="give the size of buffer_pool in bytes, such as 1G",
        )


def places_of(entry: CatalogEntry, home: Path, work: Path, socket: Path) -> dict[str, str]:
    """Settings for the places of an instance's files; they belong to the lab."""
    files = files_of(home / entry.program)
    owned = {
        "basedir": files.base,
        "datadir": work / "data",
        "socket": socket,
        "pid_file": work / "pid",
        "log_error": work / "err.log",
        "tmpdir": work / "tmp",
        "lc_messages_dir": files.share,
        "character_sets_dir": files.share / "charsets",
        "bind_address": "127.0.0.1",
        "secure_file_priv": "",
    }
    if files.plugins is not None:
        owned["plugin_dir"] = files.plugins
    if family_of(entry.product, entry.version_numbers).x_protocol:
        owned["mysqlx"] = "OFF"
    return {name: str(value) for name, value in owned.items()}


def render(settings: Mapping[str, str], family: Family) -> str:
    """Text of a my.cnf, in the words of a family."""
    lines = (
        _line(name, text, family) for name, texts in settings.items() for text in lines_of(texts)
    )
    return "\n".join(["[mysqld]", *lines, ""])


def lines_of(text: str) -> list[str]:
    """Values of a key given several times, in order; else its single value."""
    return text.splitlines() if isinstance(text, SeveralValues) else [text]


def _line(name: str, text: str, family: Family) -> str:
    switched = text.lower() in OFF_WORDS, text.lower() in ON_WORDS or text == ""
    if name == "ssl" and any(switched):
        return family.tls_off if switched[0] else family.tls_on
    if name == "log_bin" and any(switched):  # ON would be the name of a file
        return "skip_log_bin" if switched[0] else "log_bin=binlog"
    if re.fullmatch(r"[\w.,:/+-]+", text):
        return f"{name}={text}"
    escaped = text.replace("\\", "\\\\")
    return f'{name}="{escaped}"'
