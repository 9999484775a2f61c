"""Random draws from a plan's seed: the same names give the same number on every machine.

A draw is SHA-256 of seed and names, so it depends on no version of Python and on no other draw.
"""

from __future__ import annotations

import hashlib


def draw(*about: object) -> int:
    """64 bits determined by their arguments alone."""
    text = "dbdyno/1/" + "/".join(map(str, about))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
