//! The state of a connection: its event, and the statement in flight.
//!
//! It touches no socket: the worker moves the bytes. A connection costs some hundred bytes and the
//! packets of its event, so ten thousand fit into a thread.

use crate::driver::Driver;
use crate::error::{CONNECTION_LOST, Failure, ServerPart};
use crate::opening::Opened;
use crate::record::run_record::Share;
use crate::script::{Happened, Next, Reaction, ScriptThread};
use crate::session::link::{Link, LinkError, keep};
use crate::session::replies::Replies;
use crate::session::{Endpoint, advice_in_run};
use crate::time::clock::Clock;
use crate::workload::event::{Event, Reply, StatementKind, Step};
use crate::workload::{Client, Workload};
use dbdyno_wire::kept::Kept;
use dbdyno_wire::mysql::command::Command;
use dbdyno_wire::mysql::packet::HEADER_LENGTH;
use dbdyno_wire::mysql::scanner::{Outcome, ServerError};
use dbdyno_wire::postgres::message;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Most bytes of a statement repeated in a failure; a bulk insert has half a megabyte.
const SQL_LENGTH_MAX: usize = 1000;

/// A connection after its login.
pub struct Connection {
    link: Link,
    replies: Replies,
    client: Client,
    /// The script's thread that drives the connection, in place of a workload.
    script: Option<Box<ScriptThread>>,
    event: Event,
    step: usize,
    in_flight: bool,
    /// True while a sent statement has no reply yet; scripts also sleep in the middle of an event.
    asked: bool,
    leaving: bool,
    gone: bool,
    /// The refused statement's error, while the engine's own ROLLBACK is in flight.
    refused: Option<ServerError>,
    events: u32,
    place: Option<Box<str>>,
    /// Due time of the event, ns of the run's clock.
    pub due_ns: u64,
    /// Time of the event's first send.
    pub sent_ns: u64,
    /// Send time of the statement in flight.
    pub asked_ns: u64,
    /// The connection's work after the warm-up.
    pub share: Share,
    /// True if the event just ended is to be counted; a script may end an event uncounted.
    pub counts: bool,
    /// True if its session was lost in the middle of a statement and is being opened again.
    pub was_lost: bool,
}

impl Connection {
    /// Makes a connection of an opened session, for this client.
    #[must_use]
    pub fn of(opened: Opened, client: Client) -> (OwnedFd, Self) {
        let mut connection = Self::new(opened.deprecate_eof, client);
        (connection.reopened(opened), connection)
    }

    /// A connection to a MySQL that has prepared the workload's statements.
    #[must_use]
    pub fn new(deprecate_eof: bool, client: Client) -> Self {
        Self {
            link: Link::Plain,
            replies: Replies::new(Driver::Mysql, deprecate_eof, false),
            client,
            script: None,
            event: Event::default(),
            step: 0,
            in_flight: false,
            asked: false,
            leaving: false,
            gone: false,
            refused: None,
            events: 0,
            place: None,
            due_ns: 0,
            sent_ns: 0,
            asked_ns: 0,
            share: Share::default(),
            counts: true,
            was_lost: false,
        }
    }

    /// Sets the compression and TLS of `link`.
    #[must_use]
    pub fn over(mut self, link: Link) -> Self {
        if let Replies::Mysql(scanner) = self.replies {
            self.replies = Replies::Mysql(scanner.of_any_number(link.is_compressed()));
        }
        self.link = link;
        self
    }

    /// Lets a thread of a script drive the connection.
    #[must_use]
    pub(crate) fn scripted(mut self, thread: ScriptThread) -> Self {
        self.script = Some(Box::new(thread));
        self
    }

    /// Makes failures name the server; for a run with several.
    #[must_use]
    pub fn at(mut self, endpoint: &Endpoint) -> Self {
        self.place = Some(endpoint.to_string().into());
        self
    }

    /// Names the server in the failure, in a run with several.
    #[must_use]
    pub fn placed(&self, failure: Failure) -> Failure {
        match &self.place {
            Some(place) => {
                let mut part = failure.server.unwrap_or_default();
                part.server = place.to_string();
                let message = format!("{place}: {}", failure.message);
                Failure { message, server: Some(part), ..failure }
            }
            None => failure,
        }
    }

    /// The failure of a statement that the server has refused.
    pub(super) fn refusal(&self, error: &ServerError, workload: &dyn Workload) -> Failure {
        let server_message = error.message.clone();
        let advice = advice_in_run(error).map_or_else(String::new, |it| format!("; try {it}"));
        self.placed(Failure {
            code: (error.code > 0).then_some(error.code),
            sqlstate: String::from_utf8_lossy(&error.sqlstate).into_owned(),
            statement: self.sql(workload),
            server: Some(Box::new(ServerPart { server_message, ..ServerPart::default() })),
            ..Failure::new("run", format!("{}{advice}", error.message))
        })
    }

