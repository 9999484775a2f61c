//! Simulated network: a reactor whose arrivals are delayed by a round trip.
//!
//! Requests leave at once and replies are delivered later. For a connection with a single request
//! in flight this equals half of the delay in each direction. Bytes are held, not slowed down: any
//! number of replies may be on their way.

use super::{Arrival, ArrivalKind, Reactor};
use crate::time::clock::Clock;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Delayed arrival and its bytes.
struct Held {
    due_ns: u64,
    slot: u32,
    kind: ArrivalKind,
    bytes: Vec<u8>,
}

/// Reactor `R` behind a network.
pub struct Delayed<R> {
    inner: R,
    delay_ns: u64,
    clock: Clock,
    /// Time of the last clock reading.
    now_ns: u64,
    /// In order of arrival, and so of due times.
    held: VecDeque<Held>,
    /// Bytes of the last delivered arrival.
    delivered: Vec<u8>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl<R: Reactor> Delayed<R> {
    /// Delays arrivals at `inner` by `delay`.
    ///
    /// # Panics
    /// For a delay above 584 years.
    #[must_use]
    pub fn new(inner: R, delay: Duration) -> Self {
        let delay_ns = u64::try_from(delay.as_nanos()).expect("nanoseconds last 584 years");
        let (held, delivered, spare) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { inner, delay_ns, clock: Clock::start(), now_ns: 0, held, delivered, spare }
    }

    fn read_the_clock(&mut self) {
        self.now_ns = self.inner.now_ns(&self.clock);
    }

    /// Takes the arrivals of the inner reactor.
    fn hold_arrivals(&mut self) {
        let mut due_ns = None;
        while let Some(arrival) = self.inner.next_arrival() {
            let due_ns = *due_ns.get_or_insert_with(|| {
                self.now_ns = self.inner.now_ns(&self.clock);
                self.now_ns + self.delay_ns
            });
            let mut bytes = self.spare.pop().unwrap_or_default();
            if arrival.kind == ArrivalKind::Bytes {
                bytes.extend_from_slice(self.inner.bytes(&arrival));
            }
            self.held.push_back(Held { due_ns, slot: arrival.slot, kind: arrival.kind, bytes });
            self.inner.give_back(arrival);
        }
    }
}

impl<R: Reactor> Reactor for Delayed<R> {
    const NAME: &'static str = R::NAME;

    fn now_ns(&self, clock: &Clock) -> u64 {
        self.inner.now_ns(clock)
    }

    fn send(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()> {
        self.inner.send(slot, bytes)
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.read_the_clock();
        let due = self.held.front().map(|first| first.due_ns.saturating_sub(self.now_ns));
        let limits = [at_most, due.map(Duration::from_nanos)];
        self.inner.wait(limits.into_iter().flatten().min())
    }

    fn replace(&mut self, slot: u32, socket: OwnedFd) -> io::Result<()> {
        self.inner.replace(slot, socket)?;
        self.held.retain(|one| one.slot != slot);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        self.hold_arrivals();
        let due_ns = self.held.front()?.due_ns;
        if due_ns > self.now_ns {
            self.read_the_clock();
        }
        let first = if due_ns <= self.now_ns { self.held.pop_front()? } else { return None };
        self.delivered = first.bytes;
        let length = u32::try_from(self.delivered.len()).expect("a receive is far below 4 GiB");
        Some(Arrival { slot: first.slot, kind: first.kind, buffer: 0, length })
    }

    fn bytes(&self, _arrival: &Arrival) -> &[u8] {
        &self.delivered
    }

    fn give_back(&mut self, _arrival: Arrival) {
        let mut bytes = std::mem::take(&mut self.delivered);
        bytes.clear();
        self.spare.push(bytes);
    }
}
