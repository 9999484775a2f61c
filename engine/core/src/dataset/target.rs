//! Destination of a load's statements: a session with a server, or a fake in tests.

use std::time::Duration;

use crate::driver::Driver;
use crate::error::Failure;
use crate::session::{Endpoint, Login, PostgresSession, Session, Timeouts, Transport};

/// Executor of statements, one after the other.
pub(super) trait Target {
    /// Runs `sql` to its end.
    ///
    /// # Errors
    /// The server's refusal, in its words.
    fn execute(&mut self, sql: &str) -> Result<(), Failure>;

    /// Limits the server's silence from now on; None for no limit.
    fn limit_silence(&mut self, limit: Option<Duration>);

    /// The server's connection id.
    fn connection_id(&self) -> u32;

    /// Has the server end the pending statement of another session.
    ///
    /// # Errors
    /// The server's refusal, in its words.
    fn end_statement(&mut self, connection_id: u32) -> Result<(), Failure> {
        self.execute(&format!("KILL QUERY {connection_id}"))
    }

    /// Tests if the server takes files from its clients.
    ///
    /// # Errors
    /// The server's refusal to answer.
    fn takes_files(&mut self) -> Result<bool, Failure>;

    /// Runs `sql` and streams the file it asks for, see [`Session::load`] and
    /// [`PostgresSession::copy`].
    ///
    /// # Errors
    /// The server's refusal, in its words; the session is then unusable.
    fn load(&mut self, sql: &str, next: &mut dyn FnMut(&mut Vec<u8>) -> u64)
    -> Result<(), Failure>;
}

/// Opens a session with timeouts; its number selects the server among several.
pub(super) type Connect<'a> =
    dyn Fn(u32, &Timeouts) -> Result<Box<dyn Target>, Failure> + Sync + 'a;

impl Target for Session {
    fn execute(&mut self, sql: &str) -> Result<(), Failure> {
        Self::execute(self, sql).map(drop).map_err(|error| error.into_failure("load", sql))
    }

    fn limit_silence(&mut self, limit: Option<Duration>) {
        Self::limit_silence(self, limit);
    }

    fn connection_id(&self) -> u32 {
        Self::connection_id(self)
    }

    fn takes_files(&mut self) -> Result<bool, Failure> {
        let answer = self.query(TAKES_FILES);
        let rows = answer.map_err(|error| error.into_failure("load", TAKES_FILES))?;
        let value = rows.first().and_then(|row| row.first()?.as_deref());
        Ok(matches!(value, Some("1" | "ON")))
    }

    fn load(
        &mut self,
        sql: &str,
        next: &mut dyn FnMut(&mut Vec<u8>) -> u64,
    ) -> Result<(), Failure> {
        Self::load(self, sql, next).map_err(|error| error.into_failure("load", sql))
    }
}

impl Target for PostgresSession {
    fn execute(&mut self, sql: &str) -> Result<(), Failure> {
        self.query(sql).map(drop).map_err(|error| error.into_failure("load", sql))
    }

    fn limit_silence(&mut self, limit: Option<Duration>) {
        Self::limit_silence(self, limit);
    }

    fn connection_id(&self) -> u32 {
        self.process_id()
    }

    fn end_statement(&mut self, connection_id: u32) -> Result<(), Failure> {
        self.execute(&format!("SELECT pg_cancel_backend({connection_id})"))
    }

    fn takes_files(&mut self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn load(
        &mut self,
        sql: &str,
        next: &mut dyn FnMut(&mut Vec<u8>) -> u64,
    ) -> Result<(), Failure> {
        self.copy(sql, next).map_err(|error| error.into_failure("load", sql))
    }
}

const TAKES_FILES: &str = "SELECT @@GLOBAL.local_infile";

/// Logs in at `endpoint` to load.
pub(super) fn connect(
    driver: Driver,
    endpoint: &Endpoint,
    login: &Login,
    transport: &Transport,
    timeouts: &Timeouts,
) -> Result<Box<dyn Target>, Failure> {
    let session: Result<Box<dyn Target>, _> = match driver {
        Driver::Mysql => Session::connect_loader(endpoint, login, transport, timeouts)
            .map(|session| Box::new(session) as Box<dyn Target>),
        Driver::Pgsql => PostgresSession::connect(endpoint, login, transport, timeouts)
            .map(|session| Box::new(session) as Box<dyn Target>),
    };
    session.map_err(|error| error.into_failure("connect", ""))
}
