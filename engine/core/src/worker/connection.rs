//! The state of one connection: which event it runs, and which statement of it waits for its reply.
//!
//! It touches no socket: the worker moves the bytes. A connection costs some hundred bytes and the
//! packets of one event, so ten thousand fit into one thread.

use crate::error::Failure;
use crate::opening::Opened;
use crate::record::run_record::Share;
use crate::session::Endpoint;
use crate::session::link::{Link, LinkError};
use crate::workload::event::{Event, Reply, Step};
use crate::workload::{Client, Workload};
use dbdyno_wire::mysql::command::QUIT_PACKET;
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, Scanner};
use std::os::fd::OwnedFd;

/// A connection that is logged in.
pub struct Connection {
    link: Link,
    scanner: Scanner,
    client: Client,
    event: Event,
    step: usize,
    in_flight: bool,
    leaving: bool,
    gone: bool,
    events: u32,
    place: Option<Box<str>>,
    /// When the event was meant to begin, ns of the run's clock.
    pub due_ns: u64,
    /// When its first statement was sent.
    pub sent_ns: u64,
    /// When the statement that waits for its reply was sent.
    pub asked_ns: u64,
    /// What the connection did after the warm-up.
    pub share: Share,
}

impl Connection {
    /// A connection that has prepared the workload's statements.
    #[must_use]
    pub fn new(deprecate_eof: bool, client: Client) -> Self {
        Self {
            link: Link::Plain,
            scanner: Scanner::new(deprecate_eof),
            client,
            event: Event::default(),
            step: 0,
            in_flight: false,
            leaving: false,
            gone: false,
            events: 0,
            place: None,
            due_ns: 0,
            sent_ns: 0,
            asked_ns: 0,
            share: Share::default(),
        }
    }

    /// The same connection with the compression and TLS of `link`.
    #[must_use]
    pub fn over(mut self, link: Link) -> Self {
        self.scanner = self.scanner.of_any_number(link.is_compressed());
        self.link = link;
        self
    }

    /// The same connection, whose failures name the server; for a run with several.
    #[must_use]
    pub fn at(mut self, endpoint: &Endpoint) -> Self {
        self.place = Some(endpoint.to_string().into());
        self
    }

    /// The failure, with the server it happened at if there are several.
    #[must_use]
    pub fn placed(&self, failure: Failure) -> Failure {
        match &self.place {
            Some(place) => Failure { message: format!("{place}: {}", failure.message), ..failure },
            None => failure,
        }
    }

    /// Draws another event, which was due at `due_ns`. Its first packet is the next request; false when
    /// it has no packet and so is complete.
    pub fn draw(&mut self, workload: &dyn Workload, due_ns: u64) -> bool {
        workload.fill(&mut self.client, &mut self.event);
        self.step = 0;
        self.due_ns = due_ns;
        self.in_flight = true;
        !self.event.steps.is_empty()
    }

    /// No event is begun any more. True when something is left to send, which is the next request.
    pub fn leave(&mut self, workload: &dyn Workload) -> bool {
        workload.finish(&mut self.event);
        self.step = 0;
        self.leaving = true;
        self.in_flight = true;
        !self.event.steps.is_empty()
    }

    /// Whether what was left after the last event is being sent.
    #[must_use]
    pub const fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// The bytes to send for the current statement; its reply is expected from now on.
    pub fn request(&mut self) -> &[u8] {
        self.scanner.begin(match self.event.steps[self.step].reply {
            Reply::Text => ReplyShape::Text,
            Reply::Binary => ReplyShape::Binary,
        });
        self.link.request(self.event.packet(self.step))
    }

    /// The bytes of a logout, which has no reply.
    pub fn logout(&mut self) -> &[u8] {
        self.link.request(QUIT_PACKET)
    }

    /// Feeds bytes that arrived; the outcome once the reply is complete.
    ///
    /// # Errors
    /// When the bytes are no reply of the protocol, or nothing was asked.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Outcome>, LinkError> {
        match &mut self.link {
            Link::Plain => Ok(self.scanner.feed(bytes)?),
            link => feed_through(link, &mut self.scanner, bytes),
        }
    }

    /// Takes bytes that arrived while nothing was asked: TLS may change its keys at rest, and a server's
    /// last words are for nobody.
    ///
    /// # Errors
    /// When they break TLS or the compressed protocol: the session is out of step.
    #[cold]
    pub fn feed_at_rest(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.link.decode(bytes, &mut |_| Ok(()))
    }

    /// The statement that waits for its reply, or was answered last.
    #[must_use]
    pub fn statement(&self) -> Step {
        self.event.steps[self.step]
    }

    /// Goes on to the next statement; false when the event is complete.
    pub fn advance(&mut self) -> bool {
        self.step += 1;
        self.step < self.event.steps.len()
    }

    /// Whether every statement of its event has been answered.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.step >= self.event.steps.len()
    }

    /// No statement waits for a reply any more.
    pub fn set_idle(&mut self) {
        self.in_flight = false;
    }

    /// Whether an event is running.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// Its place among the run's connections, from 0.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.client.number
    }

    /// The socket is closed or broken.
    pub fn lose(&mut self) {
        self.in_flight = false;
        self.gone = true;
    }

    /// Whether the socket is closed or broken, and not replaced yet.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        self.gone
    }

    /// Goes on with a new session, and with its random stream where it was; gives the new socket.
    pub fn reopened(&mut self, opened: Opened) -> OwnedFd {
        let is_compressed = opened.link.is_compressed();
        self.scanner = Scanner::new(opened.deprecate_eof).of_any_number(is_compressed);
        self.link = opened.link;
        self.client.statement_ids = opened.statement_ids;
        self.gone = false;
        self.events = 0;
        opened.socket
    }

    /// How many events its session has run, the one that has just ended included.
    pub fn count_event(&mut self) -> u32 {
        self.events = self.events.wrapping_add(1);
        self.events
    }

    /// Counts a completed event.
    pub fn completed(&mut self, latency_ns: u64) {
        self.share.events += 1;
        self.share.busy_ns += latency_ns;
    }
}

/// Feeds what `bytes` hold for the scanner, in pieces; the last of them completes the reply.
fn feed_through(
    link: &mut Link,
    scanner: &mut Scanner,
    bytes: &[u8],
) -> Result<Option<Outcome>, LinkError> {
    let mut outcome = None;
    link.decode(bytes, &mut |piece| {
        if let Some(reached) = scanner.feed(piece)? {
            outcome = Some(reached);
        }
        Ok(())
    })?;
    Ok(outcome)
}
