//! The blocking client for PostgreSQL: logs in, prepares statements, fills tables by COPY.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use dbdyno_wire::kept::Kept;
use dbdyno_wire::mysql::scanner::{Outcome, Summary};
use dbdyno_wire::postgres::login::{Login as Exchange, Step};
use dbdyno_wire::postgres::message::{self, HEADER_LENGTH, ServerError, TERMINATE};
use dbdyno_wire::postgres::scanner::Scanner;
use dbdyno_wire::postgres::scram::Binding;

use super::error::Problem;
use super::load::write_while_unheard;
use super::replies::told;
use super::socket::Socket;
use super::stream::{Stream, WatchedSocket};
use super::timeouts::Clock;
use super::{
    Endpoint, LOGIN_LENGTH_MAX, Login, READ_LENGTH, ROWS_LENGTH_MAX, Refusal, SessionError,
    Timeouts, Transport,
};
use crate::session::link::{Link, keep};
use crate::session::tls::{TlsMode, TlsProblem};

type Rows = Vec<Vec<Option<String>>>;

/// An open session with a PostgreSQL.
pub struct PostgresSession {
    stream: Stream,
    endpoint: Endpoint,
    server_version: String,
    process_id: u32,
    request: Vec<u8>,
    payload: Vec<u8>,
}

impl PostgresSession {
    /// Connects and logs in as `transport` asks, within the limits of `timeouts`.
    ///
    /// # Errors
    /// [`SessionError`] when the server cannot be reached, refuses, or wants an unknown login; when
    /// TLS cannot be had as asked.
    pub fn connect(
        endpoint: &Endpoint,
        login: &Login,
        transport: &Transport,
        timeouts: &Timeouts,
    ) -> Result<Self, SessionError> {
        let failed = |problem: Problem| SessionError::session(endpoint, login, problem);
        let clock = Clock::start(timeouts);
        let socket =
            Socket::connect(endpoint, &clock).map_err(|e| failed(Problem::Unreachable(e)))?;
        let mut session = Self {
            stream: Stream::new(WatchedSocket { socket, clock }),
            endpoint: endpoint.clone(),
            server_version: String::new(),
            process_id: 0,
            request: Vec::new(),
            payload: Vec::new(),
        };
        session.enter(login, transport).map_err(failed)?;
        session.stream.socket.clock.logged_in();
        Ok(session)
    }

    /// The server's version, as the server spells it.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// The server's process for this session, named by another session to cancel a query.
    #[must_use]
    pub const fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Ends every wait at `moment`, if given, even when the server keeps sending.
    pub(crate) const fn wait_until(&mut self, moment: Option<Instant>) {
        self.stream.socket.clock.timeouts.until = moment;
    }

    /// Limits the server's silence during a statement; `None` lifts the limit.
    pub(crate) const fn limit_silence(&mut self, limit: Option<Duration>) {
        self.stream.socket.clock.timeouts.silence = limit;
    }

    /// Runs a statement and gives all its rows as text, NULL as `None`.
    ///
    /// # Errors
    /// [`SessionError`] when the server refuses, or the session broke.
    pub fn query(&mut self, sql: &str) -> Result<Rows, SessionError> {
        self.request.clear();
        message::query(&mut self.request, sql);
        self.ask().map_err(|problem| self.failed(sql, problem))
    }

    /// Prepares a statement under number `id`, with the types of its first parameters; the server
    /// infers the others.
    ///
    /// # Errors
    /// [`SessionError`] when the server refuses, or the session broke.
    pub fn prepare(&mut self, id: u32, sql: &str, types: &[u32]) -> Result<(), SessionError> {
        self.request.clear();
        message::preparation(&mut self.request, id, sql, types);
        self.ask().map(drop).map_err(|problem| self.failed(sql, problem))
    }

    /// Runs `sql`, a `COPY … FROM STDIN`, with the rows from `next`. Each call of `next` appends a
    /// part of the rows and gives their number; 0 ends the load.
    ///
    /// # Errors
    /// [`SessionError`] when the server refuses, at once or in the middle, or takes another number
    /// of rows; and when the session broke. After a failure in the middle the session cannot be
    /// used.
    pub fn copy(
        &mut self,
        sql: &str,
        next: &mut dyn FnMut(&mut Vec<u8>) -> u64,
    ) -> Result<(), SessionError> {
        self.request.clear();
        message::query(&mut self.request, sql);
        self.send_rows(next).map_err(|problem| self.failed(sql, problem))
    }

