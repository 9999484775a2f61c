//! Start times of events: closed loop, rate (open loop), or think time.
//!
//! In a closed loop a connection's next event is due when its last event has ended; this module is
//! not consulted. With a rate, events fall due independently of replies and wait in a queue for a
//! free connection. With think time, each connection has its own next start.
//!
//! **All engine threads share one queue** ([`SharedQueue`]): a thread with a free connection takes
//! the event with the longest wait. With a queue for each thread, events would wait at one thread
//! while connections of another are free, and the latency would depend on the client's cores. The
//! queue is a single number, the count of events begun. Each thread computes the due times itself,
//! from the same arrival process. The first thread to note an arrival counts it, as any thread may
//! wait or end early.
//!
//! **The backlog at the end of the warm-up is dropped**, and for events in flight at that moment
//! the time they waited in it no longer counts. Both come from the cold server; carried into the
//! window they would be reported as latency of the warm server until it catches up. The last
//! interval of the warm-up records the number dropped. A server that cannot keep up builds up a new
//! backlog at once.

use super::Worker;
use super::scripted::Drawn;
use crate::error::Failure;
use crate::random::Random;
use crate::reactor::Reactor;
use crate::time::due_times::DueTimes;
use crate::time::schedule::Timetable;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum of due events noted in a call: at a rate beyond this thread's capacity, more fall due
/// while it notes them, and it would never do anything else.
const NOTED_MAX: u32 = 1 << 16;
/// First of the run's random streams used for think times.
const THINKING: u64 = 1 << 41;

/// A due event with the connection chosen for it.
pub(super) struct Start {
    slot: usize,
    due_ns: u64,
    /// True if the connection was free at that time.
    was_free: bool,
}

/// The queue of events that fell due and wait for a connection of any thread.
#[derive(Debug, Default)]
pub struct SharedQueue {
    /// Events begun or dropped, also the number of the next event.
    begun: AtomicU64,
    /// Arrivals counted; `u64::MAX` after the queue is closed.
    counted: AtomicU64,
}

impl SharedQueue {
    /// Takes the event with the longest wait among the first `fallen_due` of the run; returns its
    /// number.
    #[inline]
    fn take(&self, fallen_due: u64) -> Option<u64> {
        let next = |begun: u64| (begun < fallen_due).then_some(begun + 1);
        self.begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()
    }

    /// Drops the waiting events among the first `fallen_due`. Every thread calls it with the same
    /// number.
    fn drop_first(&self, fallen_due: u64) {
        self.begun.fetch_max(fallen_due, Ordering::Relaxed);
    }

    fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// True for the first thread to note arrival `number` (from 0), which then records it. All
    /// threads note the same arrivals; every later call with this number returns false, and so does
    /// every call after `close`.
    #[inline]
    fn counts(&self, number: u64) -> bool {
        self.counted.load(Ordering::Relaxed) <= number
            && self.counted.fetch_max(number + 1, Ordering::Relaxed) <= number
    }

    /// Stops counting: no event begins any more, so later due times are no arrivals.
    fn close(&self) {
        self.counted.store(u64::MAX, Ordering::Relaxed);
    }
}

/// The rule for the start of events, with its state.
pub struct Pacing<'a> {
    rule: Rule<'a>,
    warmup_ns: u64,
    deadline_ns: u64,
    is_warm: bool,
    is_over: bool,
}

enum Rule<'a> {
    Closed,
    Rate {
        queue: &'a SharedQueue,
        falls_due: DueTimes,
        /// Due time of the event this thread would begin next.
        begins: DueTimes,
        /// Idle connections, each with the start of its idle time, ns.
        free: VecDeque<(usize, u64)>,
    },
    Thinking {
        least_ns: f64,
        width_ns: f64,
        draws: Vec<Random>,
        until: Until,
        due: Due,
    },
}

type Until = BinaryHeap<Reverse<(u64, usize)>>;
type Due = VecDeque<(usize, u64)>;

impl<'a> Pacing<'a> {
    /// A closed loop: each event follows the last.
    #[must_use]
    pub const fn closed() -> Self {
        Self { rule: Rule::Closed, warmup_ns: 0, deadline_ns: 0, is_warm: true, is_over: false }
    }

