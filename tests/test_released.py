"""What a release wrote is read by this version, and no name that it promised is gone.

DBDYNO_RENEW_GOLDEN=1 writes the JSON documents and tables anew, where a judgement changed on
purpose. Stores, bundles, plan files and names stay as they were released.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbdyno import __version__
from support import released
from support.released import PROMISED, RELEASED

FOLDERS = sorted(RELEASED.glob("*.*.*"))
SENTENCES = {"text", "remedy", "sentence", "answer", "why", "advice"}
"""Keys with wording, which is not promised."""
DOUBTS = {"findings", "reasons"}
"""Keys with findings: a later version may have more checks."""


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_this_version_has_frozen_what_it_promises() -> None:
    hint = "PYTHONPATH=tests .venv/bin/python -m support.released"
    assert RELEASED / __version__ in FOLDERS, hint


def test_files_of_a_release_are_read_and_judged_as_they_were(folder: Path) -> None:
    if os.environ.get("DBDYNO_RENEW_GOLDEN"):
        released.write_outputs(folder)
    now = released.outputs(folder)
    frozen = [path for path in folder.rglob("*") if path.suffix in (".json", ".csv")]
    assert len(frozen) > 10
    for path in frozen:
        name = path.relative_to(folder).as_posix()
        differ = list(differing(parsed(name, path.read_text()), parsed(name, now[name]), name))
        assert differ == []


def test_no_name_of_a_release_is_gone(folder: Path) -> None:
    names, before = (
        names_of(lines)
        for lines in (released.promised(), (folder / PROMISED).read_text().splitlines())
    )
    gone = [
        f"{head}: {name}"
        for head, of_head in before.items()
        for name in of_head
        if not {name, f"{name}?"} & names.get(head, set())
    ]
    assert gone == []
    needed = [
        f"{head}: {name} needs a default, or older files cannot be read"
        for head, of_head in before.items()
        if head.startswith("stored ")
        for name in names[head] - of_head
        if not name.endswith("?")
    ]
    assert needed == []


def test_a_promise_is_written_once(tmp_path: Path) -> None:
    place = tmp_path / __version__
    released.freeze(place)
    written = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert sum(map(len, written.values())) < 400_000
    with pytest.raises(FileExistsError):
        released.freeze(place)
    assert {path: path.read_bytes() for path in written} == written
    test_files_of_a_release_are_read_and_judged_as_they_were(place)


def test_what_is_gone_or_changed_is_seen() -> None:
    before = {"format": 1, "verdicts": [{"word": "worse", "ratio": 0.9, "text": "9 % slower"}]}
    after = {"verdicts": [{"word": "better", "ratio": 0.9 + 1e-9, "text": "slower", "new": 1}]}
    assert list(differing(before, after, "")) == [
        "/format is gone",
        "/verdicts/0/word: 'worse' became 'better'",
    ]
    assert list(differing([1, 2], [1], "")) == [": 2 became 1 long"]


def names_of(lines: list[str]) -> dict[str, set[str]]:
    """The names of each head, which more than one line may have."""
    names: dict[str, set[str]] = {}
    for line in lines:
        head, _, words = line.partition(":")
        names.setdefault(head, set()).update(words.split())
    return names


def parsed(name: str, text: str) -> Any:
    """A JSON document; a table as the values of each column, whose order is not promised."""
    if name.endswith(".json"):
        return json.loads(text)
    heads, *rows = csv.reader(io.StringIO(text))
    return {head: [number(row[place]) for row in rows] for place, head in enumerate(heads)}


def number(text: str) -> float | str:
    return float(text) if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text) else text


def differing(before: Any, after: Any, place: str) -> Iterator[str]:
    """Places of `before` that are gone or have another value in `after`, which may have more."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield f"{place}/{key} is gone"
            elif key not in SENTENCES | DOUBTS:
                yield from differing(value, after[key], f"{place}/{key}")
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{place}: {len(before)} became {len(after)} long"
            return
        for at, (value, other) in enumerate(zip(before, after, strict=True)):
            yield from differing(value, other, f"{place}/{at}")
    elif isinstance(before, float) and isinstance(after, int | float):
        if not math.isclose(before, after, rel_tol=1e-6, abs_tol=1e-9):
            yield f"{place}: {before!r} became {after!r}"
    elif before != after:
        yield f"{place}: {before!r} became {after!r}"
