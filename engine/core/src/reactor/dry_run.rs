//! Reactor of a dry run, without a server: every request is answered at once with OK.
//!
//! It shows the cost of the generator alone, like sysbench's `--mysql-dry-run`. Requests are
//! answered by the next wait, so the worker's loop goes through the same rounds as with a network.

use super::{Arrival, ArrivalKind, OpenReactor, Reactor};
use std::io;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::Duration;

/// OK as packet number 1, autocommit.
pub(super) const OK: &[u8] = b"\x07\0\0\x01\0\0\0\x02\0\0\0";

/// Reactor of a dry run.
pub struct DryRun {
    max_wait: Duration,
    requested: Vec<u32>,
    answered: Vec<u32>,
}

impl OpenReactor for DryRun {
    fn open(_sockets: Vec<OwnedFd>, max_wait: Duration) -> io::Result<Self> {
        Ok(Self { max_wait, requested: Vec::new(), answered: Vec::new() })
    }
}

impl Reactor for DryRun {
    const NAME: &'static str = "dry_run";

    fn send(&mut self, slot: u32, _bytes: &[u8]) -> io::Result<()> {
        self.requested.push(slot);
        Ok(())
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        if self.requested.is_empty() {
            sleep(at_most.unwrap_or(self.max_wait).min(self.max_wait));
        }
        std::mem::swap(&mut self.requested, &mut self.answered);
        Ok(())
    }

    fn replace(&mut self, _slot: u32, _socket: OwnedFd) -> io::Result<()> {
        Err(io::Error::other("a dry run has no connections"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        let slot = self.answered.pop()?;
        Some(Arrival { slot, kind: ArrivalKind::Bytes, buffer: 0, length: 0 })
    }

    fn bytes(&self, _arrival: &Arrival) -> &[u8] {
        OK
    }

    fn give_back(&mut self, _arrival: Arrival) {}
}