    /// A rate: events fall due at `times` and wait in the `queue` of all threads if no connection
    /// is free. `connections` is the number this thread has.
    #[must_use]
    pub fn rate(
        times: DueTimes,
        queue: &'a SharedQueue,
        connections: usize,
        timetable: Timetable,
    ) -> Self {
        let free = VecDeque::with_capacity(connections);
        let begins = times.clone();
        Self::open(Rule::Rate { queue, falls_due: times, begins, free }, timetable)
    }

    /// Think time: each connection pauses after each event for a time drawn evenly from a range,
    /// ms. `numbers` are the connections' places among all, slot by slot; each selects a random
    /// stream.
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

    fn open(rule: Rule<'a>, timetable: Timetable) -> Self {
        Self {
            rule,
            warmup_ns: timetable.warmup_ns(),
            deadline_ns: timetable.deadline_ns(),
            is_warm: timetable.warmup_ns() == 0,
            is_over: false,
        }
    }

    /// True for a closed loop.
    #[inline]
    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.rule, Rule::Closed)
    }

    /// Due time of the next event; `u64::MAX` for never.
    fn falls_due_ns(&self) -> u64 {
        let due_ns = match &self.rule {
            Rule::Closed => u64::MAX,
            Rule::Rate { falls_due, .. } => falls_due.due_ns(),
            Rule::Thinking { until, .. } => until.peek().map_or(u64::MAX, |first| first.0.0),
        };
        if self.is_over || due_ns >= self.deadline_ns { u64::MAX } else { due_ns }
    }

    /// Time of the next action if no reply comes: an event falls due, or the warm-up ends.
    pub(super) fn next_ns(&self) -> u64 {
        let due_ns = self.falls_due_ns();
        if self.is_warm { due_ns } else { due_ns.min(self.warmup_ns) }
    }

    /// True if a due event can begin at once; otherwise the thread need not wake up for it.
    fn has_free_connection(&self) -> bool {
        !matches!(&self.rule, Rule::Rate { free, .. } if free.is_empty())
    }

    /// True if this thread is to count the event due now.
    #[inline]
    fn counts_arrival(&self) -> bool {
        match &self.rule {
            Rule::Rate { queue, falls_due, .. } => queue.counts(falls_due.passed()),
            Rule::Closed | Rule::Thinking { .. } => true,
        }
    }

    fn fall_due(&mut self) {
        match &mut self.rule {
            Rule::Closed => {}
            Rule::Rate { falls_due, .. } => falls_due.advance(),
            Rule::Thinking { until, due, .. } => {
                due.extend(until.pop().map(|Reverse((due_ns, slot))| (slot, due_ns)));
            }
        }
    }

    fn drop_backlog(&mut self) {
        if let Rule::Rate { queue, falls_due, begins, .. } = &mut self.rule {
            queue.drop_first(falls_due.passed());
            begins.clone_from(falls_due);
        }
    }

    /// Takes the event to begin now, for the connection free for longest.
    #[inline]
    fn take(&mut self) -> Option<Start> {
        match &mut self.rule {
            Rule::Closed => None,
            Rule::Rate { queue, falls_due, begins, free } => {
                let first = free.front().copied();
                let taken = first.and_then(|_| queue.take(falls_due.passed()));
                // With no event taken, skip the events begun by others, so the distance stays
                // short.
                let next = taken.unwrap_or_else(|| queue.begun().min(falls_due.passed()));
                while begins.passed() < next {
                    begins.advance();
                }
                let ((slot, free_since_ns), _) = first.zip(taken)?;
                free.pop_front();
                let due_ns = begins.due_ns();
                begins.advance();
                Some(Start { slot, due_ns, was_free: free_since_ns <= due_ns })
            }
            Rule::Thinking { due, .. } => {
                let (slot, due_ns) = due.pop_front()?;
                Some(Start { slot, due_ns, was_free: true })
            }
        }
    }

    /// Marks the connection as free from `now_ns` on.
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

    /// Marks all connections as open and free.
    fn begin(&mut self, connections: usize) {
        match &mut self.rule {
            Rule::Closed => {}
            Rule::Rate { free, .. } => free.extend((0..connections).map(|slot| (slot, 0))),
            Rule::Thinking { until, .. } => {
                until.extend((0..connections).map(|slot| Reverse((0, slot))));
            }
        }
    }

    /// Slots with no event, waiting for the next due time.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> Vec<usize> {
        match &self.rule {
            Rule::Closed => Vec::new(),
            Rule::Rate { free, .. } => free.iter().map(|one| one.0).collect(),
            Rule::Thinking { until, due, .. } => {
                let until = until.iter().map(|Reverse((_, slot))| *slot);
                until.chain(due.iter().map(|one| one.0)).collect()
            }
        }
    }

    /// Ends the pacing, so no event begins any more; removes and returns a waiting connection, if
    /// any is left.
    fn dismiss(&mut self) -> Option<usize> {
        self.is_over = true;
        match &mut self.rule {
            Rule::Closed => None,
            Rule::Rate { queue, free, .. } => {
                queue.close();
                free.pop_front().map(|(slot, _)| slot)
            }
            Rule::Thinking { until, due, .. } => {
                let due = due.pop_front().map(|(slot, _)| slot);
                due.or_else(|| until.pop().map(|Reverse((_, slot))| slot))
            }
        }
    }
}

