//! Why a run could not begin or ended early: [`Failure`]; how errors are named: [`ErrorCode`].

use std::fmt;

use dbdyno_wire::mysql::response::ServerError;
use serde::{Deserialize, Serialize};

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

/// What an error is called: the number of MySQL's, the SQLSTATE of a server without numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "SpelledCode")]
pub enum ErrorCode {
    /// Such as 1213 for a deadlock.
    Number(u16),
    /// Such as 40P01 for a deadlock.
    State([u8; 5]),
    /// What a script counts as an error itself.
    Script,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SpelledCode {
    Number(u16),
    State(String),
}

impl TryFrom<SpelledCode> for ErrorCode {
    type Error = String;

    fn try_from(code: SpelledCode) -> Result<Self, String> {
        match code {
            SpelledCode::Number(number) => Ok(Self::Number(number)),
            SpelledCode::State(text) => match text.as_bytes().try_into() {
                Ok(state) => Ok(Self::State(state)),
                Err(_) => Err(format!("{text:?} is no SQLSTATE, which has five characters")),
            },
        }
    }
}

impl ErrorCode {
    /// What a server's error is called.
    #[must_use]
    pub const fn of(error: &ServerError) -> Self {
        if error.code == 0 { Self::State(error.sqlstate) } else { Self::Number(error.code) }
    }

    /// Whether it means that the connection is gone.
    #[must_use]
    pub fn is_loss(self) -> bool {
        match self {
            Self::Number(number) => is_loss(number),
            Self::State(state) => {
                state.starts_with(b"08") || matches!(&state, b"57P01" | b"57P02" | b"57P03")
            }
            Self::Script => false,
        }
    }
}

impl From<u16> for ErrorCode {
    fn from(number: u16) -> Self {
        Self::Number(number)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::State(state) => String::from_utf8_lossy(state).fmt(f),
            Self::Script => f.write_str("script"),
        }
    }
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

    /// What the error is called, if a server or a client library gave it a name.
    #[must_use]
    pub fn error_code(&self) -> Option<ErrorCode> {
        let state = || self.sqlstate.as_bytes().try_into().ok().map(ErrorCode::State);
        self.code.map(ErrorCode::Number).or_else(state)
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
