//! Scripts of the reference server: behaviour for tests to find again in a record.

use std::time::Duration;

use super::service::{Service, Slowdown, Stall, Workers};

/// Planned behaviour of a [`super::Reference`].
#[derive(Clone, Debug)]
pub struct Script {
    /// Accepted user.
    pub user: String,
    /// Password of the user.
    pub password: String,
    /// Version reported to clients.
    pub server_version: String,
    /// True to offer `CLIENT_DEPRECATE_EOF`; MariaDB before 10.2 and MySQL 5.6 do not.
    pub deprecate_eof: bool,
    /// Service time of a statement.
    pub service: Service,
    /// Sessions at a time; further logins are refused with error 1040. None for no limit.
    pub sessions_max: Option<usize>,
    /// Statements processed in parallel, the others queue; None for no limit.
    pub workers: Option<usize>,
    /// Statements to refuse.
    pub fail: Option<Fail>,
    /// Number of answered statements, over all sessions, after which the server dies.
    pub die_after_statements: Option<u64>,
    /// Closes the session instead of answering every n-th statement, counted over all sessions.
    pub hang_up_every_nth_statement: Option<u64>,
    /// Period without answers.
    pub stall: Option<Stall>,
    /// Period of slower statements.
    pub slowdown: Option<Slowdown>,
    /// Pause between two bytes of an answer; None for answers in one piece.
    pub drip: Option<Duration>,
    /// Malformed answer to every statement.
    pub malformed: Option<Malformed>,
    /// Handling of files from clients; `None` treats LOAD DATA like any statement.
    pub files: Option<Files>,
    /// Work of the session for each statement, before the answer.
    pub work: Option<fn()>,
    /// True to keep received statements.
    pub log_statements: bool,
}

impl Script {
    pub(super) fn workers(&self) -> Workers {
        Workers::new(self.workers, self.service.clone(), self.stall, self.slowdown)
    }
}

impl Default for Script {
    /// A server without faults or delays.
    fn default() -> Self {
        Self {
            user: "bench".into(),
            password: "yardstick".into(),
            server_version: "8.0.0-dbdyno-reference".into(),
            deprecate_eof: true,
            service: Service::Fixed(Duration::ZERO),
            sessions_max: None,
            workers: None,
            fail: None,
            die_after_statements: None,
            hang_up_every_nth_statement: None,
            stall: None,
            slowdown: None,
            drip: None,
            malformed: None,
            files: None,
            work: None,
            log_statements: false,
        }
    }
}

/// Statements to refuse.
#[derive(Clone, Debug)]
pub struct Fail {
    /// Refuses every n-th statement, counted over all sessions among statements selected by
    /// `only_containing`.
    pub every_nth_statement: u64,
    /// Error number.
    pub code: u16,
    /// SQLSTATE.
    pub sqlstate: [u8; 5],
    /// Error message.
    pub message: String,
    /// Restricts the refusals to statements containing this text; `None` for all.
    pub only_containing: Option<String>,
}

impl Fail {
    /// Refuses every n-th statement with this error.
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

    /// Restricts the refusals to statements containing `part`.
    #[must_use]
    pub fn only_containing(self, part: &str) -> Self {
        Self { only_containing: Some(part.to_owned()), ..self }
    }
}

/// Handling of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Takes it.
    Taken,
    /// Reports a row fewer than it took.
    LosesOne,
    /// Requests another file of the client.
    Foreign,
    /// Reports a full table after this number of bytes and stops reading.
    RefusesAfter(usize),
    /// Ends the session after this number of bytes.
    DiesAfter(usize),
    /// Stops reading for a minute after this number of bytes.
    HangsAfter(usize),
}

/// Protocol violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Wrong number of the first packet.
    BadSequence,
    /// Half the answer, then the end of the connection.
    Truncated,
    /// Rows without an end.
    Endless,
    /// Rows without an end, slowly.
    EndlessSlowly,
    /// A first packet that claims 16 MiB.
    HugeLength,
}
