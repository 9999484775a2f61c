//! The loop: one thread, many connections, each with one event in flight.
//!
//! wait → a reply arrives → scan it → record → send the next statement, or end the event and begin
//! the next. Nothing here allocates, logs or locks once the buffers have grown, and the clock is
//! read once a reply. Who begins when, if not at once, is the matter of `pacing`; what becomes of
//! refused statements and lost connections, of `revival`.

pub mod connection;
mod pacing;
mod pause;
mod reconnect;

use crate::error::Failure;
use crate::placement::Place;
use crate::reactor::{Arrival, Reactor, What};
use crate::record::recorder::{Answer, Recorder, Rest};
use crate::record::run_record::Share;
use crate::spec::IgnoredErrors;
use crate::time::clock::Clock;
use crate::time::schedule::Phase;
use crate::workload::Workload;
use connection::Connection;
use dbdyno_wire::mysql::command;
use dbdyno_wire::mysql::scanner::{Outcome, Summary};
pub use pacing::Pacing;
pub use pause::Standing;
pub use reconnect::{Diallers, Revival};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How soon a worker notices a stop or the end of a slice when no reply comes.
pub const PATIENCE: Duration = Duration::from_millis(50);
/// How long events in flight may still come home after a stop.
const STOP_GRACE_NS: u64 = 500_000_000;

/// One thread of the engine.
pub struct Worker<'a, R: Reactor> {
    reactor: R,
    connections: Vec<Connection>,
    recorder: Recorder,
    orders: Orders<'a>,
    pacing: Pacing,
    revival: Revival,
    standing: Standing<'a>,
    /// Connections that may still begin an event or are in one.
    staying: usize,
    now_ns: u64,
    /// When the schedule wants something next; `u64::MAX` in a closed loop.
    next_ns: u64,
    leave_ns: u64,
    place: Place,
}

impl<'a, R: Reactor> Worker<'a, R> {
    /// A worker over connections whose sockets `reactor` holds in the same order, in a closed loop.
    pub fn new(
        reactor: R,
        connections: Vec<Connection>,
        recorder: Recorder,
        orders: Orders<'a>,
    ) -> Self {
        let (pacing, revival, leave_ns) = (Pacing::closed(), Revival::default(), orders.give_up_ns);
        let (staying, now_ns, next_ns) = (0, 0, u64::MAX);
        Self {
            reactor,
            connections,
            recorder,
            orders,
            pacing,
            revival,
            standing: Standing::never(),
            staying,
            now_ns,
            next_ns,
            leave_ns,
            place: Place::Free,
        }
    }

    /// The same worker by another schedule.
    #[must_use]
    pub fn paced(self, pacing: Pacing) -> Self {
        Self { pacing, ..self }
    }

    /// The same worker, with a way to open sessions again. The reactor then holds one socket more than
    /// there are connections: the bell.
    #[must_use]
    pub fn reviving(self, revival: Revival) -> Self {
        Self { revival, ..self }
    }

    /// The same worker, which stands still now and then.
    #[must_use]
    pub fn standing(self, mut standing: Standing<'a>) -> Self {
        standing.make_room(self.connections.len());
        Self { standing, ..self }
    }

