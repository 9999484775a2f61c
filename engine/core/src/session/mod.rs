//! Blocking clients: open the sessions of a run, prepare statements, fill tables.
//!
//! [`Session`] is the client of MySQL, [`PostgresSession`] of PostgreSQL; [`replies`] follows both
//! in the event loop. Set-up needs no reactor, and blocking calls are easier to read. A session for
//! the reactor is handed over by [`Session::into_stream`], together with its link, which holds the
//! bytes read ahead.

mod endpoint;
mod entry;
mod error;
pub(crate) mod frame;
pub mod link;
mod load;
mod postgres;
pub mod replies;
pub(crate) mod socket;
pub(crate) mod stream;
mod timeouts;
pub mod tls;

use std::fmt;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use dbdyno_wire::kept::Kept;
use dbdyno_wire::mysql::packet::{HEADER_LENGTH, packets_in};
use dbdyno_wire::mysql::response::{self, STATUS_MORE_RESULTS, ServerError};
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, Scanner, Summary};
use dbdyno_wire::mysql::{capability, command, lenenc, result_set};

pub use self::endpoint::{Endpoint, Login, Transport, password_in_file};
use self::error::Problem;
pub use self::error::{SessionError, Trouble, advice_in_run};
pub use self::load::FILE_NAME;
pub use self::postgres::PostgresSession;
use self::socket::Socket;
use self::stream::{Stream, WatchedSocket};
use self::timeouts::Clock;
pub use self::timeouts::Timeouts;
use crate::session::link::{Link, keep};

/// Default time limit of connect and login together.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_LENGTH: usize = 16 * 1024;
/// Default limit of a server's silence during a statement.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Most bytes kept of an answer; all settings and counters of a server are some 100 KB.
const ROWS_LENGTH_MAX: usize = 8 << 20;
/// Most bytes kept of a login, done by thousands of connections; each keeps the server's version.
const LOGIN_LENGTH_MAX: usize = 16 << 10;
/// Most columns of a result; MySQL's own limit is 4096.
const COLUMNS_MAX: u64 = 0xffff;

/// An open session.
pub struct Session {
    stream: Stream,
    endpoint: Endpoint,
    server_version: String,
    connection_id: u32,
    deprecate_eof: bool,
    scanner: Scanner,
    request: Vec<u8>,
    payload: Vec<u8>,
}

/// Error of a statement from a script.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The server refused it.
    Server(ServerError),
    /// The session is broken, with the reason.
    Lost(String),
}

