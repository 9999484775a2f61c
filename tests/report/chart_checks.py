"""What every chart must hold: valid Vega-Lite, no address, sentences that can be told again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import altair

from dbdyno.report.parts import Figure
from dbdyno.words import Said


def rows(figure: Figure) -> list[dict[str, Any]]:
    """All rows of data in the specification, in their order."""
    return list(_rows(figure.spec))


def panels(figure: Figure) -> list[dict[str, Any]]:
    """The panels that stand side by side; the chart itself where it is one."""
    spec = dict(figure.spec)
    return list(spec.get("concat") or spec.get("vconcat") or [spec])


def titles(figure: Figure) -> list[str]:
    """What stands above each panel."""
    return [one["text"] for panel in panels(figure) if isinstance(one := panel["title"], dict)]


def assert_sound(figure: Figure) -> None:
    """Valid by the schema of Vega-Lite, JSON, and described in sentences."""
    json.dumps(figure.spec, allow_nan=False)
    altair.Chart.from_dict(dict(figure.spec))
    assert isinstance(figure.title, Said)
    assert isinstance(figure.description, Said)
    assert isinstance(figure.note, Said)
    assert figure.description.startswith(figure.title)


def _rows(part: object) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if isinstance(part.get("values"), list) and part["values"]:
            yield from (row for row in part["values"] if isinstance(row, dict))
        for inner in part.values():
            yield from _rows(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _rows(inner)
