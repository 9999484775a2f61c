//! The loop: one thread, many connections, each with one event in flight.
//!
//! wait → a reply arrives → scan it → record → send the next statement, or end the event and begin
//! the next. Nothing here allocates, logs or locks once the buffers have grown, and the clock is
//! read once a reply.

use crate::connection::Connection;
use crate::error::Failure;
pub use crate::orders::{Control, Legacy, Orders};
use crate::reactor::{Arrival, Reactor, What};
use crate::record::{Answer, Recorder};
use crate::schedule::{Phase, closed_loop_due_ns};
use dbdyno_wire::mysql::command;
use dbdyno_wire::mysql::scanner::{Outcome, ServerError, Summary};
use std::io;
use std::sync::atomic::Ordering;
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
    in_flight: usize,
    now_ns: u64,
    leave_ns: u64,
}

impl<'a, R: Reactor> Worker<'a, R> {
    /// A worker over connections whose sockets `reactor` holds in the same order.
    pub fn new(
        reactor: R,
        connections: Vec<Connection>,
        recorder: Recorder,
        orders: Orders<'a>,
    ) -> Self {
        let leave_ns = orders.give_up_ns;
        Self { reactor, connections, recorder, orders, in_flight: 0, now_ns: 0, leave_ns }
    }

    /// Loads the server until the run is over.
    pub fn drive(mut self) -> Legacy {
        let failure = self.load().err();
        if failure.is_some() {
            self.orders.control.failed.store(true, Ordering::Relaxed);
        }
        self.say_goodbye();
        let cpu = self.recorder.finish(self.orders.clock.now_ns());
        let shares = self.connections.iter().map(|connection| connection.share).collect();
        Legacy { failure, cpu, shares }
    }

    fn load(&mut self) -> Result<(), Failure> {
        self.in_flight = self.connections.len();
        for slot in 0..self.in_flight {
            self.now_ns = self.orders.clock.now_ns();
            self.begin_event(slot)?;
        }
        while self.in_flight > 0 && self.now_ns < self.leave_ns {
            self.reactor.wait().map_err(|error| broken(&error))?;
            let before_ns = self.now_ns;
            while let Some(arrival) = self.reactor.next_arrival() {
                let slot = arrival.slot as usize;
                let outcome = self.scan(slot, &arrival);
                self.reactor.give_back(arrival);
                match outcome.map_err(|failure| self.connections[slot].placed(failure))? {
                    None => {}
                    Some(Outcome::Done(summary)) => self.answered(slot, &summary)?,
                    Some(Outcome::Failed(error)) => self.refused(slot, &error)?,
                }
            }
            if self.now_ns == before_ns {
                self.look_at_the_clock();
            }
            if self.orders.control.is_over() {
                self.leave_ns = self.leave_ns.min(self.now_ns + STOP_GRACE_NS);
            }
        }
        Ok(())
    }

