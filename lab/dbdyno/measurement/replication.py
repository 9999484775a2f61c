"""Counters of replication by name, and the merging of the readings at a window's edges.

Making (`servers`, `experiment`) and judging (`judge`) share these names and nothing else.
A reading is taken at both edges of the measured window. Of a counter the growth is kept; of a
state the worse of the two, because a promise broken at one edge did not hold over the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

REPLICAS_RUNNING: Final = "replicas_running"
"""Replicas that receive and apply; those of a group that are online besides the primary."""
TRANSACTIONS_BEHIND: Final = "transactions_behind"
"""Transactions of the primary that the slowest replica has not applied."""
SEMISYNC_ON: Final = "semisync_on"
"""1 while commits wait for a replica, 0 once the primary has given up waiting."""
SEMISYNC_REPLICAS: Final = "semisync_replicas"
"""Connected replicas that acknowledge what they received."""
COMMITS_ACKNOWLEDGED: Final = "commits_acknowledged"
"""Commits that a replica acknowledged before the client got its answer."""
COMMITS_NOT_ACKNOWLEDGED: Final = "commits_not_acknowledged"
"""Commits that the client got an answer for, possibly without a replica having them."""
TIMES_OFF: Final = "times_semisync_ended"
"""How often the primary gave up waiting."""
AFTER_SYNC: Final = "waits_after_sync"
"""1 when a commit waits before others can read its rows, 0 when it waits after."""
TIMEOUT_S: Final = "semisync_timeout_s"
"""How long a commit waits before the primary goes on alone."""

EDGES: Final[Mapping[str, Literal["growth", "least", "most", "end"]]] = {
    REPLICAS_RUNNING: "least",
    TRANSACTIONS_BEHIND: "end",
    SEMISYNC_ON: "least",
    SEMISYNC_REPLICAS: "least",
    COMMITS_ACKNOWLEDGED: "growth",
    COMMITS_NOT_ACKNOWLEDGED: "growth",
    TIMES_OFF: "growth",
    AFTER_SYNC: "least",
    TIMEOUT_S: "most",
}
"""How the readings at the window's two edges become one number."""


def waits_uncounted(seen: Mapping[str, float]) -> bool:
    """True if commits wait, without limit and uncounted, for a replica's answer (PostgreSQL)."""
    return SEMISYNC_ON in seen and COMMITS_ACKNOWLEDGED not in seen


def over_window(begin: Mapping[str, float], end: Mapping[str, float]) -> dict[str, float]:
    """The window's numbers from the readings at its edges, of counters present in both."""
    return {
        name: _of_edges(way, begin[name], end[name])
        for name, way in EDGES.items()
        if name in begin and name in end
    }


def _of_edges(way: str, begin: float, end: float) -> float:
    if way == "growth":
        return end - begin
    if way == "least":
        return min(begin, end)
    return max(begin, end) if way == "most" else end
