//! The connections of a script's thread, by number: sessions, prepared statements and last answers.

use super::protocol::ScriptSession;
use super::results::{ResultSpan, next_row, packet, result_at, result_of_postgres_at};
use super::task::SqlResult;
use crate::driver::Driver;
use crate::error::Failure;
use crate::session::link::Link;
use crate::session::{Endpoint, PostgresSession, Session, Timeouts, Transport};
use crate::spec::DatabaseSpec;
use dbdyno_wire::kept::Kept;
use dbdyno_wire::mysql::result_set;
use dbdyno_wire::postgres::message;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

/// Opens the connections of all threads of a script, in turn to each server.
pub(super) struct Database {
    pub(super) spec: DatabaseSpec,
    transport: Transport,
    timeouts: Timeouts,
    pub(super) next: AtomicU32,
    /// Set at the end of the run, or when a thread of the command has failed: waits for servers
    /// end.
    pub(super) is_over: Arc<AtomicBool>,
}

impl Database {
    /// # Errors
    /// A certificate or key is unusable.
    pub(super) fn new(spec: DatabaseSpec) -> Result<Self, Failure> {
        let transport = spec.transport()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let login = Timeouts::of_login(Duration::from_secs_f64(spec.connect_timeout_s));
        let timeouts = Timeouts { given_up: Arc::clone(&is_over), ..login };
        Ok(Self { spec, transport, timeouts, next: AtomicU32::new(0), is_over })
    }

    pub(super) fn open(&self, endpoint: &Endpoint) -> Result<ScriptSession, Failure> {
        let (login, transport, timeouts) = (self.spec.login(), &self.transport, &self.timeouts);
        match self.spec.driver {
            Driver::Mysql => Session::connect_script(endpoint, &login, transport, timeouts)
                .map(ScriptSession::Mysql),
            Driver::Pgsql => PostgresSession::connect(endpoint, &login, transport, timeouts)
                .map(ScriptSession::Pgsql),
        }
        .map_err(|error| error.into_failure("connect", ""))
    }
}

/// A connection of the script.
pub(super) struct Open {
    pub(super) endpoint: Endpoint,
    /// Absent in a dry run, after closing, and while the loop has it.
    pub(super) session: Option<ScriptSession>,
    pub(super) statements: Vec<Prepared>,
    /// Numbers of closed statements, to be used again.
    pub(super) closed: Vec<u32>,
    /// Packets without an answer, sent with its next request in the loop.
    pub(super) unanswered: Vec<u8>,
    /// The packets of the last answer; rows are read from here.
    pub(super) reply: Kept,
    /// Start of the next row in it, and its number.
    pub(super) row: (usize, u32),
    /// The result being read, and the number of results after it.
    pub(super) result: ResultSpan,
    pub(super) more: u32,
    pub(super) deprecate_eof: bool,
    pub(super) sql_state: CString,
    pub(super) message: CString,
}

/// A statement, prepared or sent as text.
pub(super) struct Prepared {
    pub(super) sql: Vec<u8>,
    /// The server's number; absent for text.
    pub(super) id: Option<u32>,
}

/// A session passed to the engine's loop.
pub(crate) struct HandedOver {
    pub(crate) socket: OwnedFd,
    pub(crate) link: Link,
    pub(crate) driver: Driver,
    pub(crate) deprecate_eof: bool,
    pub(crate) server_version: String,
}

/// All connections of a script's thread, by number.
pub(super) struct Connections {
    pub(super) database: Arc<Database>,
    pub(super) open: Vec<Open>,
    /// Numbers of closed connections without a handle.
    pub(super) free: Vec<u32>,
    /// The result of each connection; scripts may hold references to it until their state is
    /// closed.
    #[expect(clippy::vec_box, reason = "the addresses stay")]
    pub(super) shown: Vec<Box<SqlResult>>,
    pub(super) request: Vec<u8>,
}

