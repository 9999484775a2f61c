//! The loop: an engine thread with many connections, each with one event in flight.
//!
//! The loop waits until a reply arrives, scans it, records it, and sends the next statement, or
//! ends the event and begins the next. It does not allocate, log or lock once the buffers have
//! grown, and reads the clock once a reply. `pacing` decides when events begin (closed loop, rate,
//! think time), `reconnect` handles refused statements and lost connections.

pub mod connection;
mod pacing;
mod reconnect;
mod scripted;

use crate::error::Failure;
use crate::reactor::{Arrival, ArrivalKind, Reactor};
use crate::record::recorder::{Answer, Recorder, Remainder};
use crate::record::run_record::Share;
use crate::script::Reaction;
use crate::session::link::LinkError;
use crate::spec::IgnoredErrors;
use crate::time::clock::Clock;
use crate::time::schedule::Phase;
use crate::workload::Workload;
use crate::workload::event::Step;
use connection::Connection;
use dbdyno_wire::mysql::compressed::FrameError;
use dbdyno_wire::mysql::scanner::{Outcome, Summary};
pub use pacing::{Pacing, SharedQueue};
pub use reconnect::{Attempt, Reconnect, ReconnectThreads, Sessions};
use scripted::Drawn;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Delay until a worker notices a stop or the end of a slice when no reply comes.
pub const MAX_WAIT: Duration = Duration::from_millis(50);
/// Time for events in flight to complete after a stop.
pub const STOP_GRACE_NS: u64 = 500_000_000;

/// The parts of a worker.
pub struct Parts<'a, R: Reactor> {
    /// The sockets of `connections` in their order, followed by the socket that wakes the worker,
    /// if it reconnects.
    pub reactor: R,
    /// The connections, logged in.
    pub connections: Vec<Connection>,
    /// The recorder of its measurements.
    pub recorder: Recorder,
    /// The workload and its time limits.
    pub orders: Orders<'a>,
    /// The rule for the start of events.
    pub pacing: Pacing<'a>,
    /// The rule for opening sessions again.
    pub reconnect: Reconnect,
}

/// An engine thread.
pub struct Worker<'a, R: Reactor> {
    reactor: R,
    connections: Vec<Connection>,
    recorder: Recorder,
    orders: Orders<'a>,
    pacing: Pacing<'a>,
    reconnect: Reconnect,
    /// Sleeping scripts: the end of the sleep and the connection.
    sleeping: BinaryHeap<Reverse<(u64, usize)>>,
    /// Connections that run an event or may still begin another.
    active: usize,
    now_ns: u64,
    /// Time of the schedule's next action; `u64::MAX` in a closed loop.
    next_ns: u64,
    give_up_ns: u64,
}

impl<'a, R: Reactor> Worker<'a, R> {
    /// A worker of these parts, before its first event.
    #[must_use]
    pub fn new(parts: Parts<'a, R>) -> Self {
        let Parts { reactor, connections, recorder, orders, .. } = parts;
        let Parts { pacing, reconnect, .. } = parts;
        let give_up_ns = orders.give_up_ns;
        Self {
            reactor,
            connections,
            recorder,
            orders,
            pacing,
            reconnect,
            sleeping: BinaryHeap::new(),
            active: 0,
            now_ns: 0,
            next_ns: u64::MAX,
            give_up_ns,
        }
    }

    /// Loads the server until the run is over.
    pub fn drive(mut self) -> WorkerEnd {
        let failure = self.load().err();
        self.end(failure)
    }

    fn load(&mut self) -> Result<(), Failure> {
        self.begin()?;
        while self.goes_on() {
            self.wait()?;
            self.turn()?;
        }
        Ok(())
    }

    /// True while a connection has work left, and time for it.
    pub(crate) fn goes_on(&self) -> bool {
        self.active > 0 && self.now_ns < self.give_up_ns
    }

    /// Sends the queued requests and waits until a reply arrives or an event is due.
    pub(crate) fn wait(&mut self) -> Result<(), Failure> {
        let at_most = self.time_to_wait();
        self.reactor.wait(at_most).map_err(|error| broken(&error))
    }

