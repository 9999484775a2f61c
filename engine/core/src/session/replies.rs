//! Follows the replies of a session of either protocol at full speed.
//!
//! A summary has the same fields for both protocols: rows, columns and affected rows mean the same.
//! An error of PostgreSQL has the number 0 and is known by its SQLSTATE.

use dbdyno_wire::mysql::command::QUIT_PACKET;
use dbdyno_wire::mysql::packet::packets_in;
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, Scanner, ServerError};
use dbdyno_wire::postgres;
use dbdyno_wire::postgres::message::TERMINATE;

use super::link::LinkError;
use crate::driver::Driver;

/// Follows the replies of a single connection.
#[derive(Debug)]
pub enum Replies {
    /// Replies of MySQL.
    Mysql(Scanner),
    /// Replies of PostgreSQL.
    Pgsql(postgres::scanner::Scanner),
}

impl Replies {
    /// Replies of a session; `deprecate_eof` and `is_compressed` are as agreed with MySQL.
    #[must_use]
    pub fn new(driver: Driver, deprecate_eof: bool, is_compressed: bool) -> Self {
        match driver {
            Driver::Mysql => Self::Mysql(Scanner::new(deprecate_eof).of_any_number(is_compressed)),
            Driver::Pgsql => Self::Pgsql(postgres::scanner::Scanner::default()),
        }
    }

    /// Prepares for the reply to a request of `length` bytes about to be sent.
    #[inline]
    pub fn begin(&mut self, shape: ReplyShape, length: usize) {
        match self {
            Self::Mysql(scanner) => scanner.begin_at(shape, packets_in(length)),
            Self::Pgsql(scanner) => scanner.begin(),
        }
    }

    /// Takes arrived bytes; gives the outcome with the last byte of the reply.
    ///
    /// # Errors
    /// Bytes out of step with the protocol.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Outcome>, LinkError> {
        match self {
            Self::Mysql(scanner) => Ok(scanner.feed(bytes)?),
            Self::Pgsql(scanner) => Ok(scanner.feed(bytes)?.map(told)),
        }
    }

    /// MySQL's number for the statement prepared last; in PostgreSQL the client chooses the number.
    #[must_use]
    pub const fn statement_id(&self) -> u32 {
        match self {
            Self::Mysql(scanner) => scanner.statement_id(),
            Self::Pgsql(_) => 0,
        }
    }

    /// The bytes of a logout, which has no reply.
    #[must_use]
    pub const fn logout(&self) -> &'static [u8] {
        match self {
            Self::Mysql(_) => QUIT_PACKET,
            Self::Pgsql(_) => TERMINATE,
        }
    }

    /// True for PostgreSQL: after an error in a transaction it refuses every statement until the
    /// rollback.
    #[must_use]
    pub const fn needs_rollback(&self) -> bool {
        matches!(self, Self::Pgsql(_))
    }
}

pub(super) fn told(outcome: postgres::scanner::Outcome) -> Outcome {
    match outcome {
        postgres::scanner::Outcome::Done(summary) => Outcome::Done(summary),
        postgres::scanner::Outcome::Failed(error) => Outcome::Failed(ServerError {
            code: 0,
            sqlstate: error.sqlstate,
            message: error.message.clone(),
            of_postgres: Some(Box::new(error)),
        }),
    }
}
