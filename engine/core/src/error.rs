//! Why a run could not begin or ended early: [`Failure`], and MySQL's codes for lost connections.

use serde::Serialize;

/// A run or a load that failed, in the server's or the system's words.
#[derive(Clone, Debug, Serialize, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {}{message}", coded(*code))]
pub struct Failure {
    /// What was being done: `spec`, `limits`, `connect`, `prepare`, `run`, `load`.
    pub stage: &'static str,
    /// The server's error code, or the client library's number for a lost connection (2013).
    pub code: Option<u16>,
    /// The server's SQL state; empty if the server did not speak.
    pub sqlstate: String,
    /// What happened.
    pub message: String,
    /// The server's own words in it; empty if the server did not speak.
    pub server_message: String,
    /// The statement that failed, as far as known.
    pub statement: String,
}

/// What MySQL's own client library calls a connection lost during a query.
pub const CONNECTION_LOST: u16 = 2013;

/// What MySQL's own client library calls a server that cannot be reached.
pub const CANNOT_CONNECT: u16 = 2003;

/// Whether an error with this code means that the connection is gone: the four of MySQL's client library
/// after which sysbench connects again.
#[must_use]
pub const fn is_loss(code: u16) -> bool {
    matches!(code, 2006 | 2011 | CONNECTION_LOST | 2055)
}

impl Failure {
    /// A failure without a server's code.
    #[must_use]
    pub fn new(stage: &'static str, message: impl Into<String>) -> Self {
        Self {
            stage,
            code: None,
            sqlstate: String::new(),
            message: message.into(),
            server_message: String::new(),
            statement: String::new(),
        }
    }

    /// The connection went away while `statement` waited for its reply.
    #[must_use]
    pub fn connection_lost(statement: &str, why: &str) -> Self {
        Self {
            code: Some(CONNECTION_LOST),
            statement: statement.to_owned(),
            ..Self::new("run", format!("lost connection to the server during a query: {why}"))
        }
    }
}

fn coded(code: Option<u16>) -> String {
    code.map_or_else(String::new, |code| format!("error {code}: "))
}