    /// Sends the messages of a request and gives the reply's summary. The reply's bytes are
    /// appended to `kept`, if given.
    ///
    /// # Errors
    /// [`Refusal`] when the server refuses, or the session broke.
    pub(crate) fn exchange_keeping(
        &mut self,
        request: &[u8],
        mut kept: Option<&mut Kept>,
    ) -> Result<Summary, Refusal> {
        let lost = |problem: Problem| Refusal::Lost(problem.to_string());
        self.stream.request(request).map_err(|error| lost(error.into()))?;
        let mut scanner = Scanner::default();
        scanner.begin();
        let mut buffer = [0; READ_LENGTH];
        loop {
            let length = self.stream.read(&mut buffer).map_err(|error| lost(error.into()))?;
            if length == 0 {
                return Err(lost(Problem::closed()));
            }
            if let Some(kept) = &mut kept {
                keep(kept, &buffer[..length]).map_err(|error| Refusal::Lost(error.to_string()))?;
            }
            let fed = scanner.feed(&buffer[..length]);
            if let Some(outcome) = fed.map_err(|error| Refusal::Lost(error.to_string()))? {
                return match told(outcome) {
                    Outcome::Done(summary) => Ok(summary),
                    Outcome::Failed(error) => Err(Refusal::Server(error)),
                };
            }
        }
    }

    /// Hands the session over: a blocking socket, and its TLS.
    #[must_use]
    pub fn into_stream(self) -> (OwnedFd, Link) {
        (self.stream.socket.socket.into(), self.stream.link)
    }

    /// Logs out. Errors no longer matter: the session ends in any case.
    pub fn quit(mut self) {
        drop(self.stream.request(TERMINATE));
    }

    fn failed(&self, statement: &str, problem: Problem) -> SessionError {
        SessionError::statement(&self.endpoint, statement, problem)
    }

    fn enter(&mut self, login: &Login, transport: &Transport) -> Result<(), Problem> {
        let binding = self.encrypt(transport)?;
        let whole = transport.whole_password(&self.endpoint, &self.stream);
        let mut exchange = Exchange::new(&login.user, &login.password, binding, whole);
        self.stream.write_all(&exchange.start(&login.database))?;
        let mut left = LOGIN_LENGTH_MAX;
        loop {
            let kind = self.read_within(&mut left)?;
            match exchange.take(kind, &self.payload)? {
                Step::Wait => {}
                Step::Send(bytes) => self.stream.write_all(&bytes)?,
                Step::Open => {
                    self.process_id = exchange.backend.0;
                    self.server_version = exchange.server_version;
                    return Ok(());
                }
            }
        }
    }

    /// Begins TLS if wanted; gives the channel binding for the proof of the password.
    fn encrypt(&mut self, transport: &Transport) -> Result<Binding, Problem> {
        let Some(tls) = &transport.tls else { return Ok(Binding::None) };
        let is_preferred = tls.mode == TlsMode::Preferred;
        if is_preferred && self.stream.socket.socket.is_private() {
            return Ok(Binding::None);
        }
        let mut question = Vec::new();
        message::ssl_request(&mut question);
        self.stream.write_all(&question)?;
        let mut answer = [0];
        self.stream.read_exact(&mut answer)?;
        match answer {
            [b'S'] => {}
            [b'N'] if is_preferred => return Ok(Binding::None),
            [b'N'] => return Err(TlsProblem::NotOffered.into()),
            [other] => return Err(Problem::Message(other)),
        }
        let records = tls.handshake(self.endpoint.host(), &mut self.stream.socket)?;
        let certificate = records.peer_certificates().and_then(|chain| chain.first());
        let binding = certificate.map_or(Binding::None, |der| Binding::of_certificate(der));
        self.stream.link.encrypt(records);
        Ok(binding)
    }