impl Connections {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database, open: vec![], free: vec![], shown: vec![], request: vec![] }
    }

    /// The only open connection, if exactly one is open: the loop can drive it.
    pub(super) fn only(&self) -> Option<u32> {
        let mut live = (1..).zip(&self.open).filter(|(_, one)| one.session.is_some());
        match (live.next(), live.next()) {
            (Some((number, _)), None) => Some(number),
            _ => None,
        }
    }

    /// Takes out the session of connection `number`.
    pub(super) fn hand_over(&mut self, number: u32) -> Option<HandedOver> {
        let open = self.open.get_mut(place(number))?;
        let session = open.session.take()?;
        let (driver, deprecate_eof) = (self.database.spec.driver, session.deprecate_eof());
        let (version, (socket, link)) = match session {
            ScriptSession::Mysql(it) => (it.server_version().to_owned(), it.into_stream()),
            ScriptSession::Pgsql(it) => (it.server_version().to_owned(), it.into_stream()),
        };
        Some(HandedOver { socket, link, driver, deprecate_eof, server_version: version })
    }

    /// Buffer for the answers of connection `number`.
    pub(super) fn reply(&mut self, number: u32) -> &mut Kept {
        let open = &mut self.open[place(number)];
        &mut open.reply
    }

    /// Resets connection `number` for a new session: `deprecate_eof` as negotiated, no prepared
    /// statements.
    pub(super) fn renewed(&mut self, number: u32, deprecate_eof: bool) {
        let open = &mut self.open[place(number)];
        open.deprecate_eof = deprecate_eof;
        open.statements.clear();
        open.closed.clear();
        open.unanswered.clear();
    }

    /// Closes connection `number`.
    pub(super) fn close(&mut self, number: u32) {
        if let Some(session) = self.open.get_mut(place(number)).and_then(|one| one.session.take()) {
            session.quit();
        }
    }

    /// Frees the number of a closed connection for another.
    pub(super) fn forget(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Values of the next row of the last answer.
    pub(super) fn next_row(&mut self, number: u32) -> Option<Vec<Option<&[u8]>>> {
        let shown = self.shown.get_mut(place(number))?;
        if shown.counter >= shown.nrows {
            return None;
        }
        let index = shown.counter;
        shown.counter += 1;
        let driver = self.database.spec.driver;
        let open = self.open.get_mut(place(number))?;
        if driver == Driver::Pgsql {
            let start = if index == 0 { open.result.start } else { open.row.0 };
            let (payload, next) = next_row(&open.reply, start)?;
            open.row = (next, index + 1);
            return message::row(payload);
        }
        if index == 0 {
            open.row = (open.first_row()?, 0);
        }
        let (payload, next) = packet(&open.reply, open.row.0)?;
        open.row = (next, index + 1);
        result_set::parse_text_row(payload, open.result.columns).ok()
    }
}

impl Open {
    /// Number of the next prepared statement.
    pub(super) fn next_statement(&self) -> u32 {
        let new = u32::try_from(self.statements.len()).expect("statements are counted in 32 bits");
        self.closed.last().copied().unwrap_or(new)
    }

    /// Stores a statement under the next number.
    pub(super) fn keep_statement(&mut self, prepared: Prepared) {
        match self.closed.pop() {
            Some(number) => self.statements[number as usize] = prepared,
            None => self.statements.push(prepared),
        }
    }

    /// Goes on to the result that begins at `start`; to an empty result if it is unreadable.
    pub(super) fn go_to_result(&mut self, driver: Driver, start: usize) {
        let found = match driver {
            Driver::Mysql => result_at(&self.reply, start, self.deprecate_eof),
            Driver::Pgsql => result_of_postgres_at(&self.reply, start),
        };
        self.result = found.unwrap_or_default();
    }

    /// Start of the answer's rows: behind the number of columns and their definitions.
    fn first_row(&self) -> Option<usize> {
        let mut at = self.result.start;
        for _ in 0..=self.result.columns + usize::from(!self.deprecate_eof) {
            at = packet(&self.reply, at)?.1;
        }
        Some(at)
    }
}

/// Index of connection `number`, counted from 1, in a list; beyond any list for 0.
pub(super) const fn place(number: u32) -> usize {
    (number as usize).wrapping_sub(1)
}
