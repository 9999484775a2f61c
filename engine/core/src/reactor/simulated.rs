//! Simulated server under a virtual clock: results are exact to the nanosecond on any machine.
//!
//! All engine threads of a simulated run live in a single thread of the test and share a clock,
//! which advances only by waiting. The test is the scheduler: it sets the clock to the earliest
//! moment at which a thread has something to do, and gives the thread its turn.

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

/// Event coming from a socket.
#[derive(Clone, Debug)]
pub(crate) enum Coming {
    Bytes(Vec<u8>),
    Closed,
    Failed(i32),
}

/// Request reaching the server.
pub(crate) struct Request<'a> {
    pub(crate) now_ns: u64,
    /// Socket the request came through.
    pub(crate) socket: Socket,
    pub(crate) bytes: &'a [u8],
}

/// Socket of a run: its thread, its slot, and the number of earlier sockets of the slot.
pub(crate) type Socket = (usize, u32, u32);

/// Server's reaction to a request: events of the socket, each after some ns.
pub(crate) type Server = Box<dyn FnMut(Request<'_>) -> Vec<(u64, Coming)>>;

/// Server with a fixed service time.
pub(crate) fn answering_after_ms(service_ms: u64) -> Server {
    Box::new(move |_| vec![(service_ms * MS, Coming::Bytes(OK.to_vec()))])
}

/// Server with a fixed service time and a stall in which no statement begins.
pub(crate) fn stalling(service_ms: u64, stall_after_ms: u64, stall_ms: u64) -> Server {
    Box::new(move |request| {
        let end_ns = (stall_after_ms + stall_ms) * MS;
        let is_stalled = (stall_after_ms * MS..end_ns).contains(&request.now_ns);
        let waits_ns = if is_stalled { end_ns - request.now_ns } else { 0 };
        vec![(waits_ns + service_ms * MS, Coming::Bytes(OK.to_vec()))]
    })
}

/// State shared by all threads of a simulated run.
pub(crate) struct World {
    pub(crate) now_ns: Cell<u64>,
    server: RefCell<Server>,
}

impl World {
    pub(crate) fn of(server: Server) -> Rc<Self> {
        Rc::new(Self { now_ns: Cell::new(0), server: RefCell::new(server) })
    }
}

/// Events on their way to the sockets of an engine thread.
#[derive(Default)]
pub(crate) struct Wire {
    thread: usize,
    coming: BTreeMap<(u64, u64), (Socket, Coming)>,
    put: u64,
    /// Time of each socket's last event on its way.
    last_ns: BTreeMap<Socket, u64>,
    /// Replacements of each slot's socket.
    replaced: BTreeMap<u32, u32>,
    wakes_ns: u64,
}

impl Wire {
    pub(crate) fn of(thread: usize) -> Self {
        Self { thread, ..Self::default() }
    }

    /// Current socket of a slot.
    pub(crate) fn socket(&self, slot: u32) -> Socket {
        (self.thread, slot, self.replaced.get(&slot).copied().unwrap_or(0))
    }

    /// Time of the thread's next turn.
    pub(crate) fn next_ns(&self) -> u64 {
        self.coming.keys().next().map_or(u64::MAX, |&(at_ns, _)| at_ns).min(self.wakes_ns)
    }

    /// Ends the thread.
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

/// Reactor of a simulated engine thread.
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
        let kind = match coming {
            Coming::Bytes(bytes) => {
                self.bytes = bytes;
                ArrivalKind::Bytes
            }
            Coming::Closed => ArrivalKind::Closed,
            Coming::Failed(number) => ArrivalKind::Failed(number),
        };
        Some(Arrival { slot, kind, buffer: 0, length: 0 })
    }

    fn bytes(&self, _arrival: &Arrival) -> &[u8] {
        &self.bytes
    }

    fn give_back(&mut self, _arrival: Arrival) {}
}
