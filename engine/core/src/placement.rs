//! How engine threads are scheduled beside the server they load.
//!
//! **batch**, as [`CHOSEN`] says: with several connections an engine thread is a batch thread (`SCHED_BATCH`),
//! which does not preempt a server thread for each single reply; it finds several replies and sends several
//! requests at once. With one connection there is nothing to find, and it stays a normal thread.
//!
//! **normal**: threads as the system makes them. With 8 and 64 connections the server then gets less of
//! shared cores than beside sysbench.
//!
//! With **a rate, think time or a delay** of replies threads must wake up on time, so they are normal ones
//! whatever is asked for, with exact timers: on two busy cores the median lag is 25 µs instead of 250 µs.
//!
//! No thread is pinned to a core: figures in docs/how-it-works/decisions.md.

use rustix::thread::set_current_timer_slack;
use serde::Serialize;
use std::num::NonZeroU64;

/// Ways to schedule engine threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Threads as the system makes them.
    Normal,
    /// Batch threads, where there are several connections.
    Batch,
}

/// The way that every run takes.
pub const CHOSEN: Choice = Choice::Batch;

/// How an engine thread was placed, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Scheduling policy: `normal` or `batch`.
    pub policy: &'static str,
    /// What was asked for and is not so; empty if nothing.
    pub refused: &'static str,
}

/// A thread as the system made it.
pub const NORMAL: Placed = Placed { policy: "normal", refused: "" };

/// Places the calling thread of a run with so many connections as [`CHOSEN`] says. If it waits for
/// moments of its own (`is_timed`), it stays a normal one, with exact timers.
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

/// Makes the calling thread a batch thread, which does not preempt others when it wakes up. This needs
/// no privilege; false where the system refuses.
pub fn become_batch_thread() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` lives through the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) == 0 }
}

/// Makes the timers of the calling thread exact (timer slack 1 ns); the default is 50 µs late, which saves
/// energy.
pub(crate) fn make_timers_exact() {
    // Where the system refuses, timers stay as they are.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scheduling policy of the calling thread.
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
