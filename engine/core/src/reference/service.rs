//! Service times and workers of the reference server: a queueing system with exactly known results.
//!
//! A statement takes the first free worker, in order of arrival. Its end is computed on arrival,
//! and its thread sleeps until then. A thread that wakes up late delays its own answer only, so the
//! plan holds however busy the machine is.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::locked;
use crate::random::Random;
use crate::record::histogram::Histogram;

/// Fixed seed: service times are the same in every run.
const SEED: u64 = 1;

/// Service time of a statement, without waiting for a worker.
#[derive(Clone, Debug)]
pub enum Service {
    /// A constant.
    Fixed(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
    /// Lognormal: the median, and the standard deviation of the logarithm.
    Lognormal(Duration, f64),
    /// Times drawn in proportion to their counts.
    Recorded(Vec<(Duration, u64)>),
}

impl Service {
    fn draw(&self, random: &mut Random) -> Duration {
        // 1 - U is never 0.
        let mut exponential = || -(1.0 - random.uniform_double()).ln();
        match self {
            Self::Fixed(time) => *time,
            Self::Exponential(mean) => mean.mul_f64(exponential()),
            Self::Lognormal(median, sigma) => {
                // Box and Muller (1958).
                let radius = (2.0 * exponential()).sqrt();
                let normal = radius * (std::f64::consts::TAU * random.uniform_double()).cos();
                median.mul_f64((sigma * normal).exp())
            }
            Self::Recorded(times) => recorded(times, random.uniform_double()),
        }
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn recorded(times: &[(Duration, u64)], share: f64) -> Duration {
    let count: u64 = times.iter().map(|(_, count)| count).sum();
    let mut left = (share * count as f64) as u64;
    for &(time, count) in times {
        if left < count {
            return time;
        }
        left -= count;
    }
    Duration::ZERO
}

/// Period of slower statements.
#[derive(Clone, Copy, Debug)]
pub struct Slowdown {
    /// Begin, counted from the arrival of the first statement.
    pub after: Duration,
    /// Duration.
    pub lasting: Duration,
    /// Factor on the service time.
    pub factor: f64,
}

/// Period in which no statement begins.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// Begin, counted from the arrival of the first statement.
    pub after: Duration,
    /// Duration.
    pub lasting: Duration,
}

/// Planned times of the received statements, unaffected by late threads.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Times from arrival until the answer was due, including the wait for a worker.
    pub times: Histogram,
    /// Exact sum of the times.
    pub sum: Duration,
}

#[derive(Debug)]
pub(super) struct Workers {
    service: Service,
    stall: Option<Stall>,
    slowdown: Option<Slowdown>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: Random,
    began: Option<Instant>,
    /// Time at which each worker is free; empty for an unlimited number of workers.
    free_at: Vec<Option<Instant>>,
    truth: Truth,
}

impl Workers {
    pub(super) fn new(
        count: Option<usize>,
        service: Service,
        stall: Option<Stall>,
        slowdown: Option<Slowdown>,
    ) -> Self {
        let free_at = vec![None; count.unwrap_or(0)];
        let random = Random::for_stream(SEED, 0);
        let state = Mutex::new(State { random, began: None, free_at, truth: Truth::default() });
        Self { service, stall, slowdown, state }
    }

    /// Due time of the answer to a statement arriving at `arrived`.
    pub(super) fn due(&self, arrived: Instant) -> Instant {
        let mut state = locked(&self.state);
        let began = *state.began.get_or_insert(arrived);
        let first_free = state.free_at.iter().copied().zip(0..).min();
        let free_at = first_free.and_then(|(free_at, _)| free_at);
        let start = self.start(began, free_at.map_or(arrived, |free_at| free_at.max(arrived)));
        let time = self.service.draw(&mut state.random).mul_f64(self.factor(began, start));
        let due = start + time;
        if let Some((_, worker)) = first_free {
            let worker: usize = worker;
            state.free_at[worker] = Some(due);
        }
        let took = due - arrived;
        state.truth.times.record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        state.truth.sum += took;
        due
    }

    /// Begin of a statement that could begin at `at`: after the stall, if within it.
    fn start(&self, began: Instant, at: Instant) -> Instant {
        let Some(stall) = self.stall else { return at };
        let (from, until) = (began + stall.after, began + stall.after + stall.lasting);
        if (from..until).contains(&at) { until } else { at }
    }

