"""For every test: chance is drawn the same way each time, and a slow machine is no failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")