/// Omits the buffers: a login's last answer stays in a buffer and may be the password.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("endpoint", &self.endpoint)
            .field("server_version", &self.server_version)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Connects and logs in, without TLS or compression; `timeout` limits both together.
    ///
    /// # Errors
    /// [`SessionError`] when the server cannot be reached, refuses, or wants an unknown login.
    pub fn connect(
        endpoint: &Endpoint,
        login: &Login,
        timeout: Duration,
    ) -> Result<Self, SessionError> {
        Self::connect_over(endpoint, login, &Transport::default(), &Timeouts::of_login(timeout))
    }

    /// Connects and logs in as `transport` asks, within the limits of `timeouts`.
    ///
    /// # Errors
    /// As [`Self::connect`], and when TLS or compression cannot be had as asked.
    pub fn connect_over(
        endpoint: &Endpoint,
        login: &Login,
        transport: &Transport,
        timeouts: &Timeouts,
    ) -> Result<Self, SessionError> {
        Self::open(endpoint, login, transport, timeouts, 0)
    }

    /// As [`Self::connect_over`], and the session may [`Self::load`].
    ///
    /// # Errors
    /// As [`Self::connect_over`].
    pub fn connect_loader(
        endpoint: &Endpoint,
        login: &Login,
        transport: &Transport,
        timeouts: &Timeouts,
    ) -> Result<Self, SessionError> {
        Self::open(endpoint, login, transport, timeouts, capability::LOCAL_FILES)
    }

    /// As [`Self::connect_over`], and a query text may hold several statements.
    ///
    /// # Errors
    /// As [`Self::connect_over`].
    pub(crate) fn connect_script(
        endpoint: &Endpoint,
        login: &Login,
        transport: &Transport,
        timeouts: &Timeouts,
    ) -> Result<Self, SessionError> {
        Self::open(endpoint, login, transport, timeouts, capability::MULTI_STATEMENTS)
    }

    fn open(
        endpoint: &Endpoint,
        login: &Login,
        transport: &Transport,
        timeouts: &Timeouts,
        wanted: u32,
    ) -> Result<Self, SessionError> {
        let failed = |problem: Problem| SessionError::session(endpoint, login, problem);
        let clock = Clock::start(timeouts);
        let socket =
            Socket::connect(endpoint, &clock).map_err(|e| failed(Problem::Unreachable(e)))?;
        let mut stream = Stream::new(WatchedSocket { socket, clock });
        let entered =
            entry::enter(&mut stream, endpoint, login, transport, wanted).map_err(failed)?;
        stream.socket.clock.logged_in();
        let is_compressed = stream.link.is_compressed();
        Ok(Self {
            stream,
            endpoint: endpoint.clone(),
            server_version: entered.server_version,
            connection_id: entered.connection_id,
            deprecate_eof: entered.deprecate_eof,
            scanner: Scanner::new(entered.deprecate_eof).of_any_number(is_compressed),
            request: Vec::new(),
            payload: Vec::new(),
        })
    }

    /// The server's version, as the server spells it.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// The server's number for this session, for a `KILL` from another session.
    #[must_use]
    pub const fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// True if `CLIENT_DEPRECATE_EOF` was agreed; the session's scanner must know.
    #[must_use]
    pub const fn deprecate_eof(&self) -> bool {
        self.deprecate_eof
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
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, SessionError> {
        self.request.clear();
        command::query(&mut self.request, sql);
        self.read_rows().map_err(|problem| self.failed(sql, problem))
    }

    /// Runs a statement and gives the number of rows it changed.
    ///
    /// # Errors
    /// [`SessionError`] when the server refuses, or the session broke.
    pub fn execute(&mut self, sql: &str) -> Result<u64, SessionError> {
        self.request.clear();
        command::query(&mut self.request, sql);
        let summary = self.exchange(ReplyShape::Text);
        summary.map(|done| done.affected_rows).map_err(|problem| self.failed(sql, problem))
    }

    /// Prepares a statement and gives the number to execute it by.
    ///
    /// # Errors
    /// [`SessionError`] when the server refuses, or the session broke.
    pub fn prepare(&mut self, sql: &str) -> Result<u32, SessionError> {
        self.request.clear();
        command::statement_prepare(&mut self.request, sql);
        self.exchange(ReplyShape::Prepare).map_err(|problem| self.failed(sql, problem))?;
        Ok(self.scanner.statement_id())
    }

    /// Sends the packets of a request; gives the reply's summary and the number of the statement
    /// prepared, if any. The packets of a reply with rows are appended to `kept`.
    ///
    /// # Errors
    /// [`Refusal`] when the server refuses, or the session broke.
    pub(crate) fn exchange_keeping(
        &mut self,
        request: &[u8],
        shape: ReplyShape,
        kept: &mut Kept,
    ) -> Result<(Summary, u32), Refusal> {
        let lost = |problem: Problem| match problem {
            Problem::Server(error) => Refusal::Server(error),
            other => Refusal::Lost(other.to_string()),
        };
        self.stream.request(request).map_err(|error| lost(error.into()))?;
        self.scanner.begin_at(shape, packets_in(request.len()));
        let mut buffer = [0; READ_LENGTH];
        loop {
            let length = self.stream.read(&mut buffer).map_err(|error| lost(error.into()))?;
            if length == 0 {
                return Err(lost(Problem::closed()));
            }
            if shape == ReplyShape::Text {
                keep(kept, &buffer[..length]).map_err(|error| Refusal::Lost(error.to_string()))?;
            }
            match self.scanner.feed(&buffer[..length]).map_err(|error| lost(error.into()))? {
                Some(Outcome::Done(summary)) => return Ok((summary, self.scanner.statement_id())),
                Some(Outcome::Failed(error)) => return Err(Refusal::Server(error)),
                None => {}
            }
        }
    }

    /// Sends a packet without a reply. A broken session reports the error at the next request.
    pub(crate) fn send_unanswered(&mut self, packet: &[u8]) {
        drop(self.stream.request(packet));
    }

    /// Hands the session over: a blocking socket, and its compression and TLS.
    #[must_use]
    pub fn into_stream(self) -> (OwnedFd, Link) {
        (self.stream.socket.socket.into(), self.stream.link)
    }

    /// Logs out. Errors no longer matter: the session ends in any case.
    pub fn quit(mut self) {
        drop(self.stream.request(command::QUIT_PACKET));
    }

    fn failed(&self, statement: &str, problem: Problem) -> SessionError {
        SessionError::statement(&self.endpoint, statement, problem)
    }

    /// Sends the request and follows its reply to the end.
    fn exchange(&mut self, shape: ReplyShape) -> Result<Summary, Problem> {
        self.stream.request(&self.request)?;
        self.scanner.begin_at(shape, packets_in(self.request.len()));
        let mut buffer = [0; READ_LENGTH];
        loop {
            let length = self.stream.read(&mut buffer)?;
            if length == 0 {
                return Err(Problem::closed());
            }
            match self.scanner.feed(&buffer[..length])? {
                Some(Outcome::Done(summary)) => return Ok(summary),
                Some(Outcome::Failed(error)) => return Err(Problem::Server(error)),
                None => {}
            }
        }
    }

    /// Sends the request and keeps the rows of its reply, of all its results.
    fn read_rows(&mut self) -> Result<Vec<Vec<Option<String>>>, Problem> {
        self.stream.request(&self.request)?;
        let (mut rows, mut sequence) = (Vec::new(), packets_in(self.request.len()));
        let mut left = ROWS_LENGTH_MAX;
        loop {
            self.next_part(&mut sequence, &mut left)?;
            let status = match self.payload.first() {
                Some(&response::OK) => response::Ok::parse(&self.payload)?.status,
                Some(&lenenc::NULL) => return Err(Problem::LocalInfile),
                _ => self.read_result(&mut sequence, &mut left, &mut rows)?,
            };
            if status & STATUS_MORE_RESULTS == 0 {
                return Ok(rows);
            }
        }
    }

    /// Reads the rest of a result set after its first payload; gives the status at its end.
    fn read_result(
        &mut self,
        sequence: &mut u8,
        left: &mut usize,
        rows: &mut Vec<Vec<Option<String>>>,
    ) -> Result<u16, Problem> {
        let columns = result_set::parse_column_count(&self.payload)?;
        if columns > COLUMNS_MAX {
            return Err(Problem::Columns(columns));
        }
        for _ in 0..columns + u64::from(!self.deprecate_eof) {
            self.next_part(sequence, left)?;
        }
        loop {
            self.next_part(sequence, left)?;
            let first = self.payload.first().copied().unwrap_or_default();
            if response::ends_rows(first, self.payload.len(), self.deprecate_eof) {
                return Ok(if self.deprecate_eof {
                    response::Ok::parse(&self.payload)?.status
                } else {
                    response::parse_eof(&self.payload)?
                });
            }
            let row = result_set::parse_text_row(&self.payload, columns as usize)?;
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            rows.push(row.into_iter().map(|value| value.map(text)).collect());
        }
    }

    /// Reads the next payload of an answer, at most `left` bytes, and counts it off.
    fn next_part(&mut self, sequence: &mut u8, left: &mut usize) -> Result<(), Problem> {
        self.next_payload(sequence)?;
        let length = HEADER_LENGTH + self.payload.len();
        *left = left.checked_sub(length).ok_or(Problem::Endless)?;
        Ok(())
    }

    fn next_payload(&mut self, sequence: &mut u8) -> Result<(), Problem> {
        if self.stream.link.is_compressed() {
            frame::read_payload_of_any_number(
                &mut self.stream,
                ROWS_LENGTH_MAX,
                &mut self.payload,
            )?;
        } else {
            frame::read_payload(&mut self.stream, sequence, ROWS_LENGTH_MAX, &mut self.payload)?;
        }
        if self.payload.first() == Some(&response::ERR) {
            return Err(Problem::Server(ServerError::parse(&self.payload)?));
        }
        Ok(())
    }
}