    /// The same worker at its place among the cores.
    #[must_use]
    pub fn placed(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Loads the server until the run is over.
    pub fn drive(mut self) -> Legacy {
        let failure = self.load().err();
        if failure.is_some() {
            self.orders.control.failed.store(true, Ordering::Relaxed);
        }
        self.say_goodbye();
        let rest = self.recorder.finish(self.orders.clock.now_ns());
        let shares = self.connections.iter().map(|connection| connection.share).collect();
        Legacy { failure, rest, shares }
    }

    fn load(&mut self) -> Result<(), Failure> {
        self.begin()?;
        while self.staying > 0 && self.now_ns < self.leave_ns {
            let at_most = self.time_to_wait();
            self.reactor.wait(at_most).map_err(|error| broken(&error))?;
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
            self.place.look(self.now_ns);
            if self.revival.is_awaited() {
                self.attend_to_the_lost()?;
            }
            if self.standing.is_shut(self.now_ns) {
                self.stand_still()?;
            }
            if !self.pacing.is_closed() {
                self.begin_due()?;
            }
            if self.orders.control.is_over() {
                self.leave_ns = self.leave_ns.min(self.now_ns + STOP_GRACE_NS);
            }
        }
        Ok(())
    }

    /// The outcome of the connection's statement, once its reply is complete. What comes where nothing
    /// is asked, such as a server's goodbye to a session that rests, concerns no event; nor does the bell.
    fn scan(&mut self, slot: usize, arrival: &Arrival) -> Result<Option<Outcome>, Failure> {
        let Some(connection) = self.connections.get_mut(slot) else { return Ok(None) };
        if !connection.is_in_flight() {
            if arrival.what != What::Bytes {
                connection.lose();
            }
            return Ok(None);
        }
        let lost =
            |why: &str| Err(Failure::connection_lost(connection.statement().kind.name(), why));
        match arrival.what {
            What::Bytes => connection.feed(self.reactor.bytes(arrival)).map_err(|error| {
                Failure::new("run", format!("the server's reply breaks the protocol: {error}"))
            }),
            What::Closed => lost("the server closed it"),
            What::Failed(number) => lost(&io::Error::from_raw_os_error(number).to_string()),
        }
    }

    /// Reads the clock, and notes what has fallen due before anything else is recorded.
    #[inline]
    fn read_the_clock(&mut self) {
        self.now_ns = self.orders.clock.now_ns();
        if self.now_ns >= self.next_ns {
            self.fall_due();
        }
    }

    /// A statement was answered: the next one, or the end of the event.
    #[inline]
    fn answered(&mut self, slot: usize, summary: &Summary) -> Result<(), Failure> {
        self.read_the_clock();
        let connection = &mut self.connections[slot];
        let answer = Answer {
            columns: summary.columns,
            affected_rows: summary.affected_rows,
            bytes: summary.bytes,
        };
        let kind = connection.statement().kind;
        self.recorder.statement(kind, connection.asked_ns, self.now_ns, answer);
        if connection.advance() {
            connection.asked_ns = self.now_ns;
            return self.send(slot);
        }
        if connection.is_leaving() {
            self.rest(slot);
            return Ok(());
        }
        if self.revival.is_planned() && self.replace_by_plan(slot)? {
            return Ok(());
        }
        self.complete(slot);
        self.go_on(slot)
    }

    #[inline]
    fn complete(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        self.recorder.event(connection.due_ns, connection.sent_ns, self.now_ns);
        if self.recorder.phase() != Phase::Warmup {
            connection.completed(self.now_ns.saturating_sub(connection.due_ns));
        }
    }

    /// The connection has ended an event.
    #[inline]
    fn go_on(&mut self, slot: usize) -> Result<(), Failure> {
        if self.pacing.is_closed() { self.begin_next(slot) } else { self.release(slot) }
    }

    /// In a closed loop an event is due the moment the one before it has ended: begins the connection's
    /// next event that has something to send, unless the run is over.
    #[inline]
    fn begin_next(&mut self, slot: usize) -> Result<(), Failure> {
        let mut has_sent_nothing = false;
        loop {
            if self.standing.is_shut(self.now_ns) && !self.is_over() {
                // Its event is over and the next one not drawn: a connection that is closed now is lost
                // in no event.
                self.connections[slot].rest();
                self.standing.hold(slot);
                return Ok(());
            }
            if self.is_over() || !self.orders.control.claim(self.recorder.phase()) {
                return self.leave(slot);
            }
            if self.draw_event(slot, self.now_ns) {
                self.send_first(slot)?;
                // Many silent events took a while: this request does not wait for more of them.
                return if has_sent_nothing { self.flush() } else { Ok(()) };
            }
            has_sent_nothing = true;
            self.complete(slot);
        }
    }

    /// Whether no event is begun any more.
    #[inline]
    fn is_over(&self) -> bool {
        self.now_ns >= self.orders.deadline_ns || self.orders.control.is_over()
    }

    /// Draws an event that begins now; false when it has nothing to send and so ends at once.
    #[inline]
    fn draw_event(&mut self, slot: usize, due_ns: u64) -> bool {
        let has_request = self.draw(slot, due_ns);
        self.recorder.begun(self.connections[slot].sent_ns);
        has_request
    }

    #[inline]
    fn draw(&mut self, slot: usize, due_ns: u64) -> bool {
        let connection = &mut self.connections[slot];
        let has_request = connection.draw(self.orders.workload, due_ns);
        connection.sent_ns = self.orders.clock.now_ns();
        connection.asked_ns = connection.sent_ns;
        if !has_request {
            self.read_the_clock();
            self.recorder.advance(self.now_ns);
        }
        has_request
    }

    /// Sends the first statement of an event, unless the connection was closed while it rested.
    #[inline]
    fn send_first(&mut self, slot: usize) -> Result<(), Failure> {
        let connection = &self.connections[slot];
        if connection.is_gone() {
            let name = connection.statement().kind.name();
            return self.lost(slot, Failure::connection_lost(name, "it was closed at rest"));
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

/// What all workers of a run share.
pub struct Control<'a> {
    /// The user wants it to end.
    pub stop: &'a AtomicBool,
    /// A worker failed: all end.
    pub failed: AtomicBool,
    /// Events still to be begun after the warm-up; None for no limit. Those that the end of the
    /// warm-up finds in flight are not among them.
    pub budget: Option<AtomicU64>,
}

impl Control<'_> {
    /// Whether no event is to be begun any more, whatever the clock says.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Whether all events that may be begun have been.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.load(Ordering::Relaxed) == 0)
    }

    /// Takes one event out of the budget; false when it is spent.
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

/// What a worker is told about the run.
#[derive(Clone, Copy)]
pub struct Orders<'a> {
    /// What is run.
    pub workload: &'a dyn Workload,
    /// Errors that begin the event again.
    pub ignored: &'a IgnoredErrors,
    /// The run's clock.
    pub clock: Clock,
    /// No event is begun from here on, ns.
    pub deadline_ns: u64,
    /// What is still in flight is given up from here on, ns.
    pub give_up_ns: u64,
    /// What all workers share.
    pub control: &'a Control<'a>,
}

/// What a worker leaves behind.
pub struct Legacy {
    /// Why it ended early; None if it did not.
    pub failure: Option<Failure>,
    /// What its recorder had left to tell.
    pub rest: Rest,
    /// Each connection's part.
    pub shares: Vec<Share>,
}

impl<R: Reactor> Worker<'_, R> {
    /// The connection's events are over: what its workload kept back is sent, unless the run was
    /// stopped, and then it rests.
    pub(super) fn leave(&mut self, slot: usize) -> Result<(), Failure> {
        let connection = &mut self.connections[slot];
        let is_mute = self.orders.control.is_over() || connection.is_gone();
        if is_mute || connection.is_leaving() || !connection.leave(self.orders.workload) {
            self.rest(slot);
            return Ok(());
        }
        connection.asked_ns = self.orders.clock.now_ns();
        self.send(slot)
    }

    pub(super) fn rest(&mut self, slot: usize) {
        self.connections[slot].rest();
        self.staying -= 1;
    }

    /// Logs out where nothing is asked, so that the server does not count an aborted client. A
    /// connection with a request in flight is only closed.
    pub(super) fn say_goodbye(&mut self) {
        let mut packet = Vec::new();
        command::quit(&mut packet);
        for (slot, connection) in self.connections.iter_mut().enumerate() {
            if !connection.is_in_flight() && !connection.is_gone() {
                let _ = self.reactor.send(slot_number(slot), connection.goodbye(&packet));
            }
        }
        let _ = self.reactor.flush();
    }
}
