//! A planted slowdown: for a share of the time the whole load pauses (`standstill` in a spec).
//!
//! A comparison that is to be trusted must find a difference that is known to be there. Added think
//! time would not do: where the server is the bottleneck, other connections fill the gap and
//! nothing is lost. So from the middle of each period on no event is begun; when the last one in
//! flight has completed, the load pauses for its share of the period; then all connections go on. A
//! server that gets no requests does no work, saturated or not, so the ratio of throughputs is 1 -
//! share. Waiting for the last event costs half a latency a period on top, at most.
//!
//! Only the measured window has pauses. All threads pause together, or one would use what another
//! leaves free; two atomic numbers are all that they share.

use crate::time::clock::ns;
use crate::time::schedule::Timetable;
use serde::Deserialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// A larger share would be no slowdown any more.
const SHARE_MAX: f64 = 0.5;

/// How much of the time the load pauses, and how often.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PauseSpec {
    /// Of the window's time, above 0.
    pub share: f64,
    /// From the middle of one pause to the middle of the next, s. A window of whole periods has exactly
    /// the share.
    pub period_s: f64,
}

impl PauseSpec {
    /// All that is wrong with it, one sentence each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if !(self.share > 0.0 && self.share <= SHARE_MAX) {
            mistakes.push("standstill.share must lie above 0 and be at most 0.5".to_owned());
        }
        if !(0.1..=1e6).contains(&self.period_s) {
            mistakes.push("standstill.period_s must be at least 0.1 seconds".to_owned());
        }
        mistakes
    }
}

/// The times at which the load pauses; pure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// No event is begun from here on until the pause is over; `u64::MAX` for never.
    pub begin_ns: u64,
    period_ns: u64,
    lasting_ns: u64,
}

impl Pauses {
    /// The pauses of a run with this timetable.
    #[must_use]
    pub fn new(spec: &PauseSpec, timetable: Timetable) -> Self {
        let period_ns = ns(spec.period_s);
        let begin_ns = timetable.warmup_ns().saturating_add(period_ns / 2);
        Self { begin_ns, period_ns, lasting_ns: ns(spec.period_s * spec.share) }
    }

    /// A load without pauses.
    #[must_use]
    pub const fn never() -> Self {
        Self { begin_ns: u64::MAX, period_ns: 0, lasting_ns: 0 }
    }

    /// Goes on to the next one after `now_ns`.
    pub fn pass(&mut self, now_ns: u64) {
        while self.begin_ns <= now_ns && self.period_ns > 0 {
            self.begin_ns = self.begin_ns.saturating_add(self.period_ns);
        }
    }
}

/// Lets the threads of a run pause together: a pause counts from the moment the last thread has nothing in
/// flight.
///
/// The two end times are used in turn, as a thread may come to the next pause while another has not yet
/// seen the end of this one; it cannot be two ahead.
#[derive(Debug)]
pub struct PauseBarrier {
    threads: AtomicU64,
    arrived: AtomicU64,
    resume_ns: [AtomicU64; 2],
}

impl PauseBarrier {
    /// Of so many threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            threads: (threads as u64).into(),
            arrived: AtomicU64::new(0),
            resume_ns: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// A thread has nothing in flight at `now_ns` in pause `number`, from 1; each thread says so once.
    pub fn arrive(&self, number: u64, now_ns: u64, times: &Pauses) {
        let resume_ns = now_ns.saturating_add(times.lasting_ns);
        self.slot(number).fetch_max(resume_ns, Ordering::AcqRel);
        self.arrived.fetch_add(1, Ordering::AcqRel);
    }

    /// A thread that has arrived so often ends: the others pause without it. Its arrivals go first, so that who
    /// sees one thread fewer misses them too.
    pub fn leave(&self, arrivals: u64) {
        self.arrived.fetch_sub(arrivals, Ordering::AcqRel);
        self.threads.fetch_sub(1, Ordering::AcqRel);
    }

    /// When pause `number` ends; None while a thread still has events in flight.
    #[must_use]
    pub fn resume_ns(&self, number: u64) -> Option<u64> {
        // Read in this order, see `leave`.
        let threads = self.threads.load(Ordering::Acquire);
        let is_complete = self.arrived.load(Ordering::Acquire) >= number * threads;
        is_complete.then(|| self.slot(number).load(Ordering::Acquire))
    }

    fn slot(&self, number: u64) -> &AtomicU64 {
        &self.resume_ns[usize::from(number % 2 == 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const SPEC: PauseSpec = PauseSpec { share: 0.02, period_s: 10.0 };

    #[test]
    fn a_window_of_whole_periods_has_one_in_the_middle_of_each() {
        let mut times = Pauses::new(&SPEC, Timetable::new(5 * SECOND, 20 * SECOND, SECOND));
        assert_eq!(times.begin_ns, 10 * SECOND);
        times.pass(10 * SECOND + 200_000_000);
        assert_eq!(times.begin_ns, 20 * SECOND);
        times.pass(47 * SECOND); // a server that took longer than a period
        assert_eq!(times.begin_ns, 50 * SECOND);
        let mut never = Pauses::never();
        never.pass(u64::MAX);
        assert_eq!(never.begin_ns, u64::MAX);
    }

    #[test]
    fn the_last_thread_to_come_decides_when_it_goes_on() {
        let times = Pauses::new(&SPEC, Timetable::new(0, 20 * SECOND, SECOND));
        let barrier = PauseBarrier::new(2);
        barrier.arrive(1, 5 * SECOND + 7, &times);
        assert_eq!(barrier.resume_ns(1), None);
        barrier.arrive(1, 5 * SECOND + 3, &times);
        assert_eq!(barrier.resume_ns(1), Some(5 * SECOND + 200_000_007));
        barrier.arrive(2, 15 * SECOND, &times);
        assert_eq!(barrier.resume_ns(1), Some(5 * SECOND + 200_000_007), "nobody has seen it yet");
        assert_eq!(barrier.resume_ns(2), None);
    }

    #[test]
    fn a_thread_that_has_ended_is_not_waited_for() {
        let times = Pauses::new(&SPEC, Timetable::new(0, 20 * SECOND, SECOND));
        let barrier = PauseBarrier::new(3);
        (0..3).for_each(|_| barrier.arrive(1, 5 * SECOND, &times));
        barrier.leave(1);
        barrier.arrive(2, 15 * SECOND, &times);
        assert_eq!(barrier.resume_ns(2), None, "another thread is to come");
        barrier.arrive(2, 15 * SECOND + 1, &times);
        assert_eq!(barrier.resume_ns(2), Some(15 * SECOND + 200_000_001));
        // One that ends while the others wait for it.
        barrier.arrive(3, 25 * SECOND, &times);
        assert_eq!(barrier.resume_ns(3), None);
        barrier.leave(2);
        assert_eq!(barrier.resume_ns(3), Some(25 * SECOND + 200_000_000));
    }

    #[test]
    fn a_share_that_is_none_is_refused() {
        assert!(SPEC.mistakes().is_empty());
        for share in [0.0, -0.1, 0.6, f64::NAN] {
            assert_eq!(PauseSpec { share, ..SPEC }.mistakes().len(), 1, "{share}");
        }
        assert_eq!(PauseSpec { period_s: f64::INFINITY, ..SPEC }.mistakes().len(), 1);
    }
}
