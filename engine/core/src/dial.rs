//! A plain blocking client: opens the sessions a run loads, and does what goes before and after it.
//!
//! Connecting, preparing statements and filling tables need no reactor, and a blocking call can be read
//! from top to bottom. Sessions that are to be loaded are then handed over by [`Session::into_stream`]:
//! bytes are never read ahead, so nothing of the session stays behind here.

mod endpoint;
mod error;
pub(crate) mod frame;
mod load;
pub(crate) mod socket;

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use dbdyno_wire::mysql::login::{Credentials, Login as Exchange, LoginError, Step};
use dbdyno_wire::mysql::packet::{begin_packet, end_packet, packets_in};
use dbdyno_wire::mysql::response::{self, STATUS_MORE_RESULTS, ServerError};
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, Scanner, Summary};
use dbdyno_wire::mysql::{capability, command, lenenc, result_set};

pub use self::endpoint::{Endpoint, Login};
pub use self::error::DialError;
use self::error::Problem;
pub use self::load::FILE_NAME;
use self::socket::Socket;

/// How long a server may take to accept a session, when nothing else is asked for.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Answers of a server to one login: another plugin, a cold cache, a key and OK are four.
const LOGIN_TURNS_MAX: usize = 16;
const READ_LENGTH: usize = 16 * 1024;

/// An open session.
pub struct Session {
    socket: Socket,
    endpoint: Endpoint,
    server_version: String,
    connection_id: u32,
    deprecate_eof: bool,
    scanner: Scanner,
    request: Vec<u8>,
    payload: Vec<u8>,
}

