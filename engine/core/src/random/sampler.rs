//! Sampler of a distribution over a range, with its constants computed once.

use super::zipf::Zipf;
use super::{Distribution, Random, truncate};

/// A [`Distribution`] over `low..=high`, ready to draw from.
#[derive(Clone, Debug)]
pub struct Sampler {
    low: u32,
    shape: Shape,
}

/// Widths are doubles, as in all arithmetic below, computed in 32 bits first, as in sysbench.
#[derive(Clone, Debug)]
enum Shape {
    Uniform { count: f64 },
    Gaussian { count: f64, iterations: u32 },
    Special(Special),
    Pareto { count: f64, power: f64 },
    Zipfian(Zipf),
}

#[derive(Clone, Debug)]
struct Special {
    /// `high - low`: the number of values minus 1.
    span: f64,
    /// The span stretched so far that `result` percent of it lie beyond the span's end.
    stretched: f64,
    iterations: u32,
    /// Width of the zone.
    zone: f64,
    /// Begin of the zone, counted from `low`.
    zone_start: f64,
}

impl Sampler {
    /// `distribution` over `low..=high`.
    pub(super) fn new(distribution: Distribution, low: u32, high: u32) -> Self {
        let span = high.wrapping_sub(low);
        let count = f64::from(span.wrapping_add(1));
        let shape = match distribution {
            Distribution::Uniform {} => Shape::Uniform { count },
            Distribution::Gaussian { iterations } => Shape::Gaussian { count, iterations },
            Distribution::Special { iterations, percent, result } => {
                Shape::Special(Special::new(f64::from(span), iterations, percent, result))
            }
            Distribution::Pareto { h } => Shape::Pareto { count, power: h.ln() / (1.0 - h).ln() },
            Distribution::Zipfian { exponent } => Shape::Zipfian(Zipf::new(count, exponent)),
        };
        Self { low, shape }
    }

    /// Draws a value.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        match &self.shape {
            Shape::Uniform { count } => {
                truncate(f64::from(self.low) + random.uniform_double() * count)
            }
            Shape::Gaussian { count, iterations } => {
                self.above(gaussian(random, *count, *iterations))
            }
            Shape::Special(special) => self.above(special.draw(random)),
            Shape::Pareto { count, power } => {
                self.above(count * random.uniform_double().powf(*power))
            }
            Shape::Zipfian(zipf) => self.above(zipf.draw(random) - 1.0),
        }
    }

    fn above(&self, distance: f64) -> u32 {
        self.low.wrapping_add(truncate(distance))
    }
}

/// Mean of `iterations` uniform draws of `[0, width)`.
fn gaussian(random: &mut Random, width: f64, iterations: u32) -> f64 {
    let mut sum = 0.0;
    for _ in 0..iterations {
        sum += random.uniform_double() * width;
    }
    sum * (1.0 / f64::from(iterations))
}

impl Special {
    fn new(span: f64, iterations: u32, percent: u32, result: u32) -> Self {
        let percent = f64::from(percent);
        Self {
            span,
            stretched: span * (100.0 / (100.0 - f64::from(result))),
            iterations,
            zone: span * (percent / 100.0),
            zone_start: span / 2.0 - span * (percent / 200.0),
        }
    }

    fn draw(&self, random: &mut Random) -> f64 {
        let double = random.uniform_double();
        if double * self.stretched < self.span {
            let mut sum = 0.0;
            for _ in 0..self.iterations {
                sum += random.uniform_double();
            }
            return sum * self.span * (1.0 / f64::from(self.iterations));
        }
        // sysbench reuses the draw. Here it lies in the upper `result` percent of [0, 1), so only
        // the corresponding part of the zone is reached.
        double * (self.zone + 1.0) + self.zone_start
    }
}
