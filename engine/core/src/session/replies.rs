//! Follows the replies of a session at full speed, whichever protocol it speaks.
//!
//! An answer of PostgreSQL is told in the words of MySQL's: rows, columns and affected rows mean the same.
//! An error of a server without numbers has the number 0, and its SQLSTATE says which one it is.

use dbdyno_wire::mysql::command::QUIT_PACKET;
use dbdyno_wire::mysql::packet::packets_in;
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, Scanner, ServerError};
use dbdyno_wire::postgres;
use dbdyno_wire::postgres::message::TERMINATE;

use super::link::LinkError;
use crate::driver::Driver;

/// Follows one reply after another of a single connection.
#[derive(Debug)]
pub enum Replies {
    /// Those of MySQL.
    Mysql(Scanner),
    /// Those of PostgreSQL.
    Pgsql(postgres::scanner::Scanner),
}

impl Replies {
    /// Those of a session; `deprecate_eof` and `is_compressed` are what MySQL has agreed to.
    #[must_use]
    pub fn new(driver: Driver, deprecate_eof: bool, is_compressed: bool) -> Self {
        match driver {
            Driver::Mysql => Self::Mysql(Scanner::new(deprecate_eof).of_any_number(is_compressed)),
            Driver::Pgsql => Self::Pgsql(postgres::scanner::Scanner::default()),
        }
    }

    /// Awaits the reply of a request of `length` bytes that is about to be sent.
    #[inline]
    pub fn begin(&mut self, shape: ReplyShape, length: usize) {
        match self {
            Self::Mysql(scanner) => scanner.begin_at(shape, packets_in(length)),
            Self::Pgsql(scanner) => scanner.begin(),
        }
    }

    /// Takes bytes that arrived; the outcome with the last byte of the reply.
    ///
    /// # Errors
    /// When they do not follow the protocol.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Outcome>, LinkError> {
        match self {
            Self::Mysql(scanner) => Ok(scanner.feed(bytes)?),
            Self::Pgsql(scanner) => Ok(scanner.feed(bytes)?.map(told)),
        }
    }

    /// The number of the statement that was prepared last; PostgreSQL's have those that they are given.
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

    /// Whether nothing is answered after an error until the transaction is rolled back.
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
            message: error.message,
        }),
    }
}
