"""Reports whose charts nobody looks at."""

import pytest

from support import blank_charts


@pytest.fixture(autouse=True)
def _blank_charts(monkeypatch):
    blank_charts.patch(monkeypatch)
