"""What every chart must hold: valid Vega-Lite, no address, sentences that can be told again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import vl_convert

from dbdyno.language.words import Said
from dbdyno.report.charts.drawing import VEGA_LITE
from dbdyno.report.parts import Figure


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
    """Compiled by Vega-Lite without a complaint, JSON, and described in sentences."""
    json.dumps(figure.spec, allow_nan=False)
    assert complaints(dict(figure.spec)) == ""
    assert isinstance(figure.title, Said)
    assert isinstance(figure.description, Said)
    assert isinstance(figure.note, Said)
    assert figure.description.startswith(figure.title)


def complaints(spec: dict[str, Any]) -> str:
    """What Vega-Lite's compiler warns of, which it writes to the process's stderr.

    Raises:
        ValueError: it cannot compile the specification.
    """
    with tempfile.TemporaryFile() as told:
        stderr = os.dup(2)
        os.dup2(told.fileno(), 2)
        try:
            vl_convert.vegalite_to_vega(spec, vl_version=VEGA_LITE, show_warnings=True)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        told.seek(0)
        return told.read().decode()


def _rows(part: object) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if isinstance(part.get("values"), list) and part["values"]:
            yield from (row for row in part["values"] if isinstance(row, dict))
        for inner in part.values():
            yield from _rows(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _rows(inner)
