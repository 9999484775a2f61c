//! A slowdown put in on purpose: for a share of the time the whole load stands still.
//!
//! A comparison that is to be trusted must find a difference that is known to be there. Added think time
//! would not do: where the server is the bottleneck, other connections fill the gap and nothing is
//! lost. So no event is begun from the middle of each period on, those in flight come home, and when
//! the last one is there the load stands still for its share of the period; then all begin again. A
//! server that has nothing to do gets nothing done, saturated or not, so that the ratio of throughputs
//! is 1 - share. What waiting for the last event costs comes on top: half a latency a period at most.
//!
//! Only the window has standstills. Threads stand still together, or one would use what the other
//! leaves; they meet by two atomic numbers.

use crate::time::clock::ns;
use crate::time::schedule::Timetable;
use serde::Deserialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// More than that is no slowdown any more.
const SHARE_MAX: f64 = 0.5;

/// How much of the time the load stands still, and how often.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct StandstillSpec {
    /// Of the window's time, above 0.
    pub share: f64,
    /// From the middle of one standstill to that of the next, s. A window of whole periods has exactly
    /// the share.
    pub period_s: f64,
}

impl StandstillSpec {
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

/// When the load stands still; pure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstills {
    /// Nothing is begun from here on until the load has stood still; `u64::MAX` for never.
    pub shut_ns: u64,
    period_ns: u64,
    lasting_ns: u64,
}

impl Standstills {
    /// Those of a run with this layout in time.
    #[must_use]
    pub fn new(spec: &StandstillSpec, timetable: Timetable) -> Self {
        let period_ns = ns(spec.period_s);
        let shut_ns = timetable.warmup_ns().saturating_add(period_ns / 2);
        Self { shut_ns, period_ns, lasting_ns: ns(spec.period_s * spec.share) }
    }

    /// A load that never stands still.
    #[must_use]
    pub const fn never() -> Self {
        Self { shut_ns: u64::MAX, period_ns: 0, lasting_ns: 0 }
    }

    /// Goes on to the next one after `now_ns`.
    pub fn pass(&mut self, now_ns: u64) {
        while self.shut_ns <= now_ns && self.period_ns > 0 {
            self.shut_ns = self.shut_ns.saturating_add(self.period_ns);
        }
    }
}

/// Where the threads of a run meet: the load stands still from the moment the last one has nothing in
/// flight.
///
/// The two numbers of time are used in turn, as a thread may come to the next standstill while
/// another has not yet seen the end of this one; it cannot be two ahead.
#[derive(Debug)]
pub struct Meeting {
    threads: u64,
    arrived: AtomicU64,
    resume_ns: [AtomicU64; 2],
}

impl Meeting {
    /// Of so many threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            threads: threads as u64,
            arrived: AtomicU64::new(0),
            resume_ns: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// A thread has nothing in flight at `now_ns` in standstill `number`, from 1; once each.
    pub fn arrive(&self, number: u64, now_ns: u64, times: &Standstills) {
        let resume_ns = now_ns.saturating_add(times.lasting_ns);
        self.slot(number).fetch_max(resume_ns, Ordering::AcqRel);
        self.arrived.fetch_add(1, Ordering::AcqRel);
    }

    /// When standstill `number` ends; None while a thread still has events in flight.
    #[must_use]
    pub fn resume_ns(&self, number: u64) -> Option<u64> {
        let is_complete = self.arrived.load(Ordering::Acquire) >= number * self.threads;
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
    const SPEC: StandstillSpec = StandstillSpec { share: 0.02, period_s: 10.0 };

    #[test]
    fn a_window_of_whole_periods_has_one_in_the_middle_of_each() {
        let mut times = Standstills::new(&SPEC, Timetable::new(5 * SECOND, 20 * SECOND, SECOND));
        assert_eq!(times.shut_ns, 10 * SECOND);
        times.pass(10 * SECOND + 200_000_000);
        assert_eq!(times.shut_ns, 20 * SECOND);
        times.pass(47 * SECOND); // a server that took longer than a period
        assert_eq!(times.shut_ns, 50 * SECOND);
        let mut never = Standstills::never();
        never.pass(u64::MAX);
        assert_eq!(never.shut_ns, u64::MAX);
    }

    #[test]
    fn the_last_thread_to_come_decides_when_it_goes_on() {
        let times = Standstills::new(&SPEC, Timetable::new(0, 20 * SECOND, SECOND));
        let meeting = Meeting::new(2);
        meeting.arrive(1, 5 * SECOND + 7, &times);
        assert_eq!(meeting.resume_ns(1), None);
        meeting.arrive(1, 5 * SECOND + 3, &times);
        assert_eq!(meeting.resume_ns(1), Some(5 * SECOND + 200_000_007));
        meeting.arrive(2, 15 * SECOND, &times);
        assert_eq!(meeting.resume_ns(1), Some(5 * SECOND + 200_000_007), "nobody has seen it yet");
        assert_eq!(meeting.resume_ns(2), None);
    }

    #[test]
    fn a_share_that_is_none_is_refused() {
        assert!(SPEC.mistakes().is_empty());
        for share in [0.0, -0.1, 0.6, f64::NAN] {
            assert_eq!(StandstillSpec { share, ..SPEC }.mistakes().len(), 1, "{share}");
        }
        assert_eq!(StandstillSpec { period_s: f64::INFINITY, ..SPEC }.mistakes().len(), 1);
    }
}
