//! Distribution functions and their inverses, for arrays of Python.
//!
//! Beta, gamma and normal functions are those of the crate cdflib, with 13 digits or more even far
//! out in a tail. Its inverses have 8 digits, so inverses are searched for here. Each function
//! fills `out`, with NaN for a NaN or for an argument outside its range.
use cdflib::special::{beta_log, cumnor, gamma_log, try_beta_inc, try_gamma_inc, try_psi};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Numbers = PyBuffer<f64>;

/// Adds the functions to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(student_cdf, module)?)?;
    module.add_function(wrap_pyfunction!(student_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(student_freedom, module)?)?;
    module.add_function(wrap_pyfunction!(chi_square_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(f_tail, module)?)?;
    module.add_function(wrap_pyfunction!(normal_cdf, module)?)?;
    module.add_function(wrap_pyfunction!(noncentral_t_cdf, module)?)?;
    module.add_function(wrap_pyfunction!(noncentral_t_shift, module)?)?;
    module.add_function(wrap_pyfunction!(log_beta, module)?)?;
    module.add_function(wrap_pyfunction!(digamma, module)?)?;
    module.add_function(wrap_pyfunction!(trigamma, module)?)
}

/// A greater t counts as this: its square is still a number.
const T_MAX: f64 = 1e150;
/// A greater F counts as this.
const F_MAX: f64 = 1e300;
/// Further out a normal tail is no number above 0.
const NORMAL_MAX: f64 = 40.0;
/// Degrees of freedom that `student_freedom` tries.
const FREEDOM_TRIED: (f64, f64) = (0.5, 1e5);
/// Greatest t of a noncentral t: the sum has about as many terms.
const NONCENTRAL_T_MAX: f64 = 1e6;
/// Shares below this add nothing to a sum of shares whose weights sum to 1.
const NEGLIGIBLE: f64 = 1e-17;

/// Functions for Python that take arrays of equal length, and the array to be filled.
macro_rules! elementwise {
    ($($(#[$about:meta])* fn $name:ident($($argument:ident),+) $value:block)+) => {$(
        $(#[$about])*
        #[pyfunction]
        fn $name(py: Python<'_>, $($argument: Numbers,)+ out: Numbers) -> PyResult<()> {
            fill(py, [$($argument),+], &out, |[$($argument),+]| $value)
        }
    )+};
}

elementwise! {
    /// Shares of Student's t below `t`.
    fn student_cdf(t, freedom) {
        let (_, beyond) = student(t, freedom);
        if t < 0.0 { beyond / 2.0 } else { 1.0 - beyond / 2.0 }
    }

    /// Student's t with a given share below.
    fn student_quantile(share, freedom) {
        if !(0.0..=1.0).contains(&share) || !is_freedom(freedom) {
            return f64::NAN;
        }
        // A share near ½ is compared within ±t, any other beyond: the smaller has more digits.
        let (inner, outer) = ((1.0 - 2.0 * share).abs(), 2.0 * share.min(1.0 - share));
        let t = least(0.0, T_MAX, |t| {
            let (within, beyond) = student(t, freedom);
            if outer < 0.5 { beyond > outer } else { within < inner }
        });
        t.copysign(share - 0.5)
    }

    /// Degrees of freedom, 0.5 to 100,000, for which |Student's t| exceeds `t` in a given share.
    fn student_freedom(share, t) {
        let (low, high) = FREEDOM_TRIED;
        least(low, high, |freedom| student(t, freedom).1 > share)
    }

    /// χ² with a given share below.
    fn chi_square_quantile(share, freedom) {
        if !(0.0..=1.0).contains(&share) || !is_freedom(freedom) {
            return f64::NAN;
        }
        least(0.0, f64::MAX, |value| {
            let shares = try_gamma_inc(freedom / 2.0, value / 2.0);
            let (below, above) = shares.unwrap_or((f64::NAN, f64::NAN));
            if share < 0.5 { below < share } else { above > 1.0 - share }
        })
    }

    /// Shares of F, with degrees of freedom `between` and `within`, above `ratio`.
    fn f_tail(ratio, between, within) {
        let scaled = between * ratio.clamp(0.0, F_MAX);
        let whole = within + scaled;
        beta_shares(within / 2.0, between / 2.0, within / whole, scaled / whole).0
    }

    /// Shares of the standard normal distribution below `value`.
    fn normal_cdf(value) {
        normal(value)
    }

    /// Shares of the noncentral t below `t`, from 0 to a million; `shift` is the noncentrality,
    /// from 0.
    fn noncentral_t_cdf(t, freedom, shift) {
        noncentral_t(t, freedom, shift)
    }

    /// The noncentrality, 0 or more, for which a given share of the noncentral t lies below `t`.
    fn noncentral_t_shift(share, t, freedom) {
        if !(0.0..=NONCENTRAL_T_MAX).contains(&t) {
            return f64::NAN;
        }
        // With the greatest shift tried, a share of 1e-20 or less lies below t.
        least(0.0, 10.0 * t + 100.0, |shift| noncentral_t(t, freedom, shift) > share)
    }

    /// ln B(a, b).
    fn log_beta(a, b) {
        beta_log(a, b)
    }

    /// ψ, the derivative of ln Γ.
    fn digamma(value) {
        try_psi(value).unwrap_or(f64::NAN)
    }

    /// ψ′, the second derivative of ln Γ, of numbers above 0.
    fn trigamma(value) {
        if value <= 0.0 {
            return f64::NAN;
        }
        // ψ′(z) = ψ′(z + 1) + 1/z², up to where the asymptotic series has 14 digits.
        let (mut sum, mut z) = (0.0, value);
        while z < 15.0 {
            sum += 1.0 / (z * z);
            z += 1.0;
        }
        let square = 1.0 / (z * z);
        let bernoulli = [5.0 / 66.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 1.0 / 6.0, 1.0];
        let series = bernoulli.iter().fold(0.0, |inner, number| inner * square + number);
        sum + square / 2.0 + series / z
    }
}

/// Fills `out` with the values of `function` at each place of the arguments, which are as long.
fn fill<const N: usize>(
    py: Python<'_>,
    arguments: [Numbers; N],
    out: &Numbers,
    function: impl Fn([f64; N]) -> f64,
) -> PyResult<()> {
    let columns = arguments.iter().map(|column| column.to_vec(py)).collect::<PyResult<Vec<_>>>()?;
    if columns.iter().any(|column| column.len() != out.item_count()) {
        return Err(PyValueError::new_err("arguments and results differ in length"));
    }
    let value_at = |place: usize| {
        let row: [f64; N] = std::array::from_fn(|argument| columns[argument][place]);
        if row.iter().any(|number| number.is_nan()) { f64::NAN } else { function(row) }
    };
    let values: Vec<f64> = (0..out.item_count()).map(value_at).collect();
    out.copy_from_slice(py, &values)
}

/// The least number from `low` (0 or more) to `high` which is not too small; `high` if all are.
///
/// Floating-point numbers from 0 on are in the order of their bits. So halving the range of bits
/// ends at the very number after 63 steps, whatever its size.
fn least(low: f64, high: f64, too_small: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (low.to_bits(), high.to_bits());
    while low < high {
        let middle = low.midpoint(high);
        if too_small(f64::from_bits(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    f64::from_bits(low)
}

/// True for degrees of freedom, or half of them, of which a share can be computed.
fn is_freedom(freedom: f64) -> bool {
    freedom > 0.0 && freedom.is_finite()
}

/// Shares of a beta distribution below `x` = 1 - `y`, and above.
fn beta_shares(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    if !is_freedom(a) || !is_freedom(b) {
        return (f64::NAN, f64::NAN); // for x = 0 or 1 cdflib accepts them
    }
    try_beta_inc(a, b, x, y).unwrap_or((f64::NAN, f64::NAN))
}

/// t²/(t² + freedom) and its complement.
fn beta_of_t(t: f64, freedom: f64) -> (f64, f64) {
    let square = t.abs().min(T_MAX).powi(2);
    (square / (square + freedom), freedom / (square + freedom))
}

/// Shares of Student's t within ±`t`, and beyond.
fn student(t: f64, freedom: f64) -> (f64, f64) {
    let (x, y) = beta_of_t(t, freedom);
    beta_shares(0.5, freedom / 2.0, x, y)
}

/// Share of the standard normal distribution below `value`.
fn normal(value: f64) -> f64 {
    cumnor(value.clamp(-NORMAL_MAX, NORMAL_MAX)).0
}

/// Share of the noncentral t below `t`, with an error of about 1e-13.
///
/// With δ the shift, λ = δ²/2, x = t²/(t² + freedom) and `a` over 1/2, 1, 3/2 … it is
///
/// Φ(-δ) + ½ Σ exp(-λ) λ^(a - ½) / Γ(a + ½) · I(x; a, freedom/2).
///
/// The weights sum to no more than 2, nearly all of it within ten deviations √λ around a = λ. The
/// shares I fall with `a`. Weight and share at a + 1 follow from those at a: two runs of sums.
fn noncentral_t(t: f64, freedom: f64, shift: f64) -> f64 {
    if !(0.0..=NONCENTRAL_T_MAX).contains(&t) || shift < 0.0 || !is_freedom(freedom) {
        return f64::NAN;
    }
    let shift = shift.min(11.0 * NONCENTRAL_T_MAX); // with more, nothing is left below t
    let (x, y) = beta_of_t(t, freedom);
    let (b, half_square) = (freedom / 2.0, (shift * shift / 2.0).max(f64::MIN_POSITIVE));
    let deviation = half_square.sqrt();
    let first = (half_square - 10.0 * deviation).max(0.0).floor();
    let last = half_square + 10.0 * deviation + 60.0;
    let mut sum = normal(-shift);
    for begin in [0.5, 1.0] {
        let mut a = first + begin;
        let log_weight = (a - 0.5) * half_square.ln() - half_square - gamma_log(a + 0.5);
        let mut weight = log_weight.exp() / 2.0;
        let (mut share, _) = beta_shares(a, b, x, y);
        let mut fall = (a * x.ln() + b * y.ln() - a.ln() - beta_log(a, b)).exp();
        while a < last && share > NEGLIGIBLE {
            sum += weight * share;
            share -= fall;
            fall *= x * (a + b) / (a + 1.0);
            weight *= half_square / (a + 0.5);
            a += 1.0;
        }
    }
    sum
}
