"""Effects of options: on the statements of an event, and none at all, which is told in notes.

Published lines have options of another test, driver or version, and sysbench drops them without a
word. An option with its default value is left out. Options of events are judged with the command
`run` only: scripts give all commands the same line.
"""

from __future__ import annotations

from dbdyno.sysbench.options.command_line import RENAMED
from dbdyno.sysbench.options.table import (
    LEGACY,
    LEGACY_ONE_TABLE,
    ONE_TABLE,
    OWN,
    WORKLOAD,
    is_legacy,
)
from dbdyno.sysbench.options.values import Values, boolean, canonical, whole
from dbdyno.sysbench.typed import TYPE_CHECKING

if TYPE_CHECKING:
    Reasons = list[tuple[str, list[str]]]
    """Why options have no effect, and their names."""

_WITHOUT_EFFECT = ("thread-stack-size", "validate", "db-debug")
_WITHOUT_EFFECT_ON_TESTS = ("oltp-connect-delay", "rand-init", "init-rng")
_PREFIXES = {"mysql": "pgsql-", "pgsql": "mysql-"}
"""Drivers, and the beginning of the other's options."""
_OF_BOTH_DRIVERS = ("mysql-dry-run", "mysql-debug")
_OF_TLS = ("mysql-ssl-ca", "mysql-ssl-cert", "mysql-ssl-key", "mysql-ssl-cipher")
_PARAMETERS = {
    "rand-spec-iter": ("special", "gaussian"),
    "rand-spec-pct": ("special",),
    "rand-spec-res": ("special",),
    "rand-pareto-h": ("pareto",),
    "rand-zipfian-exp": ("zipfian",),
}

_OF_TABLES = (
    *("auto-inc", "create-secondary", "create-table-options", "mysql-storage-engine"),
    *("reconnect", "secondary", "table-size", "tables"),
)
_RANGES = ("range-selects", "range-size", "simple-ranges", "sum-ranges", "order-ranges")
_READS = ("point-selects", *_RANGES, "distinct-ranges", "skip-trx")
_WRITES = ("index-updates", "non-index-updates", "delete-inserts", "skip-trx")
_OF_EVENTS: dict[str, tuple[str, ...]] = {
    "oltp_read_write": (*_READS, *_WRITES),
    "oltp_read_only": _READS,
    "oltp_write_only": _WRITES,
    "oltp_update_index": ("index-updates",),
    "oltp_update_non_index": ("non-index-updates",),
}
_LEGACY_TABLES = (
    *("oltp-table-size", "oltp-tables-count", "oltp-auto-inc", "oltp-secondary"),
    *("oltp-create-secondary", "mysql-table-engine", "mysql-table-options", "myisam-max-rows"),
)
_OF_LEGACY_EVENTS = {
    LEGACY + "select_random_points": ("random-points",),
    LEGACY + "select_random_ranges": ("number-of-ranges", "random-ranges-delta"),
}


def notes_without_effect(
    values: Values, own: Values, test: str | None, command: str | None
) -> list[str]:
    """A sentence for each reason.

    Args:
        test: a built-in test; None for a script, which may read any option.
    """
    typed = values.changed()
    reasons: Reasons = [("in dbdyno", _among(_WITHOUT_EFFECT, typed))]
    of_test = own.changed() if test else []
    driver = values.text("db-driver") or "mysql"
    if prefix := _PREFIXES.get(driver):
        strange = [name for name in (*typed, *of_test) if name.startswith(prefix)]
        strange = [name for name in strange if name not in _OF_BOTH_DRIVERS]
        reasons.append((f"with --db-driver={driver}", strange))
        of_test = [name for name in of_test if name not in strange]
    if driver == "mysql":
        reasons += _of_connections(values, typed)
    if command == "run":
        reasons += _of_run(values, typed)
    if command == "run" and test is not None:
        reasons += _of_test(test, values, own, of_test)
    return [
        f"{', '.join(f'--{name}' for name in names)}: no effect {reason}"
        for reason, names in reasons
        if names
    ]


def _among(names: tuple[str, ...], typed: list[str]) -> list[str]:
    return [name for name in typed if name in names]


def _of_connections(values: Values, typed: list[str]) -> Reasons:
    reasons: Reasons = []
    if values.items("mysql-socket"):
        reasons.append(("beside --mysql-socket", _among(("mysql-host", "mysql-port"), typed)))
    mode = values.raw("mysql-ssl")
    if boolean(mode) is False or (mode or "").lower() == "disabled":
        files = _among(_OF_TLS, typed)
        reasons.append(("without --mysql-ssl: connections are not encrypted", files))
    if not values.flag("mysql-compression"):
        algorithms = _among(("mysql-compression-algorithms",), typed)
        reasons.append(("without --mysql-compression", algorithms))
    return reasons


