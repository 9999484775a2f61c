//! Scheduling of engine threads beside the server they load.
//!
//! - **batch**, the choice of [`CHOSEN`]: with several connections an engine thread is a batch
//!   thread (`SCHED_BATCH`). It does not preempt a server thread for each reply; it finds several
//!   replies and sends several requests at once. With one connection it stays a normal thread.
//! - **normal**: the system's default. With 8 and 64 connections the server then gets less of
//!   shared cores than beside sysbench.
//!
//! Runs with **a rate, think time or a delay** of replies need punctual wake-ups, so their threads
//! are always normal ones with exact timers: on two busy cores the median lag is 25 µs instead of
//! 250 µs.
//!
//! Threads are not pinned to cores: figures in docs/how-it-works/decisions.md.

use rustix::thread::set_current_timer_slack;
use serde::Serialize;
use std::num::NonZeroU64;

/// Scheduling of engine threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The system's default.
    Normal,
    /// Batch threads if there are several connections.
    Batch,
}

/// Scheduling of every run.
pub const CHOSEN: Choice = Choice::Batch;

/// Scheduling of an engine thread, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Scheduling policy: `normal` or `batch`.
    pub policy: &'static str,
    /// Placement the system refused; empty if granted.
    pub refused: &'static str,
}

/// The system's default.
pub const NORMAL: Placed = Placed { policy: "normal", refused: "" };

/// Places the calling thread of a run with `connections` connections according to [`CHOSEN`]. A
/// timed thread (`is_timed`) stays normal and gets exact timers.
#[must_use]
pub fn place(connections: u32, is_timed: bool) -> Placed {
    if is_timed {
        make_timers_exact();
    }
    if is_timed || CHOSEN == Choice::Normal || connections == 1 {
        return NORMAL;
    }
    if become_batch_thread() {
        Placed { policy: "batch", refused: "" }
    } else {
        Placed { refused: "a batch thread", ..NORMAL }
    }
}

/// Makes the calling thread a batch thread, which does not preempt others on wake-up. Needs no
/// privilege; false if the system refuses.
pub fn become_batch_thread() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` lives through the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) == 0 }
}

/// Sets the timer slack of the calling thread to 1 ns; the default of 50 µs saves energy.
pub(crate) fn make_timers_exact() {
    // A refusal leaves the timers as they are.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scheduling policy of the calling thread.
    fn policy() -> libc::c_int {
        // SAFETY: asks about the calling thread only.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn only_the_calling_thread_becomes_a_batch_thread() {
        let before = policy();
        let worker = std::thread::spawn(move || {
            become_batch_thread();
            policy()
        });
        assert_eq!(worker.join().unwrap(), libc::SCHED_BATCH);
        assert_eq!(policy(), before);
    }
}
