//! Clock of a run, in nanoseconds since the load began, and CPU time.
//!
//! All workers share an origin, so their times can be compared directly.

use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Monotonic nanoseconds since an origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock at 0.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Nanoseconds since the origin.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "u64 nanoseconds last 584 years")]
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}

/// Seconds as whole nanoseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be ≥ 0")]
pub(crate) fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Nanoseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "a run is far below 2^52 ns")]
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// User and system CPU time of the calling thread so far.
#[must_use]
pub fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

/// User and system CPU time of the whole process so far.
#[must_use]
pub fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Sets the timer slack of the calling thread to 1 ns; the default of 50 µs saves energy.
pub(crate) fn make_timers_exact() {
    // A refusal leaves the timers as they are.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_uses_cpu_and_sleeping_does_not() {
        let before = thread_cpu();
        std::thread::sleep(Duration::from_millis(30));
        assert!(thread_cpu() - before < Duration::from_millis(10));
        let clock = Clock::start();
        // On a crowded machine the thread waits for a core.
        while thread_cpu() - before < Duration::from_millis(20) {
            assert!(clock.now_ns() < 30_000_000_000, "30 s of work, and no CPU used");
        }
        assert!(process_cpu() >= thread_cpu());
    }
}
