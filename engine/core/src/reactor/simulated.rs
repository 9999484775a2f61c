//! A simulated server under a virtual clock: what a load gives can be said to the nanosecond, however
//! busy the machine is.

use super::{Arrival, ArrivalKind, Reactor, dry_run::OK};
use crate::time::clock::Clock;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

const MS: u64 = 1_000_000;

/// Answers each statement after `SERVICE_MS`, and none in the `STALL_MS` from `STALL_AFTER_MS` on. The
/// clock stands still but for waiting.
pub(crate) struct Simulated<
    const SERVICE_MS: u64,
    const STALL_AFTER_MS: u64 = 0,
    const STALL_MS: u64 = 0,
> {
    now_ns: u64,
    max_wait: Duration,
    asked: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<const SERVICE_MS: u64, const STALL_AFTER_MS: u64, const STALL_MS: u64> Reactor
    for Simulated<SERVICE_MS, STALL_AFTER_MS, STALL_MS>
{
    const NAME: &'static str = "simulated";

    fn open(_sockets: Vec<OwnedFd>, max_wait: Duration) -> io::Result<Self> {
        Ok(Self { now_ns: 0, max_wait, asked: BinaryHeap::new() })
    }

    fn now_ns(&self, _clock: &Clock) -> u64 {
        self.now_ns
    }

    fn send(&mut self, slot: u32, _bytes: &[u8]) -> io::Result<()> {
        let stall_end_ns = (STALL_AFTER_MS + STALL_MS) * MS;
        let is_stalled = (STALL_AFTER_MS * MS..stall_end_ns).contains(&self.now_ns);
        let begun_ns = if is_stalled { stall_end_ns } else { self.now_ns };
        self.asked.push(Reverse((begun_ns + SERVICE_MS * MS, slot)));
        Ok(())
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        let wait = at_most.unwrap_or(self.max_wait).min(self.max_wait);
        let until_ns = self.now_ns + u64::try_from(wait.as_nanos()).unwrap();
        let answer_ns = self.asked.peek().map_or(u64::MAX, |&Reverse((at_ns, _))| at_ns);
        self.now_ns = until_ns.min(answer_ns).max(self.now_ns);
        Ok(())
    }

    fn replace(&mut self, _slot: u32, _socket: OwnedFd) -> io::Result<()> {
        unreachable!("no connection is lost")
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        let &Reverse((_, slot)) =
            self.asked.peek().filter(|&&Reverse((at_ns, _))| at_ns <= self.now_ns)?;
        self.asked.pop();
        Some(Arrival { slot, what: ArrivalKind::Bytes, buffer: 0, length: 0 })
    }

    fn bytes(&self, _arrival: &Arrival) -> &[u8] {
        OK
    }

    fn give_back(&mut self, _arrival: Arrival) {}
}
