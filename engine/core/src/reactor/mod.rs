//! Moves bytes to and from the sockets of one worker thread: `io_uring`, `epoll`, or none (dry
//! run).
//!
//! A worker queues requests, waits, and takes what arrived ([`Reactor`]). `io_uring` does a whole
//! round (send many, wait, receive many) in one system call; `epoll` is there on every Linux, also
//! in containers that forbid `io_uring`. Nearly all CPU of a client goes into system calls, so
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

/// Which interface is wanted.
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

/// What happened on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalKind {
    /// Bytes came in; read them with [`Reactor::bytes`], then give them back.
    Bytes,
    /// The other side closed.
    Closed,
    /// The system reports this error number.
    Failed(i32),
}

/// Something that happened on a socket.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The socket, by its place in the list given to `open`.
    pub slot: u32,
    /// What happened.
    pub what: ArrivalKind,
    pub(super) buffer: u16,
    pub(super) length: u32,
}

/// What a worker needs of the system.
pub trait Reactor: Sized {
    /// The name that records carry.
    const NAME: &'static str;

    /// The time on the run's clock, ns. A simulated reactor has a clock of its own.
    #[inline]
    fn now_ns(&self, clock: &Clock) -> u64 {
        clock.now_ns()
    }

    /// Queues a whole request. The bytes are copied, so the caller keeps its buffer. They leave
    /// at the latest with the next `wait` or `flush`.
    ///
    /// # Errors
    /// When the last request of this slot has not left yet (a reply came before its request).
    fn send(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()>;

    /// Sends what is queued, then waits until something arrives, for `max_wait` at the longest, and
    /// if `at_most` is given for precisely that long, since a schedule depends on it.
    ///
    /// # Errors
    /// When the interface itself fails; trouble with one socket is an [`Arrival`].
    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()>;

    /// Puts another connected socket into a slot. What was queued for the old one is lost with it,
    /// and nothing that still comes of it is ever told.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn replace(&mut self, slot: u32, socket: OwnedFd) -> io::Result<()>;

    /// Sends what is queued, without waiting.
    ///
    /// # Errors
    /// As [`Self::wait`].
    fn flush(&mut self) -> io::Result<()>;

    /// The next thing that arrived; None when a new `wait` is due.
    fn next_arrival(&mut self) -> Option<Arrival>;

    /// The bytes of an arrival.
    fn bytes(&self, arrival: &Arrival) -> &[u8];

    /// Gives the arrival's buffer back. Every arrival must be given back once.
    fn give_back(&mut self, arrival: Arrival);
}

/// A reactor over sockets of the system.
pub trait OpenReactor: Reactor {
    /// Takes over connected stream sockets; slot i is the i-th of them. A wait takes about
    /// `max_wait` at most.
    ///
    /// This limit belongs to the reactor, not to a wait: one timer that ticks on costs nothing, while a
    /// timeout for each wait is set and removed with every reply.
    ///
    /// # Errors
    /// When the kernel refuses the interface or its resources.
    fn open(sockets: Vec<OwnedFd>, max_wait: Duration) -> io::Result<Self>;
}

/// Whether this kernel lets us use `io_uring` as we need it; asked by opening one.
#[must_use]
pub fn io_uring_is_allowed() -> bool {
    ring::allows(&[1])
}

/// Resolves `Auto` for workers with these numbers of sockets: a kernel that has `io_uring` may still
/// refuse the memory that so many of them want.
#[must_use]
pub fn settle(choice: Choice, sockets_of_workers: &[usize]) -> Choice {
    match choice {
        Choice::Auto if ring::allows(sockets_of_workers) => Choice::IoUring,
        Choice::Auto => Choice::Epoll,
        chosen => chosen,
    }
}
