//! When events begin: closed loop, rate (open loop), or think time.
//!
//! In a closed loop a connection's next event is due when the one before it has ended, and nothing
//! here is asked. With a rate, events fall due by themselves and wait in a backlog for a free
//! connection; with think time, each connection has its own next start. The backlog is a number and
//! two copies of the arrival process: one at what falls due next, the other at what is begun next.
//!
//! **The backlog that the warm-up leaves is dropped**, and events in flight at that moment no
//! longer count the time they waited in it. Both are what a cold server left behind; carried into
//! the window they would be reported as latency of the warm one until it catches up. The last
//! interval of the warm-up says how much was dropped, and a server that cannot keep up builds up a
//! new backlog at once.

use super::Worker;
use crate::error::Failure;
use crate::random::Random;
use crate::reactor::Reactor;
use crate::time::due_times::{DueTimes, Part, Spacing};
use crate::time::schedule::Timetable;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// Streams of a run's seed from here on belong to think times.
const THINKING: u64 = 1 << 41;

/// An event that is due, and the connection that takes it.
pub(super) struct Start {
    slot: usize,
    due_ns: u64,
    /// Whether the connection was free at that time.
    was_free: bool,
}

/// What decides when events begin.
pub struct Pacing {
    rule: Rule,
    warmup_ns: u64,
    deadline_ns: u64,
    is_warm: bool,
    is_over: bool,
}

enum Rule {
    Closed,
    Rate { falls_due: DueTimes, begins: DueTimes, backlog: u64, free: VecDeque<(usize, u64)> },
    Thinking { least_ns: f64, width_ns: f64, draws: Vec<Random>, until: Until, due: Due },
}

type Until = BinaryHeap<Reverse<(u64, usize)>>;
type Due = VecDeque<(usize, u64)>;

impl Pacing {
    /// Each event follows the one before it.
    #[must_use]
    pub const fn closed() -> Self {
        Self { rule: Rule::Closed, warmup_ns: 0, deadline_ns: 0, is_warm: true, is_over: false }
    }

    /// Events fall due at a rate, and wait for a connection where none is free.
    #[must_use]
    pub fn rate(spacing: Spacing, part: Part, seed: u64, timetable: Timetable) -> Self {
        let process = DueTimes::new(spacing, part, seed);
        let free = VecDeque::with_capacity(part.own_connections);
        let begins = process.clone();
        Self::open(Rule::Rate { falls_due: process, begins, backlog: 0, free }, timetable)
    }

    /// Each connection pauses after each event for a time drawn evenly from a range, ms. `numbers` are
    /// the connections' places among all, slot by slot: each has draws of its own.
    pub fn thinking(
        [least_ms, most_ms]: [f64; 2],
        numbers: impl ExactSizeIterator<Item = u32>,
        seed: u64,
        timetable: Timetable,
    ) -> Self {
        let until = BinaryHeap::with_capacity(numbers.len());
        let due = VecDeque::with_capacity(numbers.len());
        let draws = numbers.map(|number| Random::for_stream(seed, THINKING + u64::from(number)));
        let (least_ns, width_ns) = (least_ms * 1e6, (most_ms - least_ms) * 1e6);
        let draws = draws.collect();
        Self::open(Rule::Thinking { least_ns, width_ns, draws, until, due }, timetable)
    }

    fn open(rule: Rule, timetable: Timetable) -> Self {
        let (warmup_ns, deadline_ns) = (timetable.warmup_ns(), timetable.deadline_ns());
        Self { rule, warmup_ns, deadline_ns, is_warm: warmup_ns == 0, is_over: false }
    }

    /// Whether each event follows the one before it.
    #[inline]
    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.rule, Rule::Closed)
    }

    /// When the next event falls due; `u64::MAX` for never.
    fn falls_due_ns(&self) -> u64 {
        let due_ns = match &self.rule {
            Rule::Closed => u64::MAX,
            Rule::Rate { falls_due, .. } => falls_due.due_ns(),
            Rule::Thinking { until, .. } => until.peek().map_or(u64::MAX, |first| first.0.0),
        };
        if self.is_over || due_ns >= self.deadline_ns { u64::MAX } else { due_ns }
    }

    /// When there is something to do next, if no reply comes.
    pub(super) fn next_ns(&self) -> u64 {
        let due_ns = self.falls_due_ns();
        if self.is_warm { due_ns } else { due_ns.min(self.warmup_ns) }
    }

    fn fall_due(&mut self) {
        match &mut self.rule {
            Rule::Closed => {}
            Rule::Rate { falls_due, backlog, .. } => {
                falls_due.advance();
                *backlog += 1;
            }
            Rule::Thinking { until, due, .. } => {
                due.extend(until.pop().map(|Reverse((due_ns, slot))| (slot, due_ns)));
            }
        }
    }

    fn drop_backlog(&mut self) {
        if let Rule::Rate { falls_due, begins, backlog, .. } = &mut self.rule {
            begins.clone_from(falls_due);
            *backlog = 0;
        }
    }

    /// The event to begin now, on the connection that has been free for longest.
    #[inline]
    fn take(&mut self) -> Option<Start> {
        match &mut self.rule {
            Rule::Closed => None,
            Rule::Rate { begins, backlog, free, .. } => {
                let (slot, free_since_ns) = *free.front().filter(|_| *backlog > 0)?;
                free.pop_front();
                let due_ns = begins.due_ns();
                begins.advance();
                *backlog -= 1;
                Some(Start { slot, due_ns, was_free: free_since_ns <= due_ns })
            }
            Rule::Thinking { due, .. } => {
                let (slot, due_ns) = due.pop_front()?;
                Some(Start { slot, due_ns, was_free: true })
            }
        }
    }

    /// The connection has nothing to do from `now_ns` on.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked: 0 or more"
    )]
    fn free(&mut self, slot: usize, now_ns: u64) {
        match &mut self.rule {
            Rule::Closed => {}
            Rule::Rate { free, .. } => free.push_back((slot, now_ns)),
            Rule::Thinking { least_ns, width_ns, draws, until, .. } => {
                let thought_ns = *least_ns + *width_ns * draws[slot].uniform_double();
                until.push(Reverse((now_ns.saturating_add(thought_ns as u64), slot)));
            }
        }
    }

    /// All connections are open and free.
    fn begin(&mut self, connections: usize) {
        match &mut self.rule {
            Rule::Closed => {}
            Rule::Rate { free, .. } => free.extend((0..connections).map(|slot| (slot, 0))),
            Rule::Thinking { until, .. } => {
                until.extend((0..connections).map(|slot| Reverse((0, slot))));
            }
        }
    }

    /// No event is begun any more: takes out a connection that waits for one, as long as there are any.
    fn dismiss(&mut self) -> Option<usize> {
        self.is_over = true;
        match &mut self.rule {
            Rule::Closed => None,
            Rule::Rate { free, .. } => free.pop_front().map(|(slot, _)| slot),
            Rule::Thinking { until, due, .. } => {
                let due = due.pop_front().map(|(slot, _)| slot);
                due.or_else(|| until.pop().map(|Reverse((_, slot))| slot))
            }
        }
    }
}