    /// Handles all arrived replies and all due events.
    pub(crate) fn turn(&mut self) -> Result<(), Failure> {
        let before_ns = self.now_ns;
        while let Some(arrival) = self.reactor.next_arrival() {
            let slot = arrival.slot as usize;
            let outcome = self.scan(slot, &arrival);
            self.reactor.give_back(arrival);
            match outcome {
                Ok(None) => {}
                Ok(Some(Outcome::Done(summary))) => self.answered(slot, &summary)?,
                Ok(Some(Outcome::Failed(error))) => self.refused(slot, &error)?,
                Err(failure) => self.lost(slot, failure)?,
            }
        }
        if self.now_ns == before_ns || !self.pacing.is_closed() {
            self.read_the_clock();
            self.recorder.advance(self.now_ns);
        }
        if self.orders.control.is_over() {
            self.give_up_ns = self.give_up_ns.min(self.now_ns + STOP_GRACE_NS);
        }
        if self.reconnect.is_pending() {
            self.finish_reconnects()?;
        }
        if !self.sleeping.is_empty() {
            self.wake_up()?;
        }
        if !self.pacing.is_closed() {
            self.begin_due()?;
        }
        Ok(())
    }

    /// Logs out, and returns the measurements.
    pub(crate) fn end(mut self, failure: Option<Failure>) -> WorkerEnd {
        if failure.is_some() {
            self.orders.control.failed.store(true, Ordering::Relaxed);
        }
        self.log_out();
        self.read_the_clock();
        let remainder = self.recorder.finish(self.now_ns);
        let shares = self.connections.iter().map(|connection| connection.share).collect();
        WorkerEnd { failure, remainder, shares }
    }

    /// Scans arrived bytes; returns the statement's outcome once its reply is complete. Bytes that
    /// arrive at rest, such as a server's parting message to an idle session, concern no event; nor
    /// does a byte of the waker.
    fn scan(&mut self, slot: usize, arrival: &Arrival) -> Result<Option<Outcome>, Failure> {
        let Some(connection) = self.connections.get_mut(slot) else { return Ok(None) };
        if !connection.awaits_reply() {
            let is_well = arrival.kind == ArrivalKind::Bytes
                && connection.feed_at_rest(self.reactor.bytes(arrival)).is_ok();
            if !is_well {
                connection.lose();
            }
            return Ok(None);
        }
        let workload = self.orders.workload;
        let lost = |why: &str| Err(connection.loss(workload, why));
        match arrival.kind {
            ArrivalKind::Bytes => {
                connection.feed(self.reactor.bytes(arrival)).map_err(|error| match error {
                    // Numbered on behind the last reply: the server's parting message, read after
                    // the next request was sent.
                    LinkError::Frames(FrameError::Sequence { .. }) => {
                        connection.loss(workload, &error.to_string())
                    }
                    _ => {
                        let why = format!("the server's reply breaks the protocol: {error}");
                        Failure::new("run", why)
                    }
                })
            }
            ArrivalKind::Closed => lost("the server closed it"),
            ArrivalKind::Failed(number) => lost(&io::Error::from_raw_os_error(number).to_string()),
        }
    }

    /// Reads the clock, and notes all due events before anything else is recorded.
    #[inline]
    fn read_the_clock(&mut self) {
        self.now_ns = self.reactor.now_ns(&self.orders.clock);
        if self.now_ns >= self.next_ns {
            self.fall_due();
        }
    }

    /// Handles an answered statement: sends the next, or ends the event.
    #[inline]
    fn answered(&mut self, slot: usize, summary: &Summary) -> Result<(), Failure> {
        self.read_the_clock();
        let connection = &mut self.connections[slot];
        let answer = Answer {
            columns: summary.columns,
            affected_rows: summary.affected_rows,
            bytes: summary.bytes,
        };
        let Step { kind, reply, .. } = connection.statement();
        if reply.is_counted() {
            self.recorder.statement(kind, connection.asked_ns, self.now_ns, answer);
        }
        if connection.advance() {
            connection.asked_ns = self.now_ns;
            return self.send(slot);
        }
        if let Some(error) = connection.rolled_back() {
            return self.rolled_back(slot, &error);
        }
        if connection.is_scripted() {
            let statement = connection.prepared_id();
            return self.follow(slot, &Reaction::Answered(summary, statement));
        }
        if connection.is_leaving() {
            self.retire(slot);
            return Ok(());
        }
        if self.reconnect.is_planned() && self.reconnect_by_plan(slot)? {
            return Ok(());
        }
        self.complete(slot);
        self.go_on(slot)
    }

