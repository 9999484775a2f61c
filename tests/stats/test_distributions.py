"""Quantiles and tails against figures of printed tables, and none of them loads scipy before."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dbdyno.stats import distributions


def test_quantiles_are_those_of_printed_tables() -> None:
    assert distributions.student_quantile(0.975, 4) == pytest.approx(2.776, abs=5e-4)
    assert distributions.student_quantile(0.975, 9) == pytest.approx(2.262, abs=5e-4)
    assert distributions.chi_square_quantiles(np.array([0.05, 0.95]), 10) == pytest.approx(
        [3.940, 18.307], abs=5e-4
    )
    # Clopper and Pearson's upper end for none of ten: 1 - 0.025^(1/10)
    assert distributions.beta_quantile(0.975, 1, 10) == pytest.approx(1 - 0.025**0.1)


def test_tails_are_those_of_printed_tables() -> None:
    assert distributions.fisher_tail(3.478, 4, 10) == pytest.approx(0.05, abs=1e-4)
    assert distributions.noncentral_student_tail(2.262, 9, 0.0) == pytest.approx(0.025, abs=1e-4)
    assert distributions.normal_share(np.array([0.0, 1.959964])) == pytest.approx([0.5, 0.975])
    # 20 comparisons of which each errs in 5 %: more than 4 in 0.26 %, more than 3 in 1.6 %
    assert distributions.binomial_exceeded(0.01, 20, 0.05) == 4


def test_a_line_has_its_slope_and_its_chance() -> None:
    places = np.arange(5)
    steep = distributions.line(places, np.array([1.0, 3.0, 5.0, 7.0, 9.1]))
    assert steep.slope == pytest.approx(2.02)
    assert steep.chance < 1e-6
    flat = distributions.line(places, np.array([1.0, -1.0, 0.0, -1.0, 1.0]))
    assert (flat.slope, flat.chance) == (pytest.approx(0.0), pytest.approx(1.0))


def test_a_root_is_found_and_none_is_refused() -> None:
    assert distributions.root(lambda x: x**2 - 2, 0.0, 2.0) == pytest.approx(2**0.5)
    with pytest.raises(ValueError, match="sign"):
        distributions.root(lambda x: x**2 + 2, 0.0, 2.0)


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("dbdyno.cli", ("scipy.stats", "scipy.optimize", "polars", "uvicorn")),
        (
            "dbdyno.experiment.engine.child",
            ("numpy", "pydantic", "psycopg", "typer", "dbdyno.bench"),
        ),
    ],
)
def test_nothing_waits_for_what_it_may_not_need(module: str, heavy: tuple[str, ...]) -> None:
    asked = f"import {module}, sys; print(*(set({heavy!r}) & set(sys.modules)))"
    told = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.strip() == ""
