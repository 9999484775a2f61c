"""sysbench's latency histogram: 1.8 % steps from 1 us on, a bar of at most 40 stars, a count.

Its grid is made from our finer counts. sysbench's own ends at 100 s and puts all that is longer
into the last row; here the grid goes on.
"""

from __future__ import annotations

import math
from collections import Counter

from dbdyno._engine import Histogram

_NS_PER_MS = 1e6
_MS_MIN = 0.001
_STEP = math.log(1e8) / 1023
"""sysbench divides 0.001 ms to 100 s into 1024 rows whose logarithms are equally far apart."""
_BAR = 40


def histogram(latency: Histogram) -> str:
    """The block that stands before the statistics; ends with sysbench's line of one blank."""
    rows: Counter[int] = Counter()
    for middle_ns, count in latency.recorded():
        rows[_row(middle_ns / _NS_PER_MS)] += count
    most = max(rows.values(), default=0)
    lines = [
        "Latency histogram (values are in milliseconds)",
        "       value  ------------- distribution ------------- count",
    ]
    for row, count in sorted(rows.items()):
        bar = "*" * math.floor(_BAR * count / most + 0.5)
        lines.append(f"{_MS_MIN * math.exp(row * _STEP):12.3f} |{bar:<{_BAR}} {count}")
    return "\n".join([*lines, " "])


def _row(latency_ms: float) -> int:
    if latency_ms <= _MS_MIN:
        return 0
    return math.floor(math.log(latency_ms / _MS_MIN) / _STEP + 0.5)
