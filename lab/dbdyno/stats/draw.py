"""Chance that a plan's seed decides: the same draw for the same question, always and everywhere.

A draw is SHA-256 of what it is about, so it changes with no version of Python, and a draw that is
added leaves all others as they were.
"""

from __future__ import annotations

import hashlib


def draw(*about: object) -> int:
    """64 bits that depend on nothing but their arguments."""
    text = "dbdyno/1/" + "/".join(map(str, about))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
