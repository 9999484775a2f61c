//! How an engine thread shares cores with the server it loads.
//!
//! Two habits, both measured side by side on two cores shared with MySQL 8.0.15 (point selects):
//!
//! A generator mostly sleeps, so the kernel would let it interrupt a server thread for each single
//! reply. As a **batch** thread it waits for its turn instead, finds several replies and sends several
//! requests at one go: a third less CPU per query, a third more throughput, lower p50, p95 and p99.
//!
//! A thread that wakes is put on an idle core if there is one, so a generator with many connections
//! wanders, and its requests wake cores from idleness, which costs more than the request itself.
//! Therefore it keeps its **seat**, the core it was found on: at 64 connections a third to a half
//! less CPU per query again. Two generators never take one seat, and where a thread may run at all
//! (taskset, the lab's pinning) is never widened.
//!
//! A single connection is a case of its own, see [`Ride`].
//!
//! A schedule turns this round: who shall send at a given moment must wake then, whoever else runs. So
//! with a rate or think time a thread stays a normal one, free to move to an idle core, and its timers
//! are exact: on two crowded cores the median of its lag is 25 µs instead of 250 µs.

mod rescue;
mod ride;
mod whereabouts;

pub use ride::Ride;

use crate::system::checked;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// How the kernel's scheduling calls name whoever calls them.
const THIS_THREAD: libc::pid_t = 0;

/// What an engine thread has settled to, for as long as this lives.
pub enum Place {
    /// Anywhere.
    Free,
    /// On a core of its own among engine threads.
    Seated(Seat),
    /// Wherever the server's thread is.
    Riding(Box<Ride>),
}

impl Place {
    /// For a thread whose timers count.
    #[must_use]
    pub fn on_time() -> Self {
        be_punctual();
        Self::Free
    }

    /// For a closed loop over several connections.
    #[must_use]
    pub fn behind_the_servers() -> Self {
        give_way_to_the_server();
        Seat::take().map_or(Self::Free, Self::Seated)
    }

    /// For a thread with a closed loop over a single connection; `is_alone` says that the run has no
    /// other.
    #[must_use]
    pub fn beside_the_server_of(socket: BorrowedFd<'_>, is_alone: bool) -> Self {
        Ride::begin(socket, is_alone)
            .map_or_else(Self::behind_the_servers, |ride| Self::Riding(Box::new(ride)))
    }

    /// To be called whenever the clock was read.
    #[inline]
    pub fn look(&mut self, now_ns: u64) {
        if let Self::Riding(ride) = self
            && !ride.goes_on(now_ns)
        {
            *self = Self::Free;
        }
    }
}

/// Makes the calling thread one that does not interrupt others when it wakes. It needs no privilege;
/// where the system refuses, the thread stays as it is.
pub fn give_way_to_the_server() {
    waiting_its_turn(THIS_THREAD);
}

/// Makes `thread` a batch thread, where the system allows it.
fn waiting_its_turn(thread: libc::pid_t) {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` lives through the call.
    unsafe { libc::sched_setscheduler(thread, libc::SCHED_BATCH, &raw const parameters) };
}

/// Makes the calling thread's timers exact; a thread's are 50 µs late by default, to save energy.
pub fn be_punctual() {
    // SAFETY: takes a number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// A core that one engine thread of this machine has to itself among engine threads.
pub struct Seat {
    /// A name that only one process can hold, and that the kernel frees when it ends: no file that
    /// could be left behind.
    _lease: UnixListener,
}

impl Seat {
    /// Keeps the calling thread on the core it is on, for as long as it lives; None, and the thread
    /// goes on wandering, if another engine thread sits there or the system refuses.
    #[must_use]
    pub fn take() -> Option<Self> {
        // SAFETY: takes nothing and touches no memory.
        let core = usize::try_from(unsafe { libc::sched_getcpu() }).ok()?;
        let name = SocketAddr::from_abstract_name(format!("dbdyno-engine-core-{core}")).ok()?;
        let lease = UnixListener::bind_addr(&name).ok()?;
        stay_on(core).then_some(Self { _lease: lease })
    }
}

fn stay_on(core: usize) -> bool {
    // SAFETY: a set of cores is an array of bits, all of them 0 at first; CPU_SET checks the number
    // against its length.
    let cores = unsafe {
        let mut cores: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut cores);
        cores
    };
    allow(THIS_THREAD, &cores)
}

/// Lets `thread` run on these cores only; false where the system refuses.
fn allow(thread: libc::pid_t, cores: &libc::cpu_set_t) -> bool {
    // SAFETY: the kernel reads one set, which lives through the call.
    unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), cores) == 0 }
}

fn allowed_cores() -> io::Result<libc::cpu_set_t> {
    // SAFETY: a set of cores is an array of bits; the kernel fills at most the size that is given.
    unsafe {
        let mut cores: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        checked(libc::sched_getaffinity(0, size, &raw mut cores))?;
        Ok(cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_becomes_a_batch_thread() {
        // SAFETY: asks about the calling thread only.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let worker = std::thread::spawn(move || {
            give_way_to_the_server();
            policy()
        });
        assert_eq!(worker.join().unwrap(), libc::SCHED_BATCH);
        assert_eq!(policy(), before);
    }

    fn cores() -> i32 {
        // SAFETY: counting reads the set only.
        unsafe { libc::CPU_COUNT(&allowed_cores().unwrap()) }
    }

    #[test]
    fn a_seat_is_one_core_and_nobody_elses_until_it_is_free() {
        let all = cores();
        std::thread::spawn(move || {
            // Another test's engine may sit here; then this thread must go on wandering.
            let Some(seat) = Seat::take() else { return assert_eq!(cores(), all) };
            assert_eq!(cores(), 1);
            assert!(Seat::take().is_none(), "one seat was given twice");
            drop(seat);
            assert!(Seat::take().is_some());
        })
        .join()
        .unwrap();
        assert_eq!(cores(), all);
    }
}