    fn factor(&self, began: Instant, at: Instant) -> f64 {
        let slow = self.slowdown.filter(|slow| {
            let from = began + slow.after;
            (from..from + slow.lasting).contains(&at)
        });
        slow.map_or(1.0, |slow| slow.factor)
    }

    pub(super) fn truth(&self) -> Truth {
        locked(&self.state).truth.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Mean and p99 of the times, ms, for arrivals with these gaps.
    fn played(script: &Script, count: u32, gap: impl Fn(&mut Random) -> f64) -> (f64, f64) {
        let (workers, mut random) = (script.workers(), Random::for_stream(9, 0));
        let mut at = Instant::now();
        for _ in 0..count {
            workers.due(at);
            at += MS.mul_f64(gap(&mut random));
        }
        let truth = workers.truth();
        assert_eq!(truth.times.count(), u64::from(count));
        let mean_ms = truth.sum.as_secs_f64() * 1e3 / f64::from(count);
        (mean_ms, truth.times.quantile(0.99) as f64 / 1e6)
    }

    fn alone(service: Service) -> (f64, f64) {
        played(&Script { service, ..Script::default() }, 100_000, |_| 0.0)
    }

    #[test]
    fn times_have_the_mean_and_the_tail_of_their_law() {
        assert_eq!(alone(Service::Fixed(10 * MS)).0, 10.0);
        let (mean, p99) = alone(Service::Exponential(10 * MS));
        assert!(
            (mean / 10.0 - 1.0).abs() < 0.02 && (p99 / 46.05 - 1.0).abs() < 0.03,
            "{mean} {p99}"
        );
        // Mean exp(s² / 2) and p99 exp(2.326 s) medians.
        let (mean, p99) = alone(Service::Lognormal(10 * MS, 0.5));
        assert!(
            (mean / 11.33 - 1.0).abs() < 0.02 && (p99 / 32.0 - 1.0).abs() < 0.04,
            "{mean} {p99}"
        );
        let (mean, p99) = alone(Service::Recorded(vec![(2 * MS, 97), (100 * MS, 3)]));
        assert!(
            (mean / 4.94 - 1.0).abs() < 0.05 && (p99 / 100.0 - 1.0).abs() < 0.01,
            "{mean} {p99}"
        );
    }

    /// M/M/c: number of workers, their load, and the mean time by Erlang C in service times (Gross
    /// and Harris, Fundamentals of Queueing Theory, section 2.3).
    #[test]
    fn statements_wait_for_a_worker() {
        for (workers, load, times) in [(1, 0.5, 2.0), (4, 0.8, 1.7455), (16, 0.8, 1.0953)] {
            let service = Service::Exponential(10 * MS);
            let script = Script { service, workers: Some(workers), ..Script::default() };
            let gap_ms = 10.0 / (workers as f64 * load);
            let poisson = |random: &mut Random| -gap_ms * (1.0 - random.uniform_double()).ln();
            let (mean, _) = played(&script, 500_000, poisson);
            assert!((mean / (10.0 * times) - 1.0).abs() < 0.05, "{workers}: {mean}");
        }
        let two =
            Script { service: Service::Fixed(10 * MS), workers: Some(2), ..Script::default() };
        assert_eq!(played(&two, 4, |_| 0.0).0, 15.0, "two at once, then two");
    }

    #[test]
    fn a_stall_and_a_slowdown_are_where_they_were_planned() {
        let stall = Some(Stall { after: 100 * MS, lasting: 50 * MS });
        let fixed = Service::Fixed(MS);
        let script = Script { service: fixed.clone(), stall, ..Script::default() };
        // Statements every 10 ms: from 100 ms on they wait 50, 40, … ms, five in all.
        let (mean, _) = played(&script, 20, |_| 10.0);
        assert!((mean - (1.0 + 150.0 / 20.0)).abs() < 1e-6, "{mean}");
        let slowdown = Some(Slowdown { after: 100 * MS, lasting: 50 * MS, factor: 3.0 });
        let script = Script { service: fixed, slowdown, ..Script::default() };
        let (mean, _) = played(&script, 20, |_| 10.0);
        assert!((mean - (1.0 + 2.0 * 5.0 / 20.0)).abs() < 1e-6, "{mean}");
    }
}
