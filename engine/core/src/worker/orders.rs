//! What a worker is told about the run, and what it leaves behind.

use crate::error::Failure;
use crate::record::recorder::Rest;
use crate::spec::IgnoredErrors;
use crate::time::clock::Clock;
use crate::time::schedule::Phase;
use crate::worker::connection::Share;
use crate::workload::Workload;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What all workers of a run share.
pub struct Control<'a> {
    /// The user wants it to end.
    pub stop: &'a AtomicBool,
    /// A worker failed: all end.
    pub failed: AtomicBool,
    /// Events still to be begun after the warm-up; None for no limit. Those that the end of the
    /// warm-up finds in flight are not among them.
    pub budget: Option<AtomicU64>,
}

impl Control<'_> {
    /// Whether no event is to be begun any more, whatever the clock says.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Whether all events that may be begun have been.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.load(Ordering::Relaxed) == 0)
    }

    /// Takes one event out of the budget; false when it is spent.
    #[must_use]
    pub fn claim(&self, phase: Phase) -> bool {
        let Some(budget) = self.budget.as_ref().filter(|_| phase != Phase::Warmup) else {
            return true;
        };
        budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
    }
}

/// What a worker is told about the run.
#[derive(Clone, Copy)]
pub struct Orders<'a> {
    /// What is run.
    pub workload: &'a dyn Workload,
    /// Errors that begin the event again.
    pub ignored: &'a IgnoredErrors,
    /// The run's clock.
    pub clock: Clock,
    /// No event is begun from here on, ns.
    pub deadline_ns: u64,
    /// What is still in flight is given up from here on, ns.
    pub give_up_ns: u64,
    /// What all workers share.
    pub control: &'a Control<'a>,
}

/// What a worker leaves behind.
pub struct Legacy {
    /// Why it ended early; None if it did not.
    pub failure: Option<Failure>,
    /// What its recorder had left to tell.
    pub rest: Rest,
    /// Each connection's part.
    pub shares: Vec<Share>,
}