impl<R: Reactor> Worker<'_, R> {
    /// Begins the load: in a closed loop on all connections at once.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        self.active = self.connections.len();
        if !self.pacing.is_closed() {
            self.pacing.begin(self.active);
            self.next_ns = self.pacing.next_ns();
            return self.begin_due();
        }
        for slot in 0..self.connections.len() {
            self.read_the_clock();
            self.begin_next(slot)?;
        }
        Ok(())
    }

    /// How long to wait at most if no reply comes; None leaves that to the reactor.
    #[inline]
    pub(super) fn time_to_wait(&self) -> Option<Duration> {
        if self.pacing.is_closed() && !self.pause.is_on(self.now_ns) {
            return None;
        }
        let now_ns = self.reactor.now_ns(&self.orders.clock);
        let wakes_ns = self.pause.wakes_ns(now_ns);
        let next_ns = self.next_ns.min(self.orders.deadline_ns).min(wakes_ns);
        (now_ns < self.orders.deadline_ns && next_ns < u64::MAX)
            .then(|| Duration::from_nanos(next_ns.saturating_sub(now_ns)))
    }

    /// Notes all that has fallen due since the clock was read last, in its order, before anything that
    /// came later is recorded.
    #[inline(never)]
    pub(super) fn fall_due(&mut self) {
        while self.next_ns <= self.now_ns {
            if !self.pacing.is_warm && self.next_ns == self.pacing.warmup_ns {
                self.leave_the_warmup();
            } else {
                self.recorder.fell_due(self.next_ns);
                self.pacing.fall_due();
            }
            self.next_ns = self.pacing.next_ns();
        }
    }

    fn leave_the_warmup(&mut self) {
        self.recorder.advance(self.pacing.warmup_ns);
        self.pacing.is_warm = true;
        if matches!(self.pacing.rule, Rule::Rate { .. }) {
            self.pacing.drop_backlog();
            self.recorder.drop_backlog();
            for connection in &mut self.connections {
                connection.due_ns = connection.due_ns.max(connection.sent_ns);
            }
        }
    }

    /// The connection has ended an event by schedule: it takes one that waits, or waits for one.
    pub(super) fn release(&mut self, slot: usize) -> Result<(), Failure> {
        self.connections[slot].set_idle();
        self.pacing.free(slot, self.now_ns);
        self.next_ns = self.pacing.next_ns();
        self.begin_due()
    }

    /// Begins what is due on the connections that are free; those leave when nothing is begun any more.
    pub(super) fn begin_due(&mut self) -> Result<(), Failure> {
        while !(self.pacing.is_over || self.is_over() || self.orders.control.is_spent()) {
            if self.pause.is_on(self.now_ns) {
                return Ok(());
            }
            let Some(start) = self.pacing.take() else { return Ok(()) };
            if !self.orders.control.claim(self.recorder.phase()) {
                self.leave(start.slot)?;
                break;
            }
            self.recorder.taken_from_backlog();
            let has_request = self.draw_event(start.slot, start.due_ns);
            if start.was_free && !self.pause.delayed(start.due_ns) {
                self.recorder.lag(start.due_ns, self.connections[start.slot].sent_ns);
            }
            if has_request {
                self.send_first(start.slot)?;
            } else {
                self.complete(start.slot);
                self.connections[start.slot].set_idle();
                self.pacing.free(start.slot, self.now_ns);
                self.next_ns = self.pacing.next_ns();
            }
        }
        while let Some(slot) = self.pacing.dismiss() {
            self.leave(slot)?;
        }
        self.next_ns = u64::MAX;
        Ok(())
    }
}