    /// Sends the request and keeps the rows of its reply.
    fn ask(&mut self) -> Result<Rows, Problem> {
        self.stream.request(&self.request)?;
        let (mut rows, mut left) = (Vec::new(), ROWS_LENGTH_MAX);
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        loop {
            match self.read_within(&mut left)? {
                b'D' => {
                    let row = message::row(&self.payload).ok_or(Problem::Message(b'D'))?;
                    rows.push(row.into_iter().map(|value| value.map(text)).collect());
                }
                b'E' => return Err(self.refusal()),
                b'Z' => return Ok(rows),
                b'T' | b'C' | b'I' | b'N' | b'S' | b'A' | b'1' => {}
                other => return Err(Problem::Message(other)),
            }
        }
    }

    /// Parses the error in the payload and skips the rest of the reply.
    fn refusal(&mut self) -> Problem {
        let (error, mut left) = (ServerError::parse(&self.payload), ROWS_LENGTH_MAX);
        while !error.is_fatal() {
            match self.read_within(&mut left) {
                Ok(b'Z') => break,
                Ok(_) => {}
                Err(problem) => return problem,
            }
        }
        Problem::Postgres(error)
    }

    fn send_rows(&mut self, next: &mut dyn FnMut(&mut Vec<u8>) -> u64) -> Result<(), Problem> {
        self.stream.request(&self.request)?;
        let mut left = ROWS_LENGTH_MAX;
        loop {
            match self.read_within(&mut left)? {
                b'G' => break,
                b'E' => return Err(self.refusal()),
                b'N' | b'S' | b'A' => {}
                b'C' | b'Z' => return Err(Problem::NoFileWanted),
                other => return Err(Problem::Message(other)),
            }
        }
        let mut sent = 0;
        loop {
            self.request.clear();
            let mut part = 0;
            message::copy_data(&mut self.request, |out| part = next(out));
            if part == 0 {
                break;
            }
            self.send_while_heard(&mut left)?;
            sent += part;
        }
        self.request.clear();
        message::copy_done(&mut self.request);
        self.send_while_heard(&mut left)?;
        let mut taken = 0;
        loop {
            match self.read_within(&mut left)? {
                b'C' => taken = copied(&self.payload),
                b'E' => return Err(self.refusal()),
                b'Z' if taken == sent => return Ok(()),
                b'Z' => return Err(Problem::RowsLost { sent, taken, warnings: 0 }),
                b'N' | b'S' | b'A' => {}
                other => return Err(Problem::Message(other)),
            }
        }
    }

    /// Sends the request's next bytes, unless the server refuses in the middle; its notices are
    /// dropped.
    fn send_while_heard(&mut self, left: &mut usize) -> Result<(), Problem> {
        let bytes = self.stream.link.more(&self.request);
        let written = write_while_unheard(&mut self.stream.socket, bytes)?;
        let mut unsent = bytes[written..].to_vec();
        while !unsent.is_empty() {
            match self.read_within(left)? {
                b'E' => return Err(self.refusal()),
                b'N' | b'S' | b'A' => {}
                other => return Err(Problem::Message(other)),
            }
            let written = write_while_unheard(&mut self.stream.socket, &unsent)?;
            unsent.drain(..written);
        }
        Ok(())
    }

    /// Reads the next message and counts its bytes off `left`, the rest of the reply's limit.
    fn read_within(&mut self, left: &mut usize) -> Result<u8, Problem> {
        let kind = self.read_message()?;
        let length = HEADER_LENGTH + self.payload.len();
        *left = left.checked_sub(length).ok_or(Problem::Endless)?;
        Ok(kind)
    }

    /// Reads the next message's payload and gives the message's type.
    fn read_message(&mut self) -> io::Result<u8> {
        let mut header = [0; HEADER_LENGTH];
        self.stream.read_exact(&mut header)?;
        let [kind, length @ ..] = header;
        let length = u32::from_be_bytes(length);
        let Some(payload) = length.checked_sub(4).filter(|&it| it as usize <= ROWS_LENGTH_MAX)
        else {
            let text = format!("a message of type 0x{kind:02x} and length {length}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        };
        self.payload.clear();
        let mut stream = (&mut self.stream).take(payload.into());
        let read = stream.read_to_end(&mut self.payload)?;
        if read < payload as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(kind)
    }
}

/// The number of rows in the tag of a COPY, such as `COPY 1000`.
fn copied(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
    let count = tag.strip_prefix(b"COPY ").and_then(|count| str::from_utf8(count).ok());
    count.and_then(|count| count.parse().ok()).unwrap_or_default()
}
