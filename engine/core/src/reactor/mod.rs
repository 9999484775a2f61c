//! Moves bytes to and from the sockets of a worker thread by `io_uring`, `epoll`, or a dry run.
//!
//! A worker queues requests, waits, and takes arrivals ([`Reactor`]). `io_uring` does a whole round
//! (send many, wait, receive many) in a single system call; `epoll` exists on every Linux, also in
//! containers that forbid `io_uring`. Nearly all CPU of a client goes into system calls, so
//! `io_uring` is chosen wherever the kernel allows it.

mod buffers;
mod delayed;
mod dry_run;
mod epoll;
mod ring;
#[cfg(test)]
pub(crate) mod simulated;
mod uring;

pub use delayed::Delayed;
pub use dry_run::DryRun;
pub use epoll::Epoll;
pub use uring::Uring;

use crate::time::clock::Clock;
use serde::Deserialize;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Selection of the kernel interface.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// `io_uring` where the kernel allows it, `epoll` otherwise.
    #[default]
    Auto,
    /// `io_uring` or an error.
    IoUring,
    /// `epoll`.
    Epoll,
}

/// Kind of event on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalKind {
    /// Received bytes; read them with [`Reactor::bytes`], then give them back.
    Bytes,
    /// The peer closed.
    Closed,
    /// Failure with the system's error number.
    Failed(i32),
}

/// Event on a socket.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Place of the socket in the list given to `open`.
    pub slot: u32,
    /// Kind of the event.
    pub kind: ArrivalKind,
    pub(super) buffer: u16,
    pub(super) length: u32,
}

/// Socket operations of a worker.
pub trait Reactor: Sized {
    /// Name for records.
    const NAME: &'static str;

    /// Time on the run's clock, ns. A simulated reactor has a clock of its own.
    #[inline]
    fn now_ns(&self, clock: &Clock) -> u64 {
        clock.now_ns()
    }

    /// Queues a whole request. The bytes are copied, so the caller keeps its buffer. They leave
    /// with the next `wait` or `flush` at the latest.
    ///
    /// # Errors
    /// If the slot's last request has not left yet (a reply came before its request).
    fn send(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()>;

    /// Sends queued requests, then waits for an arrival, for at most `max_wait`. A given `at_most`
    /// limits the wait precisely, since a schedule depends on it.
    ///
    /// # Errors
    /// Failure of the interface itself; trouble with a single socket is an [`Arrival`].
    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()>;

    /// Replaces the connected socket of a slot. Requests queued for the old socket are lost, and
    /// its later events are dropped.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn replace(&mut self, slot: u32, socket: OwnedFd) -> io::Result<()>;

    /// Sends queued requests without waiting.
    ///
    /// # Errors
    /// As [`Self::wait`].
    fn flush(&mut self) -> io::Result<()>;

    /// Next arrival; None when a new `wait` is due.
    fn next_arrival(&mut self) -> Option<Arrival>;

    /// Bytes of an arrival.
    fn bytes(&self, arrival: &Arrival) -> &[u8];

    /// Returns an arrival's buffer. Every arrival must be given back once.
    fn give_back(&mut self, arrival: Arrival);
}

/// Reactor over sockets of the system.
pub trait OpenReactor: Reactor {
    /// Takes over connected stream sockets; slot i is the i-th of them. A wait takes about
    /// `max_wait` at most.
    ///
    /// The limit belongs to the reactor, not to a wait: a periodic timer costs nothing, while a
    /// timeout per wait is set and removed with every reply.
    ///
    /// # Errors
    /// The kernel's refusal of the interface or its resources.
    fn open(sockets: Vec<OwnedFd>, max_wait: Duration) -> io::Result<Self>;
}

/// True if this kernel allows `io_uring` with the features used here; tried by opening a ring.
#[must_use]
pub fn io_uring_is_allowed() -> bool {
    ring::allows(&[1])
}

/// Resolves `Auto` for workers with these numbers of sockets: a kernel with `io_uring` may still
/// refuse the memory for all of them.
#[must_use]
pub fn settle(choice: Choice, sockets_of_workers: &[usize]) -> Choice {
    match choice {
        Choice::Auto if ring::allows(sockets_of_workers) => Choice::IoUring,
        Choice::Auto => Choice::Epoll,
        chosen => chosen,
    }
}
