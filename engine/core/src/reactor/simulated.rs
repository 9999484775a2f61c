//! A simulated server under a virtual clock: what a load gives can be said to the nanosecond, however
//! busy the machine is.
//!
//! All engine threads of a simulated run live in one thread of the test and share one clock, which
//! stands still but for waiting. The test is the scheduler: it sets the clock to the earliest moment
//! at which a thread has something to do, and gives that thread its turn.

use super::{Arrival, ArrivalKind, Reactor};
use crate::time::clock::Clock;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

/// OK as packet number 1, autocommit.
pub(crate) const OK: &[u8] = super::dry_run::OK;
/// ERR 1213 as packet number 1: a deadlock.
pub(crate) const DEADLOCK: &[u8] = b"\x0b\0\0\x01\xff\xbd\x04#40001go";
pub(crate) const MS: u64 = 1_000_000;

/// What comes of a socket.
#[derive(Clone, Debug)]
pub(crate) enum Coming {
    Bytes(Vec<u8>),
    Closed,
    Failed(i32),
}

/// A request that reaches the server.
pub(crate) struct Request<'a> {
    pub(crate) now_ns: u64,
    /// Which socket it came through, of all that the run has had.
    pub(crate) socket: Socket,
    pub(crate) bytes: &'a [u8],
}

/// A socket of a run: its thread, its slot, and how often that slot's was replaced before.
pub(crate) type Socket = (usize, u32, u32);

/// What a server does with a request: what comes of the socket after how many ns.
pub(crate) type Server = Box<dyn FnMut(Request<'_>) -> Vec<(u64, Coming)>>;

/// A server that answers each statement after so many milliseconds.
pub(crate) fn answering_after_ms(service_ms: u64) -> Server {
    Box::new(move |_| vec![(service_ms * MS, Coming::Bytes(OK.to_vec()))])
}

/// The same, but for a stall in which nothing is begun.
pub(crate) fn stalling(service_ms: u64, stall_after_ms: u64, stall_ms: u64) -> Server {
    Box::new(move |request| {
        let end_ns = (stall_after_ms + stall_ms) * MS;
        let is_stalled = (stall_after_ms * MS..end_ns).contains(&request.now_ns);
        let waits_ns = if is_stalled { end_ns - request.now_ns } else { 0 };
        vec![(waits_ns + service_ms * MS, Coming::Bytes(OK.to_vec()))]
    })
}

/// What all threads of a simulated run share.
pub(crate) struct World {
    pub(crate) now_ns: Cell<u64>,
    server: RefCell<Server>,
}

impl World {
    pub(crate) fn of(server: Server) -> Rc<Self> {
        Rc::new(Self { now_ns: Cell::new(0), server: RefCell::new(server) })
    }
}

/// What is on its way to the sockets of one engine thread.
#[derive(Default)]
pub(crate) struct Wire {
    thread: usize,
    coming: BTreeMap<(u64, u64), (Socket, Coming)>,
    put: u64,
    /// When the last thing that is on its way comes of a socket.
    last_ns: BTreeMap<Socket, u64>,
    /// How often the socket of a slot was replaced.
    replaced: BTreeMap<u32, u32>,
    wakes_ns: u64,
}

impl Wire {
    pub(crate) fn of(thread: usize) -> Self {
        Self { thread, ..Self::default() }
    }

    /// The socket that a slot has now.
    pub(crate) fn socket(&self, slot: u32) -> Socket {
        (self.thread, slot, self.replaced.get(&slot).copied().unwrap_or(0))
    }

    /// When the thread has something to do.
    pub(crate) fn next_ns(&self) -> u64 {
        self.coming.keys().next().map_or(u64::MAX, |&(at_ns, _)| at_ns).min(self.wakes_ns)
    }

    /// The thread has ended.
    pub(crate) fn end(&mut self) {
        (self.coming, self.wakes_ns) = (BTreeMap::new(), u64::MAX);
    }

    pub(crate) fn put(&mut self, at_ns: u64, slot: u32, coming: Coming) {
        let socket = self.socket(slot);
        let last_ns = self.last_ns.entry(socket).or_default();
        *last_ns = at_ns.max(*last_ns); // a socket keeps the order of its bytes
        self.coming.insert((*last_ns, self.put), (socket, coming));
        self.put += 1;
    }

    fn take(&mut self, now_ns: u64) -> Option<(u32, Coming)> {
        loop {
            let first = self.coming.first_entry().filter(|first| first.key().0 <= now_ns)?;
            let (socket, coming) = first.remove();
            if socket != self.socket(socket.1) {
                continue; // it is not there any more
            }
            if !matches!(coming, Coming::Bytes(_)) {
                self.coming.retain(|_, (of, _)| *of != socket);
            }
            return Some((socket.1, coming));
        }
    }
}

/// The reactor of one engine thread.
pub(crate) struct Simulated {
    world: Rc<World>,
    wire: Rc<RefCell<Wire>>,
    max_wait: Duration,
    bytes: Vec<u8>,
}

impl Simulated {
    pub(crate) fn on(world: &Rc<World>, wire: &Rc<RefCell<Wire>>, max_wait: Duration) -> Self {
        Self { world: Rc::clone(world), wire: Rc::clone(wire), max_wait, bytes: Vec::new() }
    }
}

impl Reactor for Simulated {
    const NAME: &'static str = "simulated";

    fn now_ns(&self, _clock: &Clock) -> u64 {
        self.world.now_ns.get()
    }

    fn send(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()> {
        let now_ns = self.world.now_ns.get();
        let mut wire = self.wire.borrow_mut();
        let request = Request { now_ns, socket: wire.socket(slot), bytes };
        for (after_ns, coming) in (self.world.server.borrow_mut())(request) {
            wire.put(now_ns + after_ns, slot, coming);
        }
        Ok(())
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        let wait = at_most.unwrap_or(self.max_wait).min(self.max_wait);
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap();
        self.wire.borrow_mut().wakes_ns = self.world.now_ns.get() + wait_ns;
        Ok(())
    }

    fn replace(&mut self, slot: u32, _socket: OwnedFd) -> io::Result<()> {
        *self.wire.borrow_mut().replaced.entry(slot).or_default() += 1;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        let (slot, coming) = self.wire.borrow_mut().take(self.world.now_ns.get())?;
        let what = match coming {
            Coming::Bytes(bytes) => {
                self.bytes = bytes;
                ArrivalKind::Bytes
            }
            Coming::Closed => ArrivalKind::Closed,
            Coming::Failed(number) => ArrivalKind::Failed(number),
        };
        Some(Arrival { slot, what, buffer: 0, length: 0 })
    }

    fn bytes(&self, _arrival: &Arrival) -> &[u8] {
        &self.bytes
    }

    fn give_back(&mut self, _arrival: Arrival) {}
}
