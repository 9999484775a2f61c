"""JSON from a stranger: numbers are finite, and whatever is wrong is told in one way."""

from __future__ import annotations

import json
import math

from dbdyno.errors import BundleError


def read(content: bytes, name: str) -> object:
    """The value of a file.

    Args:
        name: the file's, for the message.

    Raises:
        BundleError: it is no JSON, nested too deep, or holds a number that is none.
    """
    try:
        found: object = json.loads(content, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{name} in the bundle is no JSON", found=str(error)[:120]) from error
    return found


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is beyond all numbers")
    return value