impl<R: Reactor> Worker<'_, R> {
    /// Begins the load: in a closed loop on all connections at once.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
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

    /// Longest wait if no reply comes; `None` leaves it to the reactor.
    #[inline]
    pub(super) fn time_to_wait(&self) -> Option<Duration> {
        if self.pacing.is_closed() && self.sleeping.is_empty() {
            return None;
        }
        let now_ns = self.reactor.now_ns(&self.orders.clock);
        let begins_ns = if self.pacing.has_free_connection() { self.next_ns } else { u64::MAX };
        let sleeps_ns = self.sleeping.peek().map_or(u64::MAX, |first| first.0.0);
        let next_ns = begins_ns.min(self.orders.deadline_ns).min(sleeps_ns);
        (now_ns < self.orders.deadline_ns && next_ns < u64::MAX)
            .then(|| Duration::from_nanos(next_ns.saturating_sub(now_ns)))
    }

    /// Notes all events due since the last reading of the clock, in their order, before anything
    /// later is recorded; at most [`NOTED_MAX`] a call.
    #[inline(never)]
    pub(super) fn fall_due(&mut self) {
        for _ in 0..NOTED_MAX {
            if self.next_ns > self.now_ns {
                return;
            }
            if !self.pacing.is_warm && self.next_ns == self.pacing.warmup_ns {
                self.leave_the_warmup();
            } else {
                if self.pacing.counts_arrival() {
                    self.recorder.fell_due(self.next_ns);
                } else {
                    self.recorder.advance(self.next_ns);
                }
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

    /// Ends a scheduled event: the connection takes a waiting event, or becomes free.
    pub(super) fn release(&mut self, slot: usize) -> Result<(), Failure> {
        self.connections[slot].set_idle();
        self.pacing.free(slot, self.now_ns);
        self.next_ns = self.pacing.next_ns();
        self.begin_due()
    }

    /// Begins due events on the free connections; when no event begins any more, these connections
    /// leave.
    pub(super) fn begin_due(&mut self) -> Result<(), Failure> {
        while !(self.pacing.is_over || self.is_over() || self.orders.control.is_spent()) {
            let Some(start) = self.pacing.take() else { return Ok(()) };
            if !self.orders.control.claim(self.recorder.phase()) {
                self.leave(start.slot)?;
                break;
            }
            self.recorder.taken_from_backlog();
            let drawn = self.draw_event(start.slot, start.due_ns)?;
            if start.was_free {
                self.recorder.lag(start.due_ns, self.connections[start.slot].sent_ns);
            }
            match drawn {
                Drawn::Request => self.send_first(start.slot)?,
                Drawn::Over => {
                    self.complete(start.slot);
                    self.connections[start.slot].set_idle();
                    self.pacing.free(start.slot, self.now_ns);
                    self.next_ns = self.pacing.next_ns();
                }
                Drawn::Waits | Drawn::Left => {}
            }
        }
        while let Some(slot) = self.pacing.dismiss() {
            self.leave(slot)?;
        }
        self.next_ns = u64::MAX;
        Ok(())
    }
}
