"""Comparison of a server's effective settings with the requested settings.

A server may round a size, trim a limit to the machine's, or ignore an option it once knew; each
would quietly make another experiment of it. Any difference is therefore an error with the setting,
the requested and the effective value. Only different spellings of a value count as equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers.base import Server, not_taken, rows_of
from dbdyno.servers.mysql.settings import OFF_WORDS, ON_WORDS, lines_of

VARIABLES_OF: Final = {  # an option's variable where it has another name; the first that is shown
    "ssl": ("have_ssl", "tls_version"),  # MySQL 8.4 has no switch left
    "symbolic_links": ("have_symlink",),
    "memlock": ("locked_in_memory",),
    "default_time_zone": ("time_zone",),
    "transaction_isolation": ("transaction_isolation", "tx_isolation"),
}
PLUGINS_ASKED: Final = ("plugin_load", "plugin_load_add", "early_plugin_load")
WITHOUT_VARIABLE: Final = frozenset(  # a server that does not know them does not start
    {
        *PLUGINS_ASKED,
        *("performance_schema_instrument", "innodb_status_file"),
        "character_set_client_handshake",
    }
)
CONSUMER: Final = "performance_schema_consumer_"  # so begin options that have no variable either
NOT_HAD: Final = frozenset({"DISABLED", "NO", ""})
"""Values of switched-off features in variables such as have_ssl."""
UNITS: Final[Mapping[str, int]] = {
    unit: 1024**power for power, unit in enumerate("kmgtpe", start=1)
}


def prove(server: Server, requested: Mapping[str, str]) -> None:
    """Raise ServerError unless every requested setting is in force and every plugin loaded."""
    check(server.label, requested, server.settings())
    if any(name in requested for name in PLUGINS_ASKED):
        check_plugins(server.label, requested, rows_of(server, "SHOW PLUGINS", 4))


def check(label: str, requested: Mapping[str, str], shown: Mapping[str, str]) -> None:
    """Raise ServerError, with every deviating setting and both values, unless all are in force.

    Args:
        shown: all global variables as the server shows them.
    """
    wrong = [
        (
            name,
            text,
            "no such variable" if (value := _effective(name, shown)) is None else repr(value),
        )
        for name, text in requested.items()
        if not _in_force(name, text, shown)
    ]
    if wrong:
        raise not_taken(label, wrong)


def check_plugins(
    label: str, requested: Mapping[str, str], shown: Sequence[tuple[str, ...]]
) -> None:
    """Raise ServerError unless every requested plugin file is loaded and wholly active.

    A server that cannot load a plugin says so in its log and goes on without.

    Args:
        shown: rows of ``SHOW PLUGINS``: name, status, type, file, licence.
    """
    states: dict[str, set[str]] = {}
    for _, status, _, library, *_ in shown:
        states.setdefault(library.removesuffix(".so"), set()).add(status)
    wanted = [library for name in PLUGINS_ASKED for library in _libraries(requested.get(name, ""))]
    lacking = {library: states.get(library) for library in wanted}
    wrong = {library: state for library, state in lacking.items() if state != {"ACTIVE"}}
    if wrong:
        raise ServerError(
            f"{label}: the server did not load {', '.join(wrong)} as asked",
            wanted="; ".join(f"{library}.so is ACTIVE" for library in wrong),
            found="; ".join(
                f"{library}.so is {' and '.join(sorted(state)) if state else 'not loaded'}"
                for library, state in wrong.items()
            ),
            hint="see whether this build of the server has the plugin",
        )


def _libraries(text: str) -> list[str]:
    """Files in lists such as ``name=file.so;other.so``, without their ending."""
    words = [word.strip() for line in lines_of(text) for word in line.split(";")]
    return [word.rpartition("=")[2].removesuffix(".so") for word in words if word]


def _effective(name: str, shown: Mapping[str, str]) -> str | None:
    variables = VARIABLES_OF.get(name, (name,))
    return next((shown[variable] for variable in variables if variable in shown), None)


def _in_force(name: str, requested: str, shown: Mapping[str, str]) -> bool:
    if name in WITHOUT_VARIABLE or name.startswith(CONSUMER):
        return True
    effective = _effective(name, shown)
    if effective is None:
        return False
    if name in {"ssl", "symbolic_links"}:
        return (effective in NOT_HAD) == (requested.lower() in OFF_WORDS)
    if name == "log_bin":  # given as a file name, shown as a switch
        return (effective == "OFF") == (requested.lower() in OFF_WORDS)
    if name in {"sql_mode", "optimizer_switch"}:
        return _contains(effective, requested)
    *_, last = lines_of(requested)  # of a key given several times the variable shows the last
    return same_value(last, effective)


def same_value(requested: str, effective: str) -> bool:
    """Test for the same value in two spellings: 256M and 268435456, 1 and ON, row and ROW."""
    if _spelled_out(requested) == _spelled_out(effective):
        return True
    if offset := re.fullmatch(r"([+-])(\d:\d\d)", requested):  # of a time zone
        return f"{offset[1]}0{offset[2]}" == effective
    if _truth(requested) is not None and _truth(requested) == _truth(effective):
        return True
    left, right = _number(requested), _number(effective)
    return left is not None and left == right


def _spelled_out(text: str) -> str:
    """In small letters; character sets and collations under the name that all versions know."""
    return re.sub(r"^utf8(?=_|$)", "utf8mb3", text.casefold())


def _truth(text: str) -> bool | None:
    word = text.casefold()
    return True if word in ON_WORDS else False if word in OFF_WORDS else None


def _number(text: str) -> float | None:
    """A number with an optional unit of 1024; exact below 2**53."""
    match = re.fullmatch(r"([+-]?\d+(?:\.\d+)?)([kmgtpe]?)", text.casefold())
    if match is None:
        return None
    number, unit = match.groups()
    return float(number) * float(UNITS.get(unit, 1))


def _contains(effective: str, requested: str) -> bool:
    """True if the effective list, with TRADITIONAL and the like spelled out, has all words."""
    wanted = {word.strip().casefold() for word in requested.split(",") if word.strip()}
    listed = {word.strip().casefold() for word in effective.split(",") if word.strip()}
    return wanted <= listed if wanted else not listed
