"""Quantiles and lines against printed tables; starting the program does not wait for scipy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dbdyno.stats import distributions


def test_quantiles_are_those_of_printed_tables() -> None:
    assert distributions.student_quantile(0.975, 4) == pytest.approx(2.776, abs=5e-4)
    assert distributions.student_quantile(0.975, 9) == pytest.approx(2.262, abs=5e-4)


def test_a_line_has_its_slope_and_its_chance() -> None:
    places = np.arange(5)
    # Anscombe's first data set: slope 0.5001, p = 0.00217
    anscombe = distributions.line(
        np.array([10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]),
        np.array([8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]),
    )
    assert anscombe == (pytest.approx(0.5001, abs=1e-4), pytest.approx(0.00217, abs=1e-5))
    assert distributions.line(places, places * 2.0) == (2.0, 0.0)
    flat = distributions.line(places, np.array([1.0, -1.0, 0.0, -1.0, 1.0]))
    assert (flat.slope, flat.chance) == (pytest.approx(0.0), pytest.approx(1.0))


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        (
            "dbdyno.cli.measure",
            ("scipy.special", "scipy.optimize", "scipy.stats", "polars", "uvicorn"),
        ),
        (
            "dbdyno.experiment.engine.child",
            ("numpy", "pydantic", "psycopg", "typer", "dbdyno.experiment.runner"),
        ),
    ],
)
def test_nothing_waits_for_what_it_may_not_need(module: str, heavy: tuple[str, ...]) -> None:
    asked = f"import {module}, sys; print(*(set({heavy!r}) & set(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60
    )
    assert printed.stdout.strip() == ""