def _of_run(values: Values, typed: list[str]) -> Reasons:
    reasons: Reasons = []
    time_s = values.integer("time")
    if not time_s:
        reasons.append(("without --time", _among(("forced-shutdown",), typed)))
    if values.text("report-interval") in ("", "0"):
        reasons.append(("without --report-interval", _among(("percentile-format",), typed)))
    if values.text("output") != "text" and not values.text("output-file"):
        shapes = _among(("histogram", "detail", "report-checkpoints"), typed)
        reasons.append(("without a text: give --output-file too", shapes))
    late = [at for at in values.items("report-checkpoints") if 0 < time_s <= int(at)]
    checkpoints = ["report-checkpoints"] if late else []
    return [*reasons, (f"at {', '.join(late)} s, when the run is over", checkpoints)]


def _of_test(test: str, values: Values, own: Values, typed: list[str]) -> Reasons:
    distribution = values.text("rand-type")
    idle = [
        name
        for name in values.changed()
        if name in _PARAMETERS and distribution not in _PARAMETERS[name]
    ]
    # By the names of sysbench 0.4, where they were typed so.
    old = {current: name for name, current in RENAMED.items() if own.was_typed(name)}
    idle = [old.get(name, name) for name in idle]
    used = _used_by(test, own.text("oltp-test-mode") if is_legacy(test) else "")
    if test != ONE_TABLE:  # `Legacy.notes` has these
        used |= {option.name for option in LEGACY_ONE_TABLE}
    strange = [name for name in typed if name not in used and name not in RENAMED]
    return [
        (f"with --rand-type={distribution}", idle),
        ("in dbdyno", _among(_WITHOUT_EFFECT_ON_TESTS, typed)),
        (
            f"on {test.removeprefix(LEGACY)}",
            [name for name in strange if name not in _WITHOUT_EFFECT_ON_TESTS],
        ),
    ]


def _used_by(test: str, mode: str) -> set[str]:
    """The own options that shape a test's tables or events, as they are looked up.

    Args:
        mode: of sysbench 0.4's test, where only the mode complex counts its statements.
    """
    if test in ("bulk_insert", LEGACY + "bulk_insert"):
        return {"reconnect"}
    if test == "oltp_common":
        return {canonical(option.name) for option in WORKLOAD}
    if not is_legacy(test):
        own = (canonical(option.name) for option in OWN.get(test, ()))
        return {*_OF_TABLES, *_OF_EVENTS.get(test, ()), *own}
    used = {*_LEGACY_TABLES, *_OF_LEGACY_EVENTS.get(test, ())}
    if test == ONE_TABLE:
        used |= {option.name for option in LEGACY_ONE_TABLE} - {"oltp-sp-name"}
        used -= set() if mode == "nontrx" else {"oltp-nontrx-mode"}
    if test == LEGACY + "oltp" or (test == ONE_TABLE and mode == "complex"):
        used |= {f"oltp-{name}" for name in (*_READS, *_WRITES, "read-only", "write-only")}
    return used


def statements_of_event(test: str, own: Values) -> int:
    """Statements of an event, BEGIN and COMMIT included; Refusal for a value that is no number."""
    prefix = "oltp-" if is_legacy(test) else ""

    def times(*names: str) -> int:
        return sum(whole(own, f"{prefix}{name}") for name in names)

    if test in ("oltp_update_index", "oltp_update_non_index"):
        return times(f"{test.removeprefix('oltp_update_').replace('_', '-')}-updates")
    if is_legacy(test):
        is_complex = test == ONE_TABLE and own.text("oltp-test-mode") == "complex"
        is_mix = is_complex or test == LEGACY + "oltp"
        reads, writes = not own.flag("oltp-write-only"), not own.flag("oltp-read-only")
    else:
        is_mix = test in ("oltp_read_write", "oltp_read_only", "oltp_write_only")
        reads, writes = test != "oltp_write_only", test != "oltp_read_only"
    if not is_mix:
        return 1
    statements = 0 if own.flag(f"{prefix}skip-trx") else 2
    if reads:
        statements += times("point-selects")
    if reads and own.flag(f"{prefix}range-selects"):
        statements += times("simple-ranges", "sum-ranges", "order-ranges", "distinct-ranges")
    if writes:
        statements += times("index-updates", "non-index-updates") + 2 * times("delete-inserts")
    return statements