/// Without the buffers: a login leaves its last answer in one, and that may be the password.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("endpoint", &self.endpoint)
            .field("server_version", &self.server_version)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Connects and logs in; `timeout` limits the connecting and each answer of the login.
    ///
    /// # Errors
    /// [`DialError`] when the server cannot be reached, refuses, or wants what is not known here.
    pub fn connect(
        endpoint: &Endpoint,
        login: &Login,
        timeout: Duration,
    ) -> Result<Self, DialError> {
        Self::open(endpoint, login, timeout, 0)
    }

    /// [`Self::connect`] for a session that may also [`Self::load`].
    ///
    /// # Errors
    /// The same.
    pub fn connect_loader(
        endpoint: &Endpoint,
        login: &Login,
        timeout: Duration,
    ) -> Result<Self, DialError> {
        Self::open(endpoint, login, timeout, capability::LOCAL_FILES)
    }

    fn open(
        endpoint: &Endpoint,
        login: &Login,
        timeout: Duration,
        wanted: u32,
    ) -> Result<Self, DialError> {
        let failed = |problem: Problem| DialError::session(endpoint, login, problem);
        let socket =
            Socket::connect(endpoint, timeout).map_err(|e| failed(Problem::Unreachable(e)))?;
        let mut session = Self {
            socket,
            endpoint: endpoint.clone(),
            server_version: String::new(),
            connection_id: 0,
            deprecate_eof: false,
            scanner: Scanner::new(false),
            request: Vec::new(),
            payload: Vec::new(),
        };
        session.log_in(login, wanted).map_err(failed)?;
        session.socket.wait_forever().map_err(|e| failed(Problem::Broken(e)))?;
        Ok(session)
    }

    fn log_in(&mut self, login: &Login, wanted: u32) -> Result<(), Problem> {
        let credentials = Credentials {
            user: &login.user,
            password: &login.password,
            database: &login.database,
            private: self.socket.is_private(),
        };
        let mut sequence = 0;
        frame::read_payload(&mut self.socket, &mut sequence, &mut self.payload)?;
        let (mut exchange, greeting, agreed, packet) =
            Exchange::begin_wanting(credentials, &self.payload, wanted)?;
        self.connection_id = greeting.connection_id;
        self.server_version = version_of(&greeting.server_version).to_owned();
        self.deprecate_eof = agreed & capability::DEPRECATE_EOF != 0;
        self.scanner = Scanner::new(self.deprecate_eof);
        self.socket.write_all(&packet)?;
        sequence = sequence.wrapping_add(1);
        for _ in 0..LOGIN_TURNS_MAX {
            frame::read_payload(&mut self.socket, &mut sequence, &mut self.payload)?;
            match exchange.take(&self.payload)? {
                Step::Done => return Ok(()),
                Step::Wait => {}
                Step::Send(payload) => sequence = self.send_payload(&payload, sequence)?,
            }
        }
        Err(Problem::Login(LoginError::Endless))
    }

    fn send_payload(&mut self, payload: &[u8], sequence: u8) -> io::Result<u8> {
        self.request.clear();
        let start = begin_packet(&mut self.request, sequence);
        self.request.extend_from_slice(payload);
        let next = end_packet(&mut self.request, start);
        self.socket.write_all(&self.request)?;
        Ok(next)
    }

    /// The server's version, as the server spells it.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// The server's number for this session, by which another one can `KILL` it.
    #[must_use]
    pub const fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// Whether `CLIENT_DEPRECATE_EOF` was agreed: the scanner of this session must know.
    #[must_use]
    pub const fn deprecate_eof(&self) -> bool {
        self.deprecate_eof
    }

    /// Runs a statement and gives all its rows as text; `None` is NULL.
    ///
    /// # Errors
    /// [`DialError`] when the server refuses, or the session broke.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DialError> {
        self.request.clear();
        command::query(&mut self.request, sql);
        self.read_rows().map_err(|problem| self.failed(sql, problem))
    }

    /// Runs a statement and gives the number of rows it changed.
    ///
    /// # Errors
    /// [`DialError`] when the server refuses, or the session broke.
    pub fn execute(&mut self, sql: &str) -> Result<u64, DialError> {
        self.request.clear();
        command::query(&mut self.request, sql);
        let summary = self.exchange(ReplyShape::Text);
        summary.map(|done| done.affected_rows).map_err(|problem| self.failed(sql, problem))
    }

    /// Prepares a statement and gives the number to execute it by.
    ///
    /// # Errors
    /// [`DialError`] when the server refuses, or the session broke.
    pub fn prepare(&mut self, sql: &str) -> Result<u32, DialError> {
        self.request.clear();
        command::statement_prepare(&mut self.request, sql);
        self.exchange(ReplyShape::Prepare).map_err(|problem| self.failed(sql, problem))?;
        Ok(self.scanner.statement_id())
    }

    /// Hands the session over: a blocking descriptor with no byte of it left here.
    #[must_use]
    pub fn into_stream(self) -> OwnedFd {
        self.socket.into()
    }

    /// Takes leave. What goes wrong now no longer matters: the session ends in any case.
    pub fn quit(mut self) {
        self.request.clear();
        command::quit(&mut self.request);
        drop(self.socket.write_all(&self.request));
    }

    fn failed(&self, statement: &str, problem: Problem) -> DialError {
        DialError::statement(&self.endpoint, statement, problem)
    }

    /// Sends the request and follows its reply to the end.
    fn exchange(&mut self, shape: ReplyShape) -> Result<Summary, Problem> {
        self.socket.write_all(&self.request)?;
        self.scanner.begin_at(shape, packets_in(self.request.len()));
        let mut buffer = [0; READ_LENGTH];
        loop {
            let length = self.socket.read(&mut buffer)?;
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
        self.socket.write_all(&self.request)?;
        let (mut rows, mut sequence) = (Vec::new(), packets_in(self.request.len()));
        loop {
            self.next_payload(&mut sequence)?;
            let status = match self.payload.first() {
                Some(&response::OK) => response::Ok::parse(&self.payload)?.status,
                Some(&lenenc::NULL) => return Err(Problem::LocalInfile),
                _ => self.read_result(&mut sequence, &mut rows)?,
            };
            if status & STATUS_MORE_RESULTS == 0 {
                return Ok(rows);
            }
        }
    }

    /// Reads a result set whose first payload is there; gives the status at its end.
    fn read_result(
        &mut self,
        sequence: &mut u8,
        rows: &mut Vec<Vec<Option<String>>>,
    ) -> Result<u16, Problem> {
        let columns = result_set::parse_column_count(&self.payload)?;
        let definitions = columns.saturating_add(u64::from(!self.deprecate_eof));
        for _ in 0..definitions {
            self.next_payload(sequence)?;
        }
        loop {
            self.next_payload(sequence)?;
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

    fn next_payload(&mut self, sequence: &mut u8) -> Result<(), Problem> {
        frame::read_payload(&mut self.socket, sequence, &mut self.payload)?;
        if self.payload.first() == Some(&response::ERR) {
            return Err(Problem::Server(ServerError::parse(&self.payload)?));
        }
        Ok(())
    }
}

/// MariaDB before 11 says `5.5.5-10.6.1-MariaDB`, to pass the checks of old replicas.
fn version_of(spelled: &str) -> &str {
    match spelled.strip_prefix("5.5.5-") {
        Some(own) if own.starts_with(|first: char| first.is_ascii_digit()) => own,
        _ => spelled,
    }
}
