"""Distribution functions against scipy and printed tables, lines, and a start without waiting."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import special

from dbdyno.stats import distributions
from dbdyno.stats.distributions import Numbers

FREEDOMS = (0.1, 0.5, 1, 2, 3, 7, 30, 151, 1e4, 1e7)
TAILS = np.array([1e-300, 1e-100, 1e-20, 1e-9, 1e-4, 0.01, 0.1, 0.3])
SHARES = np.concatenate([TAILS, [0.4999, 0.5, 0.50001, 0.7, 0.975, 1 - 1e-9]])


def near(seen: Numbers, known: Numbers, rel: float = 1e-9, least: float = 1e-300) -> None:
    np.testing.assert_allclose(seen, known, rtol=rel, atol=least)


def test_quantiles_are_those_of_printed_tables() -> None:
    assert distributions.student_quantile(0.975, 4) == pytest.approx(2.776, abs=5e-4)
    assert distributions.student_quantile(0.975, 9) == pytest.approx(2.262, abs=5e-4)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_student_is_that_of_scipy_far_into_its_tails(freedom: float) -> None:
    t = np.concatenate([np.geomspace(1e-8, 1e9, 80), [20.0, 30.0, 37.0]])
    known = special.stdtr(freedom, -t)
    if freedom == 1:  # the Cauchy distribution, which scipy rounds near 0
        known = np.arctan2(1, t) / np.pi
    near(distributions.student_cdf(-t, freedom), known)
    near(distributions.student_cdf(t, freedom), 1 - known)
    if freedom < 1e5:  # beyond, and nearer to 0, scipy's argument has too few digits
        far = t[t > 0.01]
        outside = special.betainc(freedom / 2, 0.5, freedom / (freedom + far * far))
        near(distributions.student_cdf(-far, freedom), outside / 2)
    shares = SHARES[np.log10(SHARES) / freedom > -140]  # the others are further out than 1e140
    quantiles = distributions.student_quantiles(shares, freedom)
    near(special.stdtr(freedom, quantiles), shares)
    assert distributions.student_quantile(0.5, freedom) == 0
    both = distributions.student_quantiles([2.0**-30, 1 - 2.0**-30], freedom)
    assert both[0] == -both[1]


@pytest.mark.parametrize("freedom", [0.6, 1, 4, 40, 3000])
def test_the_degrees_of_freedom_of_a_tail_are_found(freedom: float) -> None:
    t = np.array([1.5, 3.0, 8.0])
    near(distributions.student_freedom(2 * special.stdtr(freedom, -t), t), freedom, rel=1e-6)
    assert distributions.student_freedom([1e-3, 0.9], [2.0, 50.0]).tolist() == [1e5, 0.5]


@pytest.mark.parametrize("freedom", FREEDOMS[:-1])  # scipy has few digits for the last
def test_quantiles_of_chi_square_are_those_of_scipy(freedom: float) -> None:
    shares = SHARES[np.log10(SHARES) / freedom > -140]  # the others are below 1e-280
    halves = distributions.chi_square_quantile(shares, freedom) / 2
    low = shares < 0.5
    near(special.gammainc(freedom / 2, halves[low]), shares[low])
    near(special.gammaincc(freedom / 2, halves[~low]), 1 - shares[~low])


def test_tails_of_f_and_of_the_normal_distribution_are_those_of_scipy() -> None:
    ratio, between, within = np.meshgrid(
        np.geomspace(1e-3, 1e6, 40), [1, 2, 5, 40, 1000], [1, 3, 8, 60, 5000], indexing="ij"
    )
    x = within / (within + between * ratio)
    known = special.betainc(within / 2, between / 2, x)
    near(distributions.f_tail(ratio, between, within), known, least=1e-260)  # scipy has few digits
    assert distributions.f_tail(np.inf, 3, 12) == 0
    value = np.concatenate([np.linspace(-37, 9, 200), [-np.inf, np.inf]])
    near(distributions.normal_cdf(value), special.ndtr(value), rel=1e-11)


@pytest.mark.parametrize("freedom", [1, 2, 4, 11, 99, 5000])
def test_the_noncentral_t_is_that_of_scipy(freedom: float) -> None:
    t, shift = np.meshgrid([0.0, 0.1, 1, 2, 5, 20, 80], [0, 1e-6, 0.5, 2, 5, 15, 50], indexing="ij")
    known = np.nan_to_num(special.nctdtr(freedom, shift, t))  # nan where it is tiny
    near(distributions.noncentral_t_cdf(t, freedom, shift), known, least=1e-9)
    share, t = np.meshgrid([0.01, 0.2, 0.5], [2.0, 5, 20, 80], indexing="ij")
    found = distributions.noncentral_t_shift(share, t, freedom)
    near(special.nctdtr(freedom, found, t), share, least=1e-9)
    assert distributions.noncentral_t_cdf(3.0, freedom, 1e9) == 0


def test_functions_of_gamma_are_those_of_scipy() -> None:
    value = np.geomspace(0.05, 1e7, 300)
    near(distributions.digamma(value), special.digamma(value), rel=1e-11, least=1e-12)
    near(distributions.trigamma(value), special.polygamma(1, value), rel=1e-11)
    a, b = value[:, None], value[::10]
    # scipy's is a difference of ln Γ of numbers up to 1e7
    known = special.betaln(a, b)
    near(distributions.log_beta(a, b), known, least=1e-6)
    small = (a < 100) & (b < 100)
    near(distributions.log_beta(a, b)[small], known[small], rel=1e-11, least=1e-11)


@pytest.mark.parametrize(
    ("t", "freedom"),
    [(np.nan, 3.0), (1.0, np.nan), (1.0, -1.0), (np.nan, np.nan), (1.0, 0.0), (1.0, np.inf)],
)
def test_no_number_is_no_share(t: ArrayLike, freedom: ArrayLike) -> None:
    assert np.isnan(distributions.student_cdf(t, freedom))
    assert np.isnan(distributions.f_tail(t, 3, freedom))
    assert np.isnan(distributions.noncentral_t_cdf(t, freedom, 1.0))


@pytest.mark.parametrize("freedom", [np.nan, -1.0, 0.0, np.inf])
def test_impossible_degrees_of_freedom_have_no_quantile(freedom: float) -> None:
    assert np.isnan(distributions.student_quantiles(0.9, freedom))
    assert np.isnan(distributions.chi_square_quantile(0.9, freedom))


def test_arguments_are_broadcast_whatever_their_layout() -> None:
    t, freedom = np.arange(12.0).reshape(3, 4).T[::2], np.array([3, 8, 20])
    seen = distributions.student_cdf(t, freedom)
    assert seen.shape == (2, 3)
    assert seen.tolist() == [
        [float(distributions.student_cdf(t[i, j], freedom[j])) for j in range(3)] for i in range(2)
    ]
    assert distributions.digamma(np.empty((0, 3))).shape == (0, 3)


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
        ("dbdyno.cli.measure", ("polars", "scipy", "uvicorn")),
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