    #[inline]
    fn complete(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        if !connection.counts {
            self.recorder.abandon();
            return;
        }
        let (due_ns, sent_ns) = (connection.due_ns, connection.sent_ns);
        self.recorder.event(due_ns, sent_ns, self.now_ns, connection.event_kind());
        if self.recorder.phase() != Phase::Warmup {
            connection.completed(self.now_ns.saturating_sub(connection.due_ns));
        }
    }

    /// Goes on after an event of the connection has ended.
    #[inline]
    fn go_on(&mut self, slot: usize) -> Result<(), Failure> {
        if self.pacing.is_closed() { self.begin_next(slot) } else { self.release(slot) }
    }

    /// Begins the connection's next event in a closed loop, due at the end of the last; an event
    /// without a request completes at once. After the end of the run the connection leaves.
    #[inline]
    fn begin_next(&mut self, slot: usize) -> Result<(), Failure> {
        let mut has_sent_nothing = false;
        loop {
            if self.is_over() || !self.orders.control.claim(self.recorder.phase()) {
                return self.leave(slot);
            }
            match self.draw_event(slot, self.now_ns)? {
                Drawn::Request => {
                    self.send_first(slot)?;
                    // Many silent events took a while: this request does not wait for more of them.
                    return if has_sent_nothing { self.flush() } else { Ok(()) };
                }
                Drawn::Over => {}
                Drawn::Waits | Drawn::Left => return Ok(()),
            }
            has_sent_nothing = true;
            self.complete(slot);
        }
    }

    /// True if no event begins any more.
    #[inline]
    fn is_over(&self) -> bool {
        self.now_ns >= self.orders.deadline_ns || self.orders.control.is_over()
    }

    /// Draws an event that begins now; an event with no request is over at once.
    #[inline]
    fn draw_event(&mut self, slot: usize, due_ns: u64) -> Result<Drawn, Failure> {
        if self.connections[slot].is_scripted() {
            return self.draw_script(slot, due_ns);
        }
        let has_request = self.draw(slot, due_ns);
        let connection = &mut self.connections[slot];
        connection.sent_ns = connection.asked_ns;
        self.recorder.begun(connection.sent_ns);
        Ok(if has_request { Drawn::Request } else { Drawn::Over })
    }

    #[inline]
    fn draw(&mut self, slot: usize, due_ns: u64) -> bool {
        let connection = &mut self.connections[slot];
        let has_request = connection.draw(self.orders.workload, due_ns);
        connection.asked_ns = self.reactor.now_ns(&self.orders.clock);
        if !has_request {
            self.read_the_clock();
            self.recorder.advance(self.now_ns);
        }
        has_request
    }

    /// Sends the first statement of an event, unless the connection was closed while it was idle.
    #[inline]
    fn send_first(&mut self, slot: usize) -> Result<(), Failure> {
        let connection = &self.connections[slot];
        if connection.is_gone() {
            let failure = connection.loss(self.orders.workload, "it was closed at rest");
            return self.lost(slot, failure);
        }
        self.send(slot)
    }

    #[inline]
    fn send(&mut self, slot: usize) -> Result<(), Failure> {
        let packet = self.connections[slot].request();
        self.recorder.sent(packet.len());
        self.reactor.send(slot_number(slot), packet).map_err(|error| broken(&error))
    }

    #[cold]
    fn flush(&mut self) -> Result<(), Failure> {
        self.reactor.flush().map_err(|error| broken(&error))
    }
}

fn slot_number(slot: usize) -> u32 {
    u32::try_from(slot).expect("connections are counted in 32 bits")
}

fn broken(error: &io::Error) -> Failure {
    Failure::new("run", format!("the system's network interface failed: {error}"))
}

/// State shared by all workers of a run.
pub struct Control<'a> {
    /// Set when the user stops the run.
    pub stop: &'a AtomicBool,
    /// Set when a worker fails: all end.
    pub failed: AtomicBool,
    /// Events still to be begun after the warm-up; `None` for no limit. Events in flight at the end
    /// of the warm-up are not counted.
    pub budget: Option<AtomicU64>,
}

