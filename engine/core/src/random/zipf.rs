//! Zipf's law by rejection-inversion: no table, the same cost for any range.
//!
//! Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 6 (1996), 169-184; the names follow the paper.

use super::Random;

/// Ranks `1..=count` with weights `rank^-exponent`.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    count: f64,
    exponent: f64,
    /// `H(3/2) - h(1)`: end of the inverted range belonging to rank 1.
    h_first: f64,
    /// `H(count + 1/2)`: the other end.
    h_last: f64,
    /// Distance below which a rank is taken without computing `H`.
    squeeze: f64,
}

impl Zipf {
    pub(super) fn new(count: f64, exponent: f64) -> Self {
        let h_second = integral(2.5, exponent) - weight(2.0, exponent);
        Self {
            count,
            exponent,
            h_first: integral(1.5, exponent) - 1.0,
            h_last: integral(count + 0.5, exponent),
            squeeze: 2.0 - integral_inverse(h_second, exponent),
        }
    }

    /// Draws a rank, a whole number.
    pub(super) fn draw(&self, random: &mut Random) -> f64 {
        loop {
            let area = self.h_last + random.uniform_double() * (self.h_first - self.h_last);
            let point = integral_inverse(area, self.exponent);
            // `max` before `min`, and no `clamp`: an empty range must not panic.
            let rank = (point + 0.5).trunc().max(1.0).min(self.count);
            let threshold = || integral(rank + 0.5, self.exponent) - weight(rank, self.exponent);
            if rank - point <= self.squeeze || area >= threshold() {
                return rank;
            }
        }
    }
}

/// `h(x) = x^-exponent`.
fn weight(x: f64, exponent: f64) -> f64 {
    (-exponent * x.ln()).exp()
}

/// `H(x)`, an integral of `h`: `(x^(1-exponent) - 1) / (1 - exponent)`, `ln x` for exponent 1.
fn integral(x: f64, exponent: f64) -> f64 {
    let log_x = x.ln();
    exp_m1_ratio((1.0 - exponent) * log_x) * log_x
}

/// The inverse of [`integral`].
fn integral_inverse(y: f64, exponent: f64) -> f64 {
    // Rounding can push the argument over the edge of the logarithm.
    let argument = (y * (1.0 - exponent)).max(-1.0);
    (ln_1p_ratio(argument) * y).exp()
}

/// `ln(1 + x) / x`, by its Taylor series near 0.
fn ln_1p_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x)) }
}

/// `(e^x - 1) / x`, by its Taylor series near 0.
fn exp_m1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x * 0.5 * (1.0 + x * (1.0 / 3.0) * (1.0 + 0.25 * x))
    }
}