    /// The outcome of the connection's statement, once its reply is complete. What comes where nothing
    /// is asked, such as a server's goodbye to a session that rests, concerns no event.
    fn scan(&mut self, slot: usize, arrival: &Arrival) -> Result<Option<Outcome>, Failure> {
        let connection = &mut self.connections[slot];
        if !connection.is_in_flight() {
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

    /// A statement was answered: the next one, or the end of the event.
    #[inline]
    fn answered(&mut self, slot: usize, summary: &Summary) -> Result<(), Failure> {
        self.now_ns = self.orders.clock.now_ns();
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
        self.complete(slot);
        self.begin_event(slot)
    }

    #[inline]
    fn complete(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        self.recorder.event(connection.due_ns, connection.sent_ns, self.now_ns);
        if self.recorder.phase() != Phase::Warmup {
            connection.completed(self.now_ns.saturating_sub(connection.due_ns));
        }
    }

    /// Begins the connection's next event that has something to send, unless the run is over.
    #[inline]
    fn begin_event(&mut self, slot: usize) -> Result<(), Failure> {
        let mut has_sent_nothing = false;
        loop {
            let control = self.orders.control;
            let over = self.now_ns >= self.orders.deadline_ns || control.is_over();
            if over || !control.claim(self.recorder.phase()) {
                return self.leave(slot);
            }
            if self.draw(slot, closed_loop_due_ns(self.now_ns)) {
                self.send(slot)?;
                // Many silent events took a while: this request does not wait for more of them.
                return if has_sent_nothing { self.flush() } else { Ok(()) };
            }
            has_sent_nothing = true;
            self.complete(slot);
        }
    }

    /// Draws an event; false when it has nothing to send and so ends at once.
    #[inline]
    fn draw(&mut self, slot: usize, due_ns: u64) -> bool {
        let connection = &mut self.connections[slot];
        let has_request = connection.draw(self.orders.workload, due_ns);
        connection.sent_ns = self.orders.clock.now_ns();
        connection.asked_ns = connection.sent_ns;
        if !has_request {
            self.now_ns = connection.sent_ns;
            self.recorder.advance(self.now_ns);
        }
        has_request
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

    /// A statement failed: an ignorable error begins the event again, as sysbench does, with new
    /// draws and without a ROLLBACK, and its latency goes on. Any other error ends the run. Unlike
    /// sysbench, the time limit is kept even if the error never goes away.
    #[cold]
    fn refused(&mut self, slot: usize, error: &ServerError) -> Result<(), Failure> {
        self.now_ns = self.orders.clock.now_ns();
        self.recorder.error(error.code, self.now_ns);
        let connection = &self.connections[slot];
        if !self.orders.ignored.contains(error.code) {
            let sqlstate = String::from_utf8_lossy(&error.sqlstate).into_owned();
            return Err(connection.placed(Failure {
                code: Some(error.code),
                sqlstate,
                statement: connection.statement().kind.name().to_owned(),
                ..Failure::new("run", &*error.message)
            }));
        }
        let over = self.now_ns >= self.orders.deadline_ns || self.orders.control.is_over();
        if over || connection.is_leaving() {
            return self.leave(slot);
        }
        self.recorder.restart();
        let due_ns = connection.due_ns;
        if self.draw(slot, due_ns) {
            return self.send(slot);
        }
        self.complete(slot);
        self.begin_event(slot)
    }

    /// The connection's events are over: what its workload kept back is sent, unless the run was
    /// stopped, and then it rests.
    fn leave(&mut self, slot: usize) -> Result<(), Failure> {
        let connection = &mut self.connections[slot];
        let is_stopped = self.orders.control.is_over();
        if is_stopped || connection.is_leaving() || !connection.leave(self.orders.workload) {
            self.rest(slot);
            return Ok(());
        }
        connection.asked_ns = self.orders.clock.now_ns();
        self.send(slot)
    }

    fn rest(&mut self, slot: usize) {
        self.connections[slot].rest();
        self.in_flight -= 1;
    }

    /// For rounds in which no reply was completed: silence, and replies that do not end, take time too.
    fn look_at_the_clock(&mut self) {
        self.now_ns = self.orders.clock.now_ns();
        self.recorder.advance(self.now_ns);
    }

    /// Logs out where nothing is asked, so that the server does not count an aborted client. A
    /// connection with a request in flight is only closed.
    fn say_goodbye(&mut self) {
        let mut packet = Vec::new();
        command::quit(&mut packet);
        for (slot, connection) in self.connections.iter_mut().enumerate() {
            if !connection.is_in_flight() {
                let _ = self.reactor.send(slot_number(slot), connection.goodbye(&packet));
            }
        }
        let _ = self.reactor.flush();
    }
}

fn slot_number(slot: usize) -> u32 {
    u32::try_from(slot).expect("connections are counted in 32 bits")
}

fn broken(error: &io::Error) -> Failure {
    Failure::new("run", format!("the system's network interface failed: {error}"))
}
