//! Where engine threads run: scheduling policy and CPU affinity beside the server they load.
//!
//! Two choices, measured on two cores shared with MySQL 8.0.15 (`benchmarks/placement.py`):
//!
//! **batch**, the default: each engine thread becomes a batch thread (`SCHED_BATCH`) and is pinned to the
//! core it is on (CPU affinity). A batch thread does not preempt a server thread for each single reply; it
//! finds several replies and sends several requests at once. An unpinned thread is woken on whichever core
//! is idle, and waking an idle core costs more than the request. No two engine threads of a machine are
//! pinned to one core, and an affinity mask that was set outside (taskset, the lab) is never widened.
//!
//! **normal**: threads as the system makes them. With 8 and 64 connections the server then gets less of the
//! cores than beside sysbench.
//!
//! With **a rate or think time** threads must wake up on time, so they are normal ones whatever is asked
//! for, with exact timers: on two busy cores the median lag is 25 µs instead of 250 µs.

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity, set_current_timer_slack};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::num::NonZeroU64;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Where leases of cores are: memory that all users and all network namespaces of a machine see.
const LEASES: &str = "/dev/shm";

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Threads as the system makes them.
    Normal,
    /// Batch threads, each pinned to a core.
    #[default]
    Batch,
}

/// How an engine thread was placed, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Scheduling policy: `normal` or `batch`.
    pub policy: &'static str,
    /// The core it was pinned to; None where it might run on several.
    pub core: Option<usize>,
    /// What was asked for and is not so; empty if nothing.
    pub refused: &'static str,
}

/// How an engine thread is placed, as long as the value lives.
pub struct Placement {
    /// How, for the record.
    pub placed: Placed,
    #[expect(dead_code, reason = "its core is free again when it is dropped")]
    core: Option<PinnedCore>,
}

impl Placement {
    /// A thread as the system made it.
    #[must_use]
    pub const fn normal() -> Self {
        Self { placed: Placed { policy: "normal", core: None, refused: "" }, core: None }
    }

    /// Places the calling thread as the choice says. With a rate or think time (`is_scheduled`) it stays a
    /// normal one, with exact timers.
    #[must_use]
    pub fn of(choice: Choice, is_scheduled: bool) -> Self {
        if is_scheduled {
            make_timers_exact();
        }
        if is_scheduled || choice == Choice::Normal {
            return Self::normal();
        }
        let (is_batch, core) = (become_batch_thread(), PinnedCore::take(Path::new(LEASES)));
        let refused = match (is_batch, &core) {
            (true, Some(_)) => "",
            (false, Some(_)) => "a batch thread",
            (true, None) => "a core of its own",
            (false, None) => "a batch thread, a core of its own",
        };
        let policy = if is_batch { "batch" } else { "normal" };
        let number = core.as_ref().map(|pinned| pinned.number);
        Self { placed: Placed { policy, core: number, refused }, core }
    }
}

/// Makes the calling thread a batch thread, which does not preempt others when it wakes up. This needs
/// no privilege; false where the system refuses.
fn become_batch_thread() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` lives through the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) == 0 }
}

/// Makes the timers of the calling thread exact (timer slack 1 ns); the default is 50 µs late, which saves
/// energy.
fn make_timers_exact() {
    // Where the system refuses, timers stay as they are.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// A core to which exactly one engine thread of this machine is pinned.
struct PinnedCore {
    number: usize,
    /// A locked file; the kernel frees it when the process ends.
    _lease: File,
}

impl PinnedCore {
    /// Pins the calling thread to the core it runs on, for as long as the thread lives. None, and the
    /// thread stays unpinned, if another engine thread is pinned there or the system refuses.
    fn take(leases: &Path) -> Option<Self> {
        let number = sched_getcpu();
        let lease = opened(&leases.join(format!("dbdyno-engine-core-{number}")))?;
        flock(&lease, FlockOperation::NonBlockingLockExclusive).ok()?;
        pin_to(number).then_some(Self { number, _lease: lease })
    }
}

/// The file, made if it is not there. It is opened to be read only, so it may be another user's.
fn opened(path: &Path) -> Option<File> {
    let there = || OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path);
    let made = || OpenOptions::new().write(true).create_new(true).mode(0o444).open(path);
    there().or_else(|_| made()).or_else(|_| there()).ok()
}

/// Pins the calling thread to `core`; false where the system refuses, or counts more cores than an
/// affinity mask has here.
fn pin_to(core: usize) -> bool {
    if core >= CpuSet::MAX_CPU {
        return false;
    }
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

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

    fn cores() -> u32 {
        sched_getaffinity(None).unwrap().count()
    }

    #[test]
    fn a_core_beyond_the_length_of_a_mask_is_refused() {
        let before = cores();
        assert!(!pin_to(CpuSet::MAX_CPU) && !pin_to(usize::MAX));
        assert_eq!(cores(), before);
    }

    #[test]
    fn a_pinned_core_is_nobody_elses_until_it_is_free() {
        let folder = std::env::temp_dir().join(format!("dbdyno-leases-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (all, leases) = (cores(), folder.clone());
        std::thread::spawn(move || {
            let core = PinnedCore::take(&leases).unwrap();
            assert_eq!(cores(), 1);
            assert!(PinnedCore::take(&leases).is_none(), "one core was given twice");
            drop(core);
            assert!(PinnedCore::take(&leases).is_some());
            assert!(PinnedCore::take(&leases.join("missing")).is_none());
        })
        .join()
        .unwrap();
        assert_eq!(cores(), all);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
