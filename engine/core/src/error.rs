//! Failures of runs and loads ([`Failure`]), names of errors ([`ErrorCode`]), and their words on a
//! terminal ([`printable`]).

use std::fmt;

use dbdyno_wire::mysql::response::ServerError;
use serde::{Deserialize, Serialize};

/// Failure of a run or a load, in the server's or the system's words.
#[derive(Clone, Debug, Serialize, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {}{message}", coded(*code))]
pub struct Failure {
    /// Stage: `spec`, `limits`, `connect`, `prepare`, `run`, `load`.
    pub stage: &'static str,
    /// The server's error code, or the client library's number for a lost connection (2013).
    pub code: Option<u16>,
    /// SQLSTATE; empty without an answer of the server.
    pub sqlstate: String,
    /// Full message.
    pub message: String,
    /// The failed statement, if known.
    pub statement: String,
    /// The server's part, if it is known which server failed, or what it said.
    #[serde(flatten)]
    pub server: Option<Box<ServerPart>>,
}

/// A server's part in a failure.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct ServerPart {
    /// Its address; empty for the only server of a run, once the run has begun.
    pub server: String,
    /// Its words; empty without an answer.
    pub server_message: String,
    /// The error as PostgreSQL's client library prints it, in several lines; empty for MySQL.
    pub client_message: String,
}

/// Code of MySQL's client library for a connection lost during a query.
pub const CONNECTION_LOST: u16 = 2013;

/// Code of MySQL's client library for an unreachable server.
pub const CANNOT_CONNECT: u16 = 2003;

/// True for a code of a lost connection: the four of MySQL's client library after which sysbench
/// reconnects.
#[must_use]
pub const fn is_loss(code: u16) -> bool {
    matches!(code, 2006 | 2011 | CONNECTION_LOST | 2055)
}

/// Name of an error: MySQL's number, or the SQLSTATE of a server without numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "SpelledCode")]
pub enum ErrorCode {
    /// For example 1213 for a deadlock.
    Number(u16),
    /// For example 40P01 for a deadlock.
    State([u8; 5]),
    /// Error counted by a script itself.
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
    /// Name of a server's error.
    #[must_use]
    pub const fn of(error: &ServerError) -> Self {
        if error.code == 0 { Self::State(error.sqlstate) } else { Self::Number(error.code) }
    }

    /// True if the connection is lost.
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
    /// Failure without a server's code.
    #[must_use]
    pub fn new(stage: &'static str, message: impl Into<String>) -> Self {
        Self {
            stage,
            code: None,
            sqlstate: String::new(),
            message: message.into(),
            statement: String::new(),
            server: None,
        }
    }

    /// The server's own words; empty without an answer of the server.
    #[must_use]
    pub fn server_message(&self) -> &str {
        self.server.as_ref().map_or("", |part| &part.server_message)
    }

    /// Name of the error, if a server or a client library gave a code.
    #[must_use]
    pub fn error_code(&self) -> Option<ErrorCode> {
        let state = || self.sqlstate.as_bytes().try_into().ok().map(ErrorCode::State);
        self.code.map(ErrorCode::Number).or_else(state)
    }
}

/// A text without what steers a terminal, as it may quote a server: a blank stands for each control
/// character but tab and line feed, and for each unseen sign that changes how others are shown.
#[must_use]
pub fn printable(text: &str) -> String {
    let steers = |sign: char| match sign {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => sign.is_control(),
    };
    text.chars().map(|sign| if steers(sign) { ' ' } else { sign }).collect()
}

fn coded(code: Option<u16>) -> String {
    code.map_or_else(String::new, |code| format!("error {code}: "))
}
