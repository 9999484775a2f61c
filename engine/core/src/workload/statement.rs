//! The SQL of sysbench's OLTP scripts, and its encoding as packets.

use std::io::Write as _;

use super::StatementText;
use crate::driver::Driver;
use crate::workload::event::{Event, Reply, StatementKind};
use dbdyno_wire::mysql::command::statement_execute;
use dbdyno_wire::mysql::packet::{begin_packet, end_packet};
use dbdyno_wire::postgres::message;
use dbdyno_wire::{Parameter, decimal};

/// The command code of a text query.
const COM_QUERY: u8 = 0x03;
/// Bytes before the text of a request: header and command code on MySQL, type and length on
/// PostgreSQL.
pub(super) const TEXT_HEADER_LENGTH: usize = 5;

/// Begins a request of SQL text, which the caller appends; returns the start of the request.
pub(super) fn begin_text(driver: Driver, out: &mut Vec<u8>) -> usize {
    match driver {
        Driver::Mysql => {
            let start = begin_packet(out, 0);
            out.push(COM_QUERY);
            start
        }
        Driver::Pgsql => message::begin_query(out),
    }
}

/// Ends the text that begins at `start`.
pub(super) fn end_text(driver: Driver, out: &mut Vec<u8>, start: usize) {
    match driver {
        Driver::Mysql => drop(end_packet(out, start)),
        Driver::Pgsql => message::end_query(out, start),
    }
}

/// The SQL of a kind; `?` is a parameter, `{}` the table's number or, for a kind with an option for
/// the number of parameters, all of them.
pub(super) const fn template(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Begin => "BEGIN",
        StatementKind::Commit => "COMMIT",
        StatementKind::Rollback => "ROLLBACK",
        StatementKind::PointSelects => "SELECT c FROM sbtest{} WHERE id=?",
        StatementKind::SimpleRanges => "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ?",
        StatementKind::SumRanges => "SELECT SUM(k) FROM sbtest{} WHERE id BETWEEN ? AND ?",
        StatementKind::OrderRanges => "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c",
        StatementKind::DistinctRanges => {
            "SELECT DISTINCT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c"
        }
        StatementKind::IndexUpdates => "UPDATE sbtest{} SET k=k+1 WHERE id=?",
        StatementKind::NonIndexUpdates => "UPDATE sbtest{} SET c=? WHERE id=?",
        StatementKind::Deletes => "DELETE FROM sbtest{} WHERE id=?",
        StatementKind::Inserts => "INSERT INTO sbtest{} (id, k, c, pad) VALUES (?, ?, ?, ?)",
        StatementKind::RandomPoints => {
            "        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN ({})\n        "
        }
        StatementKind::RandomRanges => {
            "        SELECT count(k)\n          FROM sbtest1\n          WHERE {}"
        }
        // A script's own text.
        StatementKind::Query | StatementKind::Execute => "{}",
    }
}

/// True if the statement concerns one table.
pub(super) const fn has_table(kind: StatementKind) -> bool {
    !matches!(kind, StatementKind::Begin | StatementKind::Commit | StatementKind::Rollback)
}

/// PostgreSQL's type of a parameter by its place, counted from 1, as sysbench binds it; left to the
/// server it would be the column's own.
const fn bound_type(kind: StatementKind, place: usize) -> u32 {
    match (kind, place) {
        (StatementKind::NonIndexUpdates, 1) | (StatementKind::Inserts, 3 | 4) => message::VARCHAR,
        _ => message::INT8,
    }
}

/// A statement on a table, cut at its parameters.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) kind: StatementKind,
    driver: Driver,
    pieces: Vec<String>,
}

impl Statement {
    /// The statement of `kind` on table number `table`.
    pub(super) fn new(driver: Driver, kind: StatementKind, table: u32) -> Self {
        Self::with(driver, kind, &table.to_string())
    }

    /// The statement of `kind` with `filling` in place of `{}`.
    pub(super) fn with(driver: Driver, kind: StatementKind, filling: &str) -> Self {
        Self::of(driver, kind, &template(kind).replace("{}", filling))
    }

    /// A statement of `kind` with this SQL, `?` for its parameters.
    pub(super) fn of(driver: Driver, kind: StatementKind, sql: &str) -> Self {
        Self { kind, driver, pieces: sql.split('?').map(str::to_owned).collect() }
    }

    /// The text to prepare on each connection.
    pub(super) fn text(&self) -> StatementText {
        let (mut sql, mut types) = (self.pieces[0].clone(), Vec::new());
        for (number, piece) in (1..).zip(&self.pieces[1..]) {
            match self.driver {
                Driver::Mysql => sql.push('?'),
                Driver::Pgsql => {
                    sql += &format!("${number}");
                    types.push(bound_type(self.kind, number));
                }
            }
            sql += piece;
        }
        StatementText { sql, types, kind: self.kind }
    }

    /// Appends it to `event` as text, its parameters as literals.
    pub(super) fn query(&self, parameters: &[Parameter<'_>], event: &mut Event) {
        debug_assert_eq!(parameters.len() + 1, self.pieces.len());
        let out = &mut event.bytes;
        let start = begin_text(self.driver, out);
        out.extend_from_slice(self.pieces[0].as_bytes());
        for (parameter, piece) in parameters.iter().zip(&self.pieces[1..]) {
            write_literal(*parameter, out);
            out.extend_from_slice(piece.as_bytes());
        }
        end_text(self.driver, out, start);
        event.close_step(self.kind, Reply::Text);
    }

    /// Appends it to `event` as the execution of the prepared statement `id`.
    pub(super) fn execute(&self, id: u32, parameters: &[Parameter<'_>], event: &mut Event) {
        debug_assert_eq!(parameters.len() + 1, self.pieces.len());
        match self.driver {
            Driver::Mysql => statement_execute(&mut event.bytes, id, parameters, true),
            Driver::Pgsql => message::execution(&mut event.bytes, id, parameters),
        }
        event.close_step(self.kind, Reply::Binary);
    }
}

/// Appends a literal. Strings are drawn from digits and dashes, so no character needs an escape.
fn write_literal(parameter: Parameter<'_>, out: &mut Vec<u8>) {
    match parameter {
        Parameter::Null => out.extend_from_slice(b"NULL"),
        Parameter::Double(number) => {
            write!(out, "{number}").expect("writing to memory does not fail");
        }
        Parameter::BigInt(number) => decimal(out, number),
        Parameter::Text(text) => {
            out.push(b'\'');
            out.extend_from_slice(text);
            out.push(b'\'');
        }
    }
}
