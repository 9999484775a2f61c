//! The loop's side of a planted slowdown: pausing together with the other threads of the run.
//!
//! Connections whose next event may not begin yet are held back, first come, first served; they go on
//! when the pause is over. With a rate or think time, events keep falling due and wait in the backlog.

use super::Worker;
use crate::error::Failure;
use crate::reactor::Reactor;
use crate::time::pauses::{PauseBarrier, Pauses};
use std::collections::VecDeque;

/// How often a paused thread checks whether the other threads have nothing in flight either.
const POLL_NS: u64 = 1_000_000;

/// One thread's state in the pauses of a run.
pub struct Pause<'a> {
    times: Pauses,
    barrier: Option<&'a PauseBarrier>,
    /// The pause that comes next or is on, from 1.
    number: u64,
    has_arrived: bool,
    /// How often it has arrived; at none that the end of the run cut short.
    arrivals: u64,
    resume_ns: Option<u64>,
    /// When the last one ended.
    ended_ns: u64,
    held: VecDeque<usize>,
}

impl<'a> Pause<'a> {
    /// Pauses at these times, together with the threads that share `barrier`; there is room for as many
    /// held `connections`.
    #[must_use]
    pub fn new(times: Pauses, barrier: &'a PauseBarrier, connections: usize) -> Self {
        let held = VecDeque::with_capacity(connections);
        Self { times, barrier: Some(barrier), held, ..Self::never() }
    }

    /// A load without pauses.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            times: Pauses::never(),
            barrier: None,
            number: 1,
            has_arrived: false,
            arrivals: 0,
            resume_ns: None,
            ended_ns: 0,
            held: VecDeque::new(),
        }
    }

    /// Whether no event may begin at `now_ns`.
    #[inline]
    pub(super) const fn is_on(&self, now_ns: u64) -> bool {
        now_ns >= self.times.begin_ns
    }

    /// Whether an event that was due at `due_ns` may have had to wait for the end of a pause.
    #[inline]
    pub(super) const fn delayed(&self, due_ns: u64) -> bool {
        due_ns < self.ended_ns
    }

    pub(super) fn hold(&mut self, slot: usize) {
        self.held.push_back(slot);
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> impl Iterator<Item = &usize> {
        self.held.iter()
    }

    /// When to check again if no reply comes; `u64::MAX` for never.
    pub(super) fn wakes_ns(&self, now_ns: u64) -> u64 {
        match (self.has_arrived, self.resume_ns) {
            // A thread with nothing in flight is to arrive at once.
            (false, _) if !self.is_on(now_ns) => self.times.begin_ns,
            (false, _) => u64::MAX,
            (true, None) => now_ns.saturating_add(POLL_NS),
            (true, Some(resume_ns)) => resume_ns,
        }
    }

    /// Whether all threads have paused for as long as they should.
    fn is_over(&mut self, now_ns: u64, is_idle: bool) -> bool {
        let Some(barrier) = self.barrier else { return true };
        if !self.has_arrived {
            if !is_idle {
                return false;
            }
            self.has_arrived = true;
            self.arrivals += 1;
            barrier.arrive(self.number, now_ns, &self.times);
        }
        self.resume_ns = barrier.resume_ns(self.number);
        self.resume_ns.is_some_and(|resume_ns| now_ns >= resume_ns)
    }

    /// The thread ends at `now_ns`, with nothing in flight: other threads go on pausing without it.
    pub(super) fn leave(&mut self, now_ns: u64) {
        if self.is_on(now_ns) {
            let _ = self.is_over(now_ns, true);
        }
        if let Some(barrier) = self.barrier {
            barrier.leave(self.arrivals);
        }
    }

    /// Ends the pause; all threads compute the next one from the same moment.
    fn end(&mut self, now_ns: u64) {
        self.times.pass(self.resume_ns.unwrap_or(now_ns));
        (self.number, self.has_arrived, self.resume_ns) = (self.number + 1, false, None);
        self.ended_ns = now_ns;
    }
}

impl<R: Reactor> Worker<'_, R> {
    /// Waits, call by call, until the pause is over, then begins the events that were held back. First
    /// the events in flight complete, then all threads pause. The end of the run ends a pause.
    #[cold]
    pub(super) fn pass_pause(&mut self) -> Result<(), Failure> {
        let is_ending = self.is_over() || self.orders.control.is_spent();
        let is_idle = self.recorder.is_idle();
        if !is_ending && !self.pause.is_over(self.now_ns, is_idle) {
            return Ok(());
        }
        self.pause.end(self.now_ns);
        for _ in 0..self.pause.held.len() {
            if let Some(slot) = self.pause.held.pop_front() {
                self.begin_next(slot)?;
            }
        }
        Ok(())
    }
}
