//! What the reference server shall do: every behaviour that a test wants to find again in a record.

use std::time::Duration;

use super::service::{Service, Slowdown, Stall, Workers};

/// The planned behaviour of a [`super::Reference`].
#[derive(Clone, Debug)]
pub struct Script {
    /// The user that may log in.
    pub user: String,
    /// This user's password.
    pub password: String,
    /// The version it claims.
    pub server_version: String,
    /// Whether it offers `CLIENT_DEPRECATE_EOF`; MariaDB before 10.2 and MySQL 5.6 do not.
    pub deprecate_eof: bool,
    /// How long a statement takes.
    pub service: Service,
    /// Statements that it works on at a time; others wait. None for as many as arrive.
    pub workers: Option<usize>,
    /// Statements it refuses.
    pub fail: Option<Fail>,
    /// It dies instead of answering the statement after so many, counted over all sessions.
    pub die_after_statements: Option<u64>,
    /// It closes the session instead of answering every so many statements, counted over all sessions.
    pub hang_up_every_nth_statement: Option<u64>,
    /// A time in which it answers nothing.
    pub stall: Option<Stall>,
    /// A time in which it is slower.
    pub slowdown: Option<Slowdown>,
    /// The pause between two bytes of an answer; None for answers in one piece.
    pub drip: Option<Duration>,
    /// Nonsense it answers to every statement.
    pub malformed: Option<Malformed>,
    /// How it takes files from its client; `None` answers LOAD DATA as any statement.
    pub files: Option<Files>,
    /// Whether it keeps what arrived.
    pub log_statements: bool,
}

impl Script {
    /// Those who serve by it.
    pub(super) fn workers(&self) -> Workers {
        Workers::new(self.workers, self.service.clone(), self.stall, self.slowdown)
    }
}

impl Default for Script {
    /// A server that is always well and always at once.
    fn default() -> Self {
        Self {
            user: "bench".into(),
            password: "yardstick".into(),
            server_version: "8.0.0-dbdyno-reference".into(),
            deprecate_eof: true,
            service: Service::Fixed(Duration::ZERO),
            workers: None,
            fail: None,
            die_after_statements: None,
            hang_up_every_nth_statement: None,
            stall: None,
            slowdown: None,
            drip: None,
            malformed: None,
            files: None,
            log_statements: false,
        }
    }
}

/// Statements that are refused.
#[derive(Clone, Debug)]
pub struct Fail {
    /// Every so many statements one is refused, counted over all sessions and those below only.
    pub every_nth_statement: u64,
    /// The error's number.
    pub code: u16,
    /// The error's SQLSTATE.
    pub sqlstate: [u8; 5],
    /// The error's text.
    pub message: String,
    /// Only statements with this in their text; `None` for all.
    pub only_containing: Option<String>,
}

impl Fail {
    /// Refuses every so many statements with this error.
    #[must_use]
    pub fn every(nth_statement: u64, code: u16, sqlstate: &[u8; 5], message: &str) -> Self {
        Self {
            every_nth_statement: nth_statement,
            code,
            sqlstate: *sqlstate,
            message: message.to_owned(),
            only_containing: None,
        }
    }

    /// The same, of statements with `part` in their text only.
    #[must_use]
    pub fn only_containing(self, part: &str) -> Self {
        Self { only_containing: Some(part.to_owned()), ..self }
    }
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// It is taken.
    Taken,
    /// All but one of its rows are taken.
    LosesOne,
    /// Another file of the client is asked for.
    Foreign,
    /// The table is full after so many bytes, which is said at once; no more is read.
    RefusesAfter(usize),
    /// The session ends after so many bytes.
    DiesAfter(usize),
    /// After so many bytes no more is read, for a minute.
    HangsAfter(usize),
}

/// A kind of nonsense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The first packet has a number that does not come next.
    BadSequence,
    /// Half the answer, then the end of the connection.
    Truncated,
    /// Rows without an end.
    Endless,
    /// The same, one row now and then.
    EndlessSlowly,
    /// A first packet that claims 16 MiB.
    HugeLength,
}
