//! Where statements go: a session with a server, or a test's notebook.

use crate::dial::{CONNECT_TIMEOUT, Endpoint, Login, Session, Transport};
use crate::error::Failure;

/// Runs one statement after the other.
pub(super) trait Target {
    /// Runs `sql` and waits for its end.
    ///
    /// # Errors
    /// What the server refused, in its words.
    fn execute(&mut self, sql: &str) -> Result<(), Failure>;
}

/// Opens a session.
pub(super) type Connect<'a> = dyn Fn() -> Result<Box<dyn Target>, Failure> + Sync + 'a;

impl Target for Session {
    fn execute(&mut self, sql: &str) -> Result<(), Failure> {
        Self::execute(self, sql).map(drop).map_err(|error| Failure::refused("load", sql, &error))
    }
}

/// Logs in at `endpoint`.
pub(super) fn connect(
    endpoint: &Endpoint,
    login: &Login,
    transport: &Transport,
) -> Result<Box<dyn Target>, Failure> {
    match Session::connect_over(endpoint, login, transport, CONNECT_TIMEOUT) {
        Ok(session) => Ok(Box::new(session)),
        Err(error) => Err(Failure::refused("connect", "", &error)),
    }
}
