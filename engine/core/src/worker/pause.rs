//! Standing still together with the other threads, where the run has a slowdown put in on purpose.
//!
//! Connections whose next event may not begin are held, in the order in which they came; they begin
//! when the standstill is over. A schedule goes on: what falls due meanwhile waits in its backlog.

use super::Worker;
use crate::error::Failure;
use crate::reactor::Reactor;
use crate::time::pauses::{Meeting, Standstills};
use std::collections::VecDeque;

/// How soon a thread looks again whether the others have come home.
const LOOK_NS: u64 = 1_000_000;

/// One thread's part in the standstills of a run.
pub struct Standing<'a> {
    times: Standstills,
    meeting: Option<&'a Meeting>,
    /// The standstill that comes next or is on, from 1.
    number: u64,
    has_arrived: bool,
    resume_ns: Option<u64>,
    /// When the last one ended.
    reopened_ns: u64,
    held: VecDeque<usize>,
}

impl<'a> Standing<'a> {
    /// At these times, with the threads that come to the meeting.
    #[must_use]
    pub fn new(times: Standstills, meeting: &'a Meeting) -> Self {
        Self { times, meeting: Some(meeting), ..Self::never() }
    }

    /// A load that never stands still.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            times: Standstills::never(),
            meeting: None,
            number: 1,
            has_arrived: false,
            resume_ns: None,
            reopened_ns: 0,
            held: VecDeque::new(),
        }
    }

    pub(super) fn make_room(&mut self, connections: usize) {
        if self.meeting.is_some() {
            self.held.reserve(connections);
        }
    }

    /// Whether no event may begin at `now_ns`.
    #[inline]
    pub(super) const fn is_shut(&self, now_ns: u64) -> bool {
        now_ns >= self.times.shut_ns
    }

    /// Whether an event that was due at `due_ns` may have had to wait for a standstill.
    #[inline]
    pub(super) const fn delayed(&self, due_ns: u64) -> bool {
        due_ns < self.reopened_ns
    }

    pub(super) fn hold(&mut self, slot: usize) {
        self.held.push_back(slot);
    }

    /// When it is to be looked again, if no reply comes; `u64::MAX` for never.
    pub(super) fn wakes_ns(&self, now_ns: u64) -> u64 {
        match (self.has_arrived, self.resume_ns) {
            (false, _) => u64::MAX,
            (true, None) => now_ns.saturating_add(LOOK_NS),
            (true, Some(resume_ns)) => resume_ns,
        }
    }

    /// Whether the load has stood still together for its time.
    fn is_past(&mut self, now_ns: u64, is_idle: bool) -> bool {
        let Some(meeting) = self.meeting else { return true };
        if !self.has_arrived {
            if !is_idle {
                return false;
            }
            self.has_arrived = true;
            meeting.arrive(self.number, now_ns, &self.times);
        }
        self.resume_ns = meeting.resume_ns(self.number);
        self.resume_ns.is_some_and(|resume_ns| now_ns >= resume_ns)
    }

    /// All threads compute the next one from the same moment.
    fn reopen(&mut self, now_ns: u64) {
        self.times.pass(self.resume_ns.unwrap_or(now_ns));
        (self.number, self.has_arrived, self.resume_ns) = (self.number + 1, false, None);
        self.reopened_ns = now_ns;
    }
}

impl<R: Reactor> Worker<'_, R> {
    /// Nothing may begin now: those in flight come home, then all threads stand still, then all go on.
    /// When the run is over nobody waits any more.
    #[cold]
    pub(super) fn stand_still(&mut self) -> Result<(), Failure> {
        let is_ending = self.is_over() || self.orders.control.is_spent();
        let is_idle = self.recorder.is_idle();
        if !is_ending && !self.standing.is_past(self.now_ns, is_idle) {
            return Ok(());
        }
        self.standing.reopen(self.now_ns);
        for _ in 0..self.standing.held.len() {
            if let Some(slot) = self.standing.held.pop_front() {
                self.begin_next(slot)?;
            }
        }
        Ok(())
    }
}
