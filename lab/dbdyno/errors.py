"""The errors dbdyno raises on purpose, in a file below all rooms: none imports another for them.

    DbdynoError                       exit 1
    ├── UsageError                    exit 2   the request cannot be carried out
    │   ├── UnknownSystemError                 no such product or version; lists those known
    │   └── PlanError                          a plan's mistakes, all at once, with lines
    ├── ProvisionError                exit 1   a server could not be downloaded or made ready
    ├── ServerError                   exit 1   a server did not start, take its settings or answer
    ├── LoadError                     exit 1   the engine could not load or drive a server
    │   ├── CellError                          this cell cannot be run there; another may
    │   └── LostError                          another machine was lost; the trial is tried again
    ├── StoreError                    exit 1   the workspace cannot be read or written
    │   └── BundleError                        a file is damaged, altered, or no bundle
    ├── Interrupted                   exit 1   the user stopped it; what was measured is kept
    └── GateError                     exit 3   the condition of a gate does not hold
        └── VoidError                 exit 4   what was measured cannot be used to decide it

A message has three parts beside its sentence: wanted, found and hint. A person, a log and a test
read the same words.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Final, NamedTuple

from dbdyno._engine import printable

FOUND_MAX: Final = 4000
BEGINNING_MIN: Final = 3
"""Fewer letters begin too many names."""
ABBREVIATION_MIN: Final = 4
"""Fewer letters are found in the order of almost any name."""


class DbdynoError(Exception):
    """Base of dbdyno's errors: the user can understand and act on them.

    Args:
        message: the failure in a sentence.
        wanted: the request or the condition.
        found: the actual state; of a long quotation the beginning and the end are kept.
        hint: the remedy, a command if possible.
    """

    exit_status: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        wanted: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.wanted = wanted
        self.found = found if found is None else _shortened(found)
        self.hint = hint

    def __str__(self) -> str:
        """Replace control characters: the message may quote a hostile server or file."""
        parts = (("wanted", self.wanted), ("found", self.found), ("hint", self.hint))
        return printable(
            "\n".join([self.message, *(f"  {name}: {text}" for name, text in parts if text)])
        )

    @property
    def one_line(self) -> str:
        return printable("; ".join(t for t in (self.message, self.wanted, self.hint) if t))


def _shortened(text: str) -> str:
    """The text, or both its ends: a hostile program may say megabytes."""
    if len(text) <= FOUND_MAX:
        return text
    return f"{text[: FOUND_MAX // 2]} … {text[-FOUND_MAX // 2 :]}"


class UsageError(DbdynoError):
    """An impossible request, whatever the machine's state."""

    exit_status = 2


class UnknownSystemError(UsageError):
    """A product or version unknown to the catalog, or beyond the engine."""


class PlanMistake(NamedTuple):
    """A plan's mistake and its place.

    Attributes:
        place: the key's path in the plan, such as ``systems[1].settings``.
        message: the mistake and its correction.
        line: line in the plan file, counted from 1; None for the command line.
    """

    place: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line is not None else ""
        return f"{where}{self.place}: {self.message}"


class PlanError(UsageError):
    """All mistakes of a plan at once, in the order of their lines."""

    def __init__(self, source: str, mistakes: list[PlanMistake]) -> None:
        self.source = source
        self.mistakes = sorted(mistakes, key=lambda m: (m.line or 0, m.place))
        count = len(mistakes)
        lines = "\n".join(f"  {mistake}" for mistake in self.mistakes)
        super().__init__(f"{source}: {count} mistake{'s' if count != 1 else ''}\n{lines}")

    def __reduce__(self) -> tuple[type[PlanError], tuple[str, list[PlanMistake]]]:
        """Keep the mistakes on the way from another process."""
        return type(self), (self.source, self.mistakes)


class ProvisionError(DbdynoError):
    """A server could not be made ready: no download, a missing library, a wrong digest."""


class ServerError(DbdynoError):
    """A server did not start, did not take its settings, did not answer, or died."""


class LoadError(DbdynoError):
    """The engine could not log in, load rows or go on driving a server."""


class CellError(LoadError):
    """This load cannot be run on this server, now or later; another load may."""


class LostError(LoadError):
    """A machine of a trial was lost, or can no longer be trusted."""


class StoreError(DbdynoError):
    """The workspace's store cannot be read or written."""


class BundleError(StoreError):
    """A file is no evidence bundle, or was damaged or altered."""


class Interrupted(DbdynoError):  # noqa: N818 - an interruption is not a mistake
    """The user stopped the work; every finished trial is stored."""


class GateError(DbdynoError):
    """A condition checked for the caller does not hold."""

    exit_status = 3


class VoidError(GateError):
    """The condition cannot be checked: the measurement is void."""

    exit_status = 4


def not_installed(subject: str, extra: str, found: object) -> UsageError:
    """Error for work with a missing package of an extra.

    Args:
        subject: the work and its package: "Parquet files take polars".
    """
    return UsageError(
        f"{subject}, which is not installed here",
        wanted=f"dbdyno with its extra `{extra}`",
        found=str(found),
        hint=f"pip install 'dbdyno[{extra}]'",
    )


def did_you_mean(typed: str, names: Collection[str]) -> str:
    """``; did you mean …?`` with the name most like the typed one; empty if no name is like it."""
    near = most_alike(typed, names)
    return f"; did you mean {near}?" if near else ""


def most_alike(typed: str, names: Collection[str]) -> str:
    """The name most like the typed one, for "did you mean"; empty if no name is like it.

    Names that the typed letters begin or abbreviate come first: `prove` is prove-durability, and
    oltp_rw is oltp_read_write. Other names must differ from it by few letters.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake pays for it

    def is_short_for(name: str) -> bool:
        rest = iter(name)
        return all(letter in rest for letter in typed)

    if len(typed) >= BEGINNING_MIN and (begun := [n for n in names if n.startswith(typed)]):
        return min(begun, key=len)
    abbreviated = list(filter(is_short_for, names)) if len(typed) >= ABBREVIATION_MIN else []
    return next(iter(get_close_matches(typed, abbreviated or names, n=1, cutoff=0.6)), "")
