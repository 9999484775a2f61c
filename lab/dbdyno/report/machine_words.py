"""What a report calls the machine's features, which the store keeps under short English names.

A stored run knows nothing of languages. So what `bench.environment` wrote down is looked up here;
names that are not in the table, and values that are names themselves, stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dbdyno.language.words import Text, listed, name, say

FEATURES: Final[Mapping[str, Text]] = {
    "cpu": say("cpu"),
    "cores": say("cores"),
    "memory": say("memory"),
    "swap": say("swap"),
    "kernel": say("kernel"),
    "distribution": say("distribution"),
    "virtualisation": say("virtualisation"),
    "governor": say("governor"),
    "clocksource": say("clocksource"),
    "filesystem": say("filesystem"),
}
VALUES: Final[Mapping[str, Text]] = {
    "unknown": say("unknown"),
    "none seen": say("none seen"),
    "virtual machine": say("virtual machine"),
    "container": say("container"),
}
PRODUCT: Final = re.compile(r"virtual machine \((.+)\)")
CORES: Final = re.compile(r"(\d+) logical, (\d+) usable")


def what(feature: str) -> Text:
    """A feature's name."""
    return FEATURES.get(feature, name(feature))


def found(value: str) -> Text:
    """What was found, in words where they are known."""
    if cores := CORES.fullmatch(value):
        return say("{logical} logical, {usable} usable", logical=cores[1], usable=cores[2])
    parts = [_found(part) for part in value.split(", ")]
    return listed(part or name("") for part in parts) if all(parts) else name(value)


def _found(value: str) -> Text | None:
    """One thing that was found; None where it is no known word."""
    if product := PRODUCT.fullmatch(value):
        return say("virtual machine ({product})", product=product[1])
    return VALUES.get(value)
