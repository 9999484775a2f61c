"""Charts that are not drawn, for tests that write reports and look at none."""

from __future__ import annotations

import pytest


def patch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chart is blank from here on; drawing takes most of a report's time."""
    monkeypatch.setattr("vl_convert.vegalite_to_svg", lambda *_, **__: "<svg></svg>")
    monkeypatch.setattr("vl_convert.svg_to_png", lambda *_, **__: b"")
    monkeypatch.setattr("dbdyno.report.formats.html.program", str)
