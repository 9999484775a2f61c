"""Functions of a server ranked by their share of a difference in CPU per transaction.

Sampled stacks give each function's own CPU per transaction in every block; differences have
intervals over the blocks, which hold together for all functions shown.
"""

from __future__ import annotations

from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import Noun


class FunctionCost(Noun):
    """A function's own CPU (`perf`) or time (`gdb`) per transaction, in µs.

    Attributes:
        difference_us, low_us, high_us: the system's less the baseline's, over blocks.
        share: of the difference of all functions; None where the two systems hardly differ.
    """

    name: str
    baseline_us: float
    system_us: float
    difference_us: float
    low_us: float | None
    high_us: float | None
    share: float | None


class Functions(Noun):
    """Functions that differ between two systems in a cell, the largest difference first.

    Attributes:
        samplers: the samplers of the profiles, one as a rule.
        sampler_share: CPU of the samplers over the servers' CPU; None if unknown.
        functions: those whose interval excludes 0; ten at most.
        examined: number of functions compared.
    """

    cell: Cell
    baseline: str
    system: str
    samplers: tuple[str, ...]
    sampler_share: float | None
    functions: tuple[FunctionCost, ...]
    examined: int