impl Control<'_> {
    /// True if no event is to begin any more, whatever the time.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// True if the budget of events is used up.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.load(Ordering::Relaxed) == 0)
    }

    /// Takes an event out of the budget; false when it is spent.
    #[must_use]
    pub fn claim(&self, phase: Phase) -> bool {
        let Some(budget) = self.budget.as_ref().filter(|_| phase != Phase::Warmup) else {
            return true;
        };
        budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
    }
}

/// The run's orders to a worker.
#[derive(Clone, Copy)]
pub struct Orders<'a> {
    /// The workload to run.
    pub workload: &'a dyn Workload,
    /// Errors after which an event is retried.
    pub ignored: &'a IgnoredErrors,
    /// The run's clock.
    pub clock: Clock,
    /// Time after which no event begins, ns.
    pub deadline_ns: u64,
    /// Time at which events in flight are given up, ns.
    pub give_up_ns: u64,
    /// State shared by all workers.
    pub control: &'a Control<'a>,
}

/// A worker's results beside its intervals.
pub struct WorkerEnd {
    /// Reason for an early end; `None` after a full run.
    pub failure: Option<Failure>,
    /// Counts at the end, and CPU time.
    pub remainder: Remainder,
    /// Each connection's work.
    pub shares: Vec<Share>,
}

impl<R: Reactor> Worker<'_, R> {
    /// Ends the connection's events: sends its workload's last requests, unless the run was
    /// stopped.
    pub(super) fn leave(&mut self, slot: usize) -> Result<(), Failure> {
        let connection = &mut self.connections[slot];
        let is_lost = connection.is_gone() && !connection.has_parted();
        let is_mute = self.orders.control.is_over() || is_lost;
        if connection.is_scripted() && !is_mute && !connection.is_leaving() {
            return self.dismiss_script(slot);
        }
        if is_mute || connection.is_leaving() || !connection.leave(self.orders.workload) {
            self.retire(slot);
            return Ok(());
        }
        connection.asked_ns = self.reactor.now_ns(&self.orders.clock);
        self.send(slot)
    }

    /// Retires the connection, idle until the run ends.
    pub(super) fn retire(&mut self, slot: usize) {
        self.connections[slot].set_idle();
        self.active -= 1;
    }

    /// Logs out on idle connections, so the server counts no aborted client. A connection with a
    /// request in flight is only closed.
    pub(super) fn log_out(&mut self) {
        for (slot, connection) in self.connections.iter_mut().enumerate() {
            if connection.has_socket() && !connection.is_in_flight() && !connection.is_gone() {
                let _ = self.reactor.send(slot_number(slot), connection.logout());
            }
        }
        let _ = self.reactor.flush();
    }
}

#[cfg(test)]
impl<R: Reactor> Worker<'_, R> {
    /// Asserts that every connection is in exactly one state, and that as many events are in flight
    /// as connections run one; events given up at the end of the run stay in flight for ever.
    ///
    /// # Panics
    /// The states do not agree.
    pub(crate) fn check(&self) {
        let running = |connection: &&Connection| connection.is_in_flight();
        let in_flight = self.connections.iter().filter(running).count();
        let leaving =
            self.connections.iter().filter(running).filter(|one| one.is_leaving()).count();
        let resting = self.connections.iter().zip(0..).filter(|(one, _)| one.is_in_flight());
        let mut slots: Vec<usize> = resting.map(|(_, slot)| slot).collect();
        slots.extend(self.reconnect.pending());
        slots.extend(self.pacing.waiting());
        assert_eq!(slots.len(), self.active, "active connections: {slots:?}");
        slots.sort_unstable();
        assert!(slots.windows(2).all(|pair| pair[0] != pair[1]), "a slot twice: {slots:?}");
        let events = in_flight - leaving + self.reconnect.pending().len();
        let given_up = self.recorder.in_flight().checked_sub(events as u64);
        assert!(
            given_up.is_some_and(|count| count == 0 || self.is_over()),
            "{given_up:?} of {events}"
        );
    }
}
