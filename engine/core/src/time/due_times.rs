//! Intended start times of an open loop (arrivals): a seeded process, independent of the server's
//! answers.
//!
//! It has its own random stream, so the events of a run are the same in a closed loop and at any
//! rate. It is pure and small: a backlog of millions is two copies of it, one at the next due event
//! and one at the next event to begin, and each engine thread can have its own.

use crate::random::Random;
use serde::Deserialize;

/// Upper bound of the rate of any generator.
pub const RATE_PER_S_MAX: f64 = 1e9;
/// First stream of a run's seed used by schedules; connections use lower ones.
const STREAM: u64 = 1 << 40;

/// Distribution of the gaps between intended starts.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Spacing {
    /// Exponential gaps: independent users, with bursts.
    #[default]
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// Intended starts of a run in order, ns since the load began.
#[derive(Clone, Debug)]
pub struct DueTimes {
    spacing: Spacing,
    gap_ns: f64,
    /// Events drawn so far for all generators, including the current one.
    drawn: u64,
    /// Distance between this generator's events.
    step: u32,
    passed: u64,
    at_ns: f64,
    random: Random,
}

impl DueTimes {
    /// Process of a run with `seed` and `rate_per_s` events per second.
    #[must_use]
    pub fn new(spacing: Spacing, rate_per_s: f64, seed: u64) -> Self {
        let random = Random::for_stream(seed, STREAM);
        let gap_ns = 1e9 / rate_per_s;
        let mut times = Self { spacing, gap_ns, drawn: 0, step: 1, passed: 0, at_ns: 0.0, random };
        times.draw();
        times
    }

    /// Restricts a new process to event `first`, counted from 0, and every `step`th after it.
    #[must_use]
    pub fn every(mut self, first: u32, step: u32) -> Self {
        (0..first).for_each(|_| self.draw());
        Self { step, ..self }
    }

    /// Number of events before the current one.
    #[inline]
    #[must_use]
    pub const fn passed(&self) -> u64 {
        self.passed
    }

    /// Due time of the current event.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "never negative")]
    pub fn due_ns(&self) -> u64 {
        self.at_ns as u64
    }

    /// Advances to the next event.
    #[inline]
    pub fn advance(&mut self) {
        self.passed += 1;
        (0..self.step).for_each(|_| self.draw());
    }

    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "2^52 events are more than any run has")]
    fn draw(&mut self) {
        self.drawn += 1;
        self.at_ns = match self.spacing {
            Spacing::Poisson => self.at_ns + self.exponential_gap_ns(),
            // Counted, not summed: equal gaps stay equal for days.
            Spacing::Uniform => self.drawn as f64 * self.gap_ns,
        };
    }

    /// By inversion; 1 - U is never 0.
    #[inline]
    fn exponential_gap_ns(&mut self) -> f64 {
        -self.gap_ns * (1.0 - self.random.uniform_double()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(mut times: DueTimes, count: usize) -> Vec<u64> {
        let mut next = || {
            let due_ns = times.due_ns();
            times.advance();
            due_ns
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn equal_gaps_are_equal() {
        let due = first(DueTimes::new(Spacing::Uniform, 1000.0, 1), 100_000);
        assert!(due.iter().zip(1..).all(|(&due_ns, number)| due_ns == number * 1_000_000));
    }

    #[test]
    fn a_copy_repeats_the_process_and_another_seed_does_not() {
        let times = DueTimes::new(Spacing::Poisson, 500.0, 9);
        assert_eq!(first(times.clone(), 100), first(times.clone(), 100));
        assert_ne!(first(times, 100), first(DueTimes::new(Spacing::Poisson, 500.0, 10), 100));
    }

    #[test]
    fn several_generators_share_one_process_without_a_rest() {
        for spacing in [Spacing::Poisson, Spacing::Uniform] {
            let whole = DueTimes::new(spacing, 700.0, 4);
            let mut dealt: Vec<u64> =
                (0..3).flat_map(|own| first(whole.clone().every(own, 3), 20)).collect();
            dealt.sort_unstable();
            assert_eq!(dealt, first(whole, 60));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Mean within five standard errors; the distance from the exponential law within the
        /// Kolmogorov-Smirnov bound of one in a million (2 exp(-2 n d²)).
        #[test]
        fn gaps_of_a_poisson_process_are_exponential(seed in any::<u64>(), rate in 1.0..1e5_f64) {
            let count = 4000;
            let due = first(DueTimes::new(Spacing::Poisson, rate, seed), count);
            let mut gaps: Vec<f64> = std::iter::once(due[0])
                .chain(due.windows(2).map(|pair| pair[1] - pair[0]))
                .map(|gap_ns| gap_ns as f64 / 1e9 * rate)
                .collect();
            let n = count as f64;
            let mean = gaps.iter().sum::<f64>() / n;
            prop_assert!((mean - 1.0).abs() < 5.0 / n.sqrt(), "mean {mean}");
            gaps.sort_unstable_by(f64::total_cmp);
            let distance = gaps.iter().zip(0..).map(|(gap, below)| {
                let law = 1.0 - (-gap).exp();
                (law - f64::from(below) / n).abs().max((f64::from(below + 1) / n - law).abs())
            });
            let distance = distance.fold(0.0, f64::max);
            prop_assert!(distance < (2e6_f64.ln() / 2.0 / n).sqrt(), "distance {distance}");
        }
    }
}
