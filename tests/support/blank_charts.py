"""Charts that are not drawn, for tests that write reports and look at none."""

from __future__ import annotations

import pytest


def patch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chart is blank from here on; drawing takes most of a report's time."""
    blank = ("<svg></svg>", b"")
    monkeypatch.setattr("dbdyno.report.charts.converter.drawn", lambda *_: blank)
    monkeypatch.setattr("dbdyno.report.formats.html.program", str)
