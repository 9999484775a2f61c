//! Where engine threads run: scheduling policy and CPU affinity beside the server they load.
//!
//! Three choices, measured on two cores shared with MySQL 8.0.15 (point selects):
//!
//! **Several connections in a closed loop**: each engine thread becomes a *batch* thread
//! (`SCHED_BATCH`) and is pinned to one core (CPU affinity). A batch thread does not preempt a
//! server thread for each single reply; it finds several replies and sends several requests at
//! once: a third less CPU per query and a third more throughput, with lower p50, p95 and p99. An
//! unpinned thread is woken on whichever core is idle, and waking an idle core costs more than the
//! request; pinning saves another third to a half of the CPU per query at 64 connections. No two
//! engine threads of a machine are pinned to one core, and an affinity mask that was set outside
//! (taskset, the lab) is never widened.
//!
//! **One connection in a closed loop**: the thread follows the server's thread, see
//! [`ServerFollower`].
//!
//! **A rate or think time**: threads must wake up on time, so they stay normal threads that may run
//! on any idle core, with exact timers: on two busy cores the median lag is 25 µs instead of 250
//! µs.

mod follow;
mod server_core;
mod starvation;

pub use follow::ServerFollower;

use rustix::thread::{CpuSet, Pid, sched_getcpu, sched_setaffinity, set_current_timer_slack};
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// How an engine thread is placed, as long as the value lives.
pub enum Placement {
    /// On any core.
    Free,
    /// Pinned to one core that no other engine thread is pinned to.
    Pinned(PinnedCore),
    /// On the core of the server's thread.
    Following(Box<ServerFollower>),
}

impl Placement {
    /// For a rate or think time: exact timers, any core.
    #[must_use]
    pub fn with_exact_timers() -> Self {
        make_timers_exact();
        Self::Free
    }

    /// For a closed loop over several connections: a batch thread, pinned to one core.
    #[must_use]
    pub fn pinned() -> Self {
        become_batch_thread();
        PinnedCore::take().map_or(Self::Free, Self::Pinned)
    }

    /// For a closed loop over a single connection: on the core of the server's thread, if possible.
    /// `is_alone` says that the run has no other connection.
    #[must_use]
    pub fn following_server(socket: BorrowedFd<'_>, is_alone: bool) -> Self {
        ServerFollower::begin(socket, is_alone)
            .map_or_else(Self::pinned, |follow| Self::Following(Box::new(follow)))
    }

    /// To be called whenever the clock was read.
    #[inline]
    pub fn look(&mut self, now_ns: u64) {
        if let Self::Following(follow) = self
            && !follow.follow_on(now_ns)
        {
            *self = Self::Free;
        }
    }
}

/// Makes the calling thread a batch thread, which does not preempt others when it wakes up. This needs
/// no privilege; where the system refuses, the thread stays as it is.
pub fn become_batch_thread() {
    set_policy(None, libc::SCHED_BATCH);
}

/// Sets the scheduling policy of `thread`, None for the calling one; false where the system refuses.
fn set_policy(thread: Option<Pid>, policy: libc::c_int) -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    let thread = Pid::as_raw(thread);
    // SAFETY: `parameters` lives through the call.
    unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) == 0 }
}

/// Makes the timers of the calling thread exact (timer slack 1 ns); the default is 50 µs late, which saves
/// energy.
pub fn make_timers_exact() {
    // Where the system refuses, timers stay as they are.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// A core to which exactly one engine thread of this machine is pinned.
pub struct PinnedCore {
    /// An abstract Unix socket whose name only one process can bind; the kernel frees it when the
    /// process ends.
    _lease: UnixListener,
}

impl PinnedCore {
    /// Pins the calling thread to the core it runs on, for as long as the thread lives. None, and the
    /// thread stays unpinned, if another engine thread is pinned there or the system refuses.
    #[must_use]
    pub fn take() -> Option<Self> {
        let core = sched_getcpu();
        let name = SocketAddr::from_abstract_name(format!("dbdyno-engine-core-{core}")).ok()?;
        let lease = UnixListener::bind_addr(&name).ok()?;
        pin_to(core).then_some(Self { _lease: lease })
    }
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

/// Whether `core` is among `cores`; one beyond the length of a mask is not.
fn contains(cores: &CpuSet, core: usize) -> bool {
    core < CpuSet::MAX_CPU && cores.is_set(core)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

    /// The scheduling policy of the calling thread.
    pub(super) fn policy() -> libc::c_int {
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
        assert!(!contains(&sched_getaffinity(None).unwrap(), CpuSet::MAX_CPU));
        assert_eq!(cores(), before);
    }

    #[test]
    fn a_pinned_core_is_nobody_elses_until_it_is_free() {
        let all = cores();
        std::thread::spawn(move || {
            // Another test's engine may be pinned here; then this thread must stay unpinned.
            let Some(core) = PinnedCore::take() else { return assert_eq!(cores(), all) };
            assert_eq!(cores(), 1);
            assert!(PinnedCore::take().is_none(), "one core was given twice");
            drop(core);
            assert!(PinnedCore::take().is_some());
        })
        .join()
        .unwrap();
        assert_eq!(cores(), all);
    }
}
