"""The child process behind `network`: `python -m dbdyno.servers.local.relays MS FD=HOST:PORT…`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dbdyno import _engine


def main(arguments: Sequence[str]) -> None:
    """Relay connections from each inherited listener to its target until killed."""
    round_trip_ms, *routes = arguments
    parsed = []
    for route in routes:
        descriptor, _, target = route.partition("=")
        host, _, port = target.rpartition(":")
        parsed.append((int(descriptor), host, int(port)))
    _engine.relay(parsed, float(round_trip_ms))


if __name__ == "__main__":
    main(sys.argv[1:])
