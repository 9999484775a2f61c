"""For the commands: they write reports, and no test here looks at a chart."""

from __future__ import annotations

import pytest

from support import blank_charts


@pytest.fixture(autouse=True)
def _blank_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    blank_charts.patch(monkeypatch)
