//! Distributions of ids and `k`.

use serde::{Deserialize, Serialize};

use super::Sampler;

/// Distribution over a range of integers, with sysbench's parameters.
///
/// The default is `special`, as in sysbench 1.0; 1.1 has `uniform`. This difference changes every
/// published number, so records carry the distribution in full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// All values equally likely; the default of sysbench 1.1. (Braces make serde refuse unknown
    /// fields.)
    Uniform {},
    /// Mean of `iterations` uniform draws. sysbench 1.1 always returns the lower bound; this is the
    /// working version of 1.0.
    Gaussian {
        /// `--rand-spec-iter`
        #[serde(default = "default_iterations")]
        iterations: u32,
    },
    /// Most draws in a small zone in the middle, the others around it as `gaussian`; the default of
    /// sysbench 1.0, where it gives 0.75 % of the rows 75.8 % of the accesses.
    Special {
        /// `--rand-spec-iter`
        #[serde(default = "default_iterations")]
        iterations: u32,
        /// `--rand-spec-pct`: width of the zone in percent of the range
        #[serde(default = "default_percent")]
        percent: u32,
        /// `--rand-spec-res`: percent of the draws that go to the zone
        #[serde(default = "default_result")]
        result: u32,
    },
    /// Low values are hot: with 0.2 the first fifth gets four fifths of the draws.
    Pareto {
        /// `--rand-pareto-h`
        #[serde(default = "default_h")]
        h: f64,
    },
    /// Value number `r` with weight `r^-exponent`; sysbench 1.1 only.
    Zipfian {
        /// `--rand-zipfian-exp`
        #[serde(default = "default_exponent")]
        exponent: f64,
    },
}

impl Default for Distribution {
    fn default() -> Self {
        Self::Special {
            iterations: default_iterations(),
            percent: default_percent(),
            result: default_result(),
        }
    }
}

impl Distribution {
    /// The distribution over `low..=high`.
    #[must_use]
    pub fn over(&self, low: u32, high: u32) -> Sampler {
        Sampler::new(*self, low, high)
    }

    /// Mistakes in the parameters; empty for a usable distribution.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let mut need = |holds: bool, wanted: &str, given: &dyn std::fmt::Display| {
            if !holds {
                mistakes.push(format!("{wanted}, not {given}"));
            }
        };
        match *self {
            Self::Uniform {} => {}
            Self::Gaussian { iterations } => {
                need(iterations > 0, "iterations must be at least 1", &iterations);
            }
            Self::Special { iterations, percent, result } => {
                need(iterations > 0, "iterations must be at least 1", &iterations);
                need(percent <= 100, "percent must be from 0 to 100", &percent);
                need(result < 100, "result must be from 0 to 99", &result);
            }
            Self::Pareto { h } => {
                need(h > 0.0 && h < 1.0, "h must lie between 0 and 1", &h);
            }
            Self::Zipfian { exponent } => {
                let usable = exponent >= 0.0 && exponent.is_finite();
                need(usable, "exponent must be 0 or above", &exponent);
            }
        }
        mistakes
    }
}

const fn default_iterations() -> u32 {
    12
}

const fn default_percent() -> u32 {
    1
}

const fn default_result() -> u32 {
    75
}

const fn default_h() -> f64 {
    0.2
}

const fn default_exponent() -> f64 {
    0.8
}
