//! A script's requests as bytes, in the protocol of its driver, and the sessions that take them.

use super::task::Bound;
use crate::driver::Driver;
use crate::session::{PostgresSession, Refusal, Session};
use crate::workload::event::Reply;
use dbdyno_wire::kept::Kept;
use dbdyno_wire::mysql::command;
use dbdyno_wire::mysql::scanner::Summary;
use dbdyno_wire::postgres::message;
use dbdyno_wire::{Parameter, decimal};
use std::io::Write as _;

/// A session of a script, in either protocol.
pub(super) enum ScriptSession {
    Mysql(Session),
    Pgsql(PostgresSession),
}

impl ScriptSession {
    pub(super) const fn deprecate_eof(&self) -> bool {
        match self {
            Self::Mysql(session) => session.deprecate_eof(),
            Self::Pgsql(_) => false,
        }
    }

    /// Sends a request; returns the reply's summary, and MySQL's number of a newly prepared
    /// statement.
    pub(super) fn exchange(
        &mut self,
        request: &[u8],
        reply: Reply,
        kept: &mut Kept,
    ) -> Result<(Summary, u32), Refusal> {
        match self {
            Self::Mysql(session) => session.exchange_keeping(request, reply.into(), kept),
            Self::Pgsql(session) => {
                let kept = (reply != Reply::Prepare).then_some(kept);
                session.exchange_keeping(request, kept).map(|done| (done, 0))
            }
        }
    }

    pub(super) fn quit(self) {
        match self {
            Self::Mysql(session) => session.quit(),
            Self::Pgsql(session) => session.quit(),
        }
    }
}

/// Appends the request to prepare a statement, with this number and its parameters' types if the
/// server takes them.
pub(super) fn write_preparation(
    driver: Driver,
    out: &mut Vec<u8>,
    id: u32,
    sql: &[u8],
    types: &[u32],
) {
    match driver {
        Driver::Mysql => command::statement_prepare(out, sql),
        Driver::Pgsql => message::preparation(out, id, with_numbers(sql), types),
    }
}

/// The text of a statement that is prepared, as the server gets it.
pub(super) fn as_prepared(driver: Driver, sql: &[u8]) -> Vec<u8> {
    match driver {
        Driver::Mysql => sql.to_vec(),
        Driver::Pgsql => with_numbers(sql),
    }
}

/// Appends the execution of a prepared statement.
pub(super) fn write_execution<'a>(
    driver: Driver,
    out: &mut Vec<u8>,
    id: u32,
    values: impl Iterator<Item = Bound<'a>>,
) {
    let parameters: Vec<Parameter<'_>> = values.map(parameter).collect();
    match driver {
        Driver::Mysql => command::statement_execute(out, id, &parameters, true),
        Driver::Pgsql => message::execution(out, id, &parameters),
    }
}

/// Appends a request of SQL text.
pub(super) fn write_text(driver: Driver, out: &mut Vec<u8>, sql: &[u8]) {
    match driver {
        Driver::Mysql => command::query(out, sql),
        Driver::Pgsql => message::query(out, sql),
    }
}

/// Replaces `?` by `$1` and so on, as sysbench prepares a statement on PostgreSQL.
fn with_numbers(sql: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len() + 16);
    let mut number = 0;
    for &byte in sql {
        if byte == b'?' {
            number += 1;
            write!(out, "${number}").expect("writing to memory does not fail");
        } else {
            out.push(byte);
        }
    }
    out
}

fn parameter(bound: Bound<'_>) -> Parameter<'_> {
    match bound {
        Bound::Null => Parameter::Null,
        Bound::Integer(number) => Parameter::BigInt(number),
        Bound::Real(number) => Parameter::Double(number),
        Bound::Text(text) => Parameter::Text(text),
    }
}

/// Replaces `?` by the parameters as literals, as sysbench writes them: texts in quotes and without
/// escapes.
pub(super) fn with_literals<'a>(
    sql: &[u8],
    mut values: impl Iterator<Item = Bound<'a>>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len() + 64);
    for &byte in sql {
        match (byte, if byte == b'?' { values.next() } else { None }) {
            (_, None) => out.push(byte),
            (_, Some(Bound::Null)) => out.extend_from_slice(b"NULL"),
            (_, Some(Bound::Integer(number))) => decimal(&mut out, number),
            (_, Some(Bound::Real(number))) => {
                write!(out, "{number:.6}").expect("writing to memory does not fail");
            }
            (_, Some(Bound::Text(text))) => {
                out.push(b'\'');
                out.extend_from_slice(text);
                out.push(b'\'');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_stand_where_the_parameters_were() {
        let values =
            [Bound::Integer(-3), Bound::Text(b"a-b"), Bound::Null, Bound::Real(0.5)].into_iter();
        let sql = with_literals(b"SELECT ?, ?, ?, ?, '?'", values);
        assert_eq!(sql, b"SELECT -3, 'a-b', NULL, 0.500000, '?'");
        assert_eq!(with_numbers(b"SELECT ? + ?"), b"SELECT $1 + $2");
    }
}