    /// The failure of a connection lost before the reply to its statement.
    pub(super) fn loss(&self, workload: &dyn Workload, why: &str) -> Failure {
        let driver = match self.replies {
            Replies::Mysql(_) => Driver::Mysql,
            Replies::Pgsql(_) => Driver::Pgsql,
        };
        Failure {
            code: Some(CONNECTION_LOST),
            statement: self.sql(workload),
            ..Failure::new("run", format!("{}: {why}", driver.words_of_loss()))
        }
    }

    /// The SQL of the statement in flight, or answered last, as it was prepared or sent; a script
    /// tells its own.
    pub(super) fn sql(&self, workload: &dyn Workload) -> String {
        let step = self.statement();
        let packet = self.event.packet(self.step);
        let (text, id) = match &self.replies {
            Replies::Mysql(_) => match packet.get(HEADER_LENGTH..).map(Command::parse) {
                Some(Ok(Command::Query(text))) => (Some(text), None),
                Some(Ok(Command::Execute(id, _))) => (None, Some(id)),
                _ => (None, None),
            },
            Replies::Pgsql(_) => (message::text_of(packet), message::executed_by(packet)),
        };
        let prepared = || {
            let place = self.client.statement_ids.iter().position(|&one| Some(one) == id)?;
            workload.statements().get(place).map(|one| one.sql.clone())
        };
        let sent = text.filter(|_| !self.is_scripted());
        let shown = |text: &[u8]| {
            String::from_utf8_lossy(&text[..text.len().min(SQL_LENGTH_MAX)]).into_owned()
        };
        sent.map(shown).or_else(prepared).unwrap_or_else(|| step.kind.name().to_owned())
    }

    /// Draws another event, due at `due_ns`. Its first packet is the next request; false if it has
    /// no packet and so is complete.
    pub fn draw(&mut self, workload: &dyn Workload, due_ns: u64) -> bool {
        workload.fill(&mut self.client, &mut self.event);
        self.step = 0;
        self.due_ns = due_ns;
        self.in_flight = true;
        !self.event.steps.is_empty()
    }

    /// Leaves the run: no event begins any more. True if a last request is left to send.
    pub fn leave(&mut self, workload: &dyn Workload) -> bool {
        workload.finish(&mut self.event);
        self.step = 0;
        self.leaving = true;
        self.in_flight = true;
        !self.event.steps.is_empty()
    }

    /// True if a script drives the connection.
    #[inline]
    #[must_use]
    pub const fn is_scripted(&self) -> bool {
        self.script.is_some()
    }

    /// True if the loop has its socket; some scripts keep theirs to themselves.
    #[must_use]
    pub fn has_socket(&self) -> bool {
        self.script.as_ref().is_none_or(|script| script.is_looped())
    }

    /// The flag that makes its script give up sessions it waits for itself; `None` if the loop
    /// waits.
    pub(crate) fn given_up(&self) -> Option<Arc<AtomicBool>> {
        let script = self.script.as_ref().filter(|script| !script.is_looped())?;
        Some(script.given_up())
    }

