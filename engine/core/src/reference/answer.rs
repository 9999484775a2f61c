//! Bytes of the reference server's answers.

use dbdyno_wire::mysql::packet::HEADER_LENGTH;
use dbdyno_wire::mysql::response::{self, PrepareOk, STATUS_AUTOCOMMIT};
use dbdyno_wire::mysql::result_set;

use super::script::Malformed;

/// Rows of a `SELECT` with `BETWEEN`.
pub const RANGE_ROWS: usize = 100;
/// Bytes of each row's single column, as in sysbench's `c`.
pub const ROW_LENGTH: usize = 120;
const ROW: [u8; ROW_LENGTH] = [b'7'; ROW_LENGTH];

/// Shape of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// OK.
    #[default]
    Other,
    /// OK, and one row changed.
    Change,
    /// One row.
    Row,
    /// [`RANGE_ROWS`] rows.
    Range,
}

impl Shape {
    pub(super) const ALL: [Self; 4] = [Self::Other, Self::Change, Self::Row, Self::Range];

    pub(super) const fn has_rows(self) -> bool {
        matches!(self, Self::Row | Self::Range)
    }

    /// Shape of the answer to a statement.
    pub(super) fn of(text: &str) -> Self {
        match text {
            _ if is_select(text) && text.contains("BETWEEN") => Self::Range,
            _ if is_select(text) => Self::Row,
            _ if changes(text) => Self::Change,
            _ => Self::Other,
        }
    }
}

/// Encoder of a session's answers.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) out: Vec<u8>,
    deprecate_eof: bool,
}

impl Answers {
    pub(super) fn new(deprecate_eof: bool) -> Self {
        Self { out: Vec::new(), deprecate_eof }
    }

    pub(super) fn ok(&mut self, affected_rows: u64) {
        self.ok_numbered(affected_rows, &mut 1);
    }

    pub(super) fn ok_numbered(&mut self, affected_rows: u64, sequence: &mut u8) {
        let status = STATUS_AUTOCOMMIT;
        // As if each change were the first INSERT into its table.
        let last_insert_id = affected_rows;
        response::Ok { affected_rows, last_insert_id, status, warnings: 0 }
            .write(&mut self.out, sequence);
    }

    pub(super) fn error(&mut self, code: u16, sqlstate: [u8; 5], message: String) {
        response::ServerError::new(code, sqlstate, message).write(&mut self.out, &mut 1);
    }

    /// Encodes the answer to a statement: rows or OK, by its first words.
    pub(super) fn statement(&mut self, text: &str, binary: bool) {
        self.shaped(Shape::of(text), binary);
    }

    pub(super) fn shaped(&mut self, shape: Shape, binary: bool) {
        let rows = match shape {
            Shape::Other => return self.ok(0),
            Shape::Change => return self.ok(1),
            Shape::Range => RANGE_ROWS,
            Shape::Row => 1,
        };
        let mut sequence = self.open_rows();
        for _ in 0..rows {
            sequence = self.row(sequence, binary);
        }
        response::Ok { status: STATUS_AUTOCOMMIT, ..response::Ok::default() }.write_end(
            &mut self.out,
            &mut sequence,
            self.deprecate_eof,
        );
    }

    /// Begins a result set of one column; returns the number of its first row.
    pub(super) fn open_rows(&mut self) -> u8 {
        let mut sequence = 1;
        result_set::write_column_count(&mut self.out, &mut sequence, 1);
        self.definitions(&mut sequence, 1);
        sequence
    }

    pub(super) fn row(&mut self, mut sequence: u8, binary: bool) -> u8 {
        let values = [Some(&ROW[..])];
        if binary {
            result_set::write_binary_row(&mut self.out, &mut sequence, &values);
        } else {
            result_set::write_text_row(&mut self.out, &mut sequence, &values);
        }
        sequence
    }

    pub(super) fn prepared(&mut self, statement_id: u32, text: &str, parameters: u16) {
        let mut sequence = 1;
        let columns = u16::from(is_select(text));
        PrepareOk { statement_id, columns, parameters }.write(&mut self.out, &mut sequence);
        self.definitions(&mut sequence, parameters);
        self.definitions(&mut sequence, columns);
    }

    fn definitions(&mut self, sequence: &mut u8, count: u16) {
        for _ in 0..count {
            result_set::write_column(&mut self.out, sequence, "c");
        }
        if count > 0 && !self.deprecate_eof {
            response::write_eof(&mut self.out, sequence, STATUS_AUTOCOMMIT);
        }
    }

    /// Spoils the last answer. [`Malformed::Endless`] is left to the sender.
    pub(super) fn spoil(&mut self, malformed: Malformed) {
        match malformed {
            Malformed::BadSequence => self.out[3] = self.out[3].wrapping_add(1),
            Malformed::Truncated => self.out.truncate(self.out.len() / 2),
            Malformed::HugeLength => {
                self.out.truncate(HEADER_LENGTH);
                self.out[..3].fill(0xff);
            }
            Malformed::Endless | Malformed::EndlessSlowly => {}
        }
    }
}

fn begins_with(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn is_select(text: &str) -> bool {
    begins_with(text, "SELECT")
}

fn changes(text: &str) -> bool {
    let words = ["INSERT", "UPDATE", "DELETE", "REPLACE"];
    words.into_iter().any(|word| begins_with(text, word))
}