    /// True if its script has closed the session and not requested another yet.
    #[must_use]
    pub(super) fn has_parted(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.has_parted())
    }

    /// Begins an event of its script, due at `due_ns`.
    pub(super) fn draw_script(&mut self, due_ns: u64, now_ns: u64) -> Next {
        (self.due_ns, self.sent_ns, self.asked_ns) = (due_ns, now_ns, now_ns);
        (self.step, self.in_flight, self.asked, self.counts) = (0, true, false, true);
        let script = self.script.as_mut().expect("its caller has asked");
        script.draw(&mut self.event)
    }

    /// Passes a reaction to its script; the script's next request, if any, is the event's only
    /// packet.
    #[inline]
    pub(super) fn follow(&mut self, reaction: &Reaction<'_>) -> Next {
        (self.step, self.in_flight, self.asked) = (0, true, false);
        let script = self.script.as_mut().expect("its caller has asked");
        script.follow(reaction, &mut self.event)
    }

    /// The script's name for the kind of the event just ended.
    #[inline]
    pub(super) fn event_kind(&self) -> Option<&Arc<str>> {
        self.script.as_ref()?.event_kind()
    }

    /// Marks the connection as leaving: its script begins no event any more.
    pub(super) fn begin_leaving(&mut self) {
        self.leaving = true;
    }

    /// The script's next action outside the loop; `None` after the last.
    pub(super) fn happened(&mut self) -> Option<Happened> {
        self.script.as_mut()?.happened()
    }

    /// Starts the run's clock for the script; a script with its own servers delays their replies as
    /// the loop does.
    pub(crate) fn begin_run(&mut self, clock: Clock, round_trip: Duration) {
        if let Some(script) = &mut self.script {
            script.begin_run(clock, round_trip);
        }
    }

    /// Number of the statement prepared last.
    pub(super) const fn prepared_id(&self) -> u32 {
        self.replies.statement_id()
    }

    /// True while the requests after the last event are being sent.
    #[must_use]
    pub const fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Returns the bytes to send for the current statement; its reply is expected from now on.
    pub fn request(&mut self) -> &[u8] {
        self.asked = true;
        let packet = self.event.packet(self.step);
        self.replies.begin(self.event.steps[self.step].reply.into(), packet.len());
        self.link.request(packet)
    }

    /// Returns the bytes of a logout, which has no reply.
    pub fn logout(&mut self) -> &[u8] {
        self.link.request(self.replies.logout())
    }

    /// Feeds received bytes; returns the outcome once the reply is complete.
    ///
    /// # Errors
    /// The bytes are no reply of the protocol, or no request was sent.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Outcome>, LinkError> {
        let kept = self.script.as_mut().and_then(|script| script.kept());
        match (&mut self.link, kept) {
            (Link::Plain, None) => self.replies.feed(bytes),
            (link, kept) => feed_through(link, &mut self.replies, kept, bytes),
        }
    }

    /// Feeds bytes received at rest: TLS may change its keys, and a server's parting message is
    /// dropped.
    ///
    /// # Errors
    /// They break TLS or the compressed protocol: the session is out of step.
    #[cold]
    pub fn feed_at_rest(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.link.decode(bytes, &mut |_| Ok(()))
    }

    /// The statement in flight, or answered last.
    #[must_use]
    pub fn statement(&self) -> Step {
        self.event.steps[self.step]
    }

    /// Goes on to the next statement; false when the event is complete.
    pub fn advance(&mut self) -> bool {
        self.step += 1;
        self.step < self.event.steps.len()
    }

    /// Makes a ROLLBACK the next request after a refused statement, if the server needs it; false
    /// if not, or if the ROLLBACK itself was refused.
    pub(super) fn roll_back(&mut self, after: &ServerError) -> bool {
        if self.refused.take().is_some() || !self.replies.needs_rollback() {
            return false;
        }
        self.event.clear();
        message::query(&mut self.event.bytes, "ROLLBACK");
        self.event.close_step(StatementKind::Rollback, Reply::Rollback);
        self.step = 0;
        self.refused = Some(after.clone());
        true
    }

    /// Takes the error of the refused statement, if the answer was to the engine's own ROLLBACK.
    #[inline]
    pub(super) const fn rolled_back(&mut self) -> Option<ServerError> {
        self.refused.take()
    }

    /// True if every statement of its event has been answered.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.step >= self.event.steps.len()
    }

    /// Marks the connection as idle: no statement is in flight any more.
    pub fn set_idle(&mut self) {
        self.in_flight = false;
    }

    /// True while an event is running.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// True if received bytes are the reply to a statement.
    #[inline]
    #[must_use]
    pub const fn awaits_reply(&self) -> bool {
        self.in_flight && (self.asked || self.script.is_none())
    }

    /// Its place among the run's connections, from 0.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.client.number
    }

    /// Marks the socket as closed or broken.
    pub fn lose(&mut self) {
        self.in_flight = false;
        self.gone = true;
    }

    /// True if the socket is closed or broken, and not replaced yet.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        self.gone
    }

    /// Takes over a new session, and continues its random stream; returns the new socket.
    pub fn reopened(&mut self, opened: Opened) -> OwnedFd {
        let is_compressed = opened.link.is_compressed();
        self.replies = Replies::new(opened.driver, opened.deprecate_eof, is_compressed);
        self.link = opened.link;
        self.client.statement_ids = opened.statement_ids;
        self.gone = false;
        self.refused = None;
        self.events = 0;
        opened.socket
    }

    /// Counts an ended event; returns the number its session has run.
    pub fn count_event(&mut self) -> u32 {
        self.events = self.events.wrapping_add(1);
        self.events
    }

    /// Adds a completed event to its share.
    pub fn completed(&mut self, latency_ns: u64) {
        self.share.events += 1;
        self.share.busy_ns += latency_ns;
    }
}

/// Feeds the decoded `bytes` to the scanner in pieces; the last completes the reply. The pieces are
/// also `kept`, if a script will read the rows.
fn feed_through(
    link: &mut Link,
    replies: &mut Replies,
    mut kept: Option<&mut Kept>,
    bytes: &[u8],
) -> Result<Option<Outcome>, LinkError> {
    let mut outcome = None;
    link.decode(bytes, &mut |piece| {
        if let Some(kept) = &mut kept {
            keep(kept, piece)?;
        }
        if let Some(reached) = replies.feed(piece)? {
            outcome = Some(reached);
        }
        Ok(())
    })?;
    Ok(outcome)
}
