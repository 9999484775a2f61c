//! How far a reply has come: which packet is due next, and what each one means.
//!
//! The scanner cuts bytes into packets; this decides what a packet is at its place. It sees only the
//! first bytes of a payload and its length, which is all that a reply's course depends on.

use super::response::{EOF, ERR, Ok as OkPacket, PrepareOk, STATUS_MORE_RESULTS, ServerError};
use super::scanner::{Outcome, ReplyShape, ScanError, Summary};
use super::{lenenc, packet::PAYLOAD_LENGTH_MAX, response, result_set};

/// Bytes of an error that are kept: MySQL's own messages are below 512.
pub(super) const ERROR_LENGTH_MAX: usize = 4096;
/// The longest packet that is no row; far above what servers send there.
const NOT_ROW_LENGTH_MAX: usize = 1 << 20;
/// Columns of a result; MySQL's own limit is 4096.
const COLUMNS_MAX: u64 = 0xffff;
/// Every column definition begins with the catalogue "def", preceded by its length.
const DEFINITION_FIRST: u8 = 3;

/// What the next packet of the reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No reply is awaited.
    Idle,
    /// OK, ERR, or the number of columns.
    First,
    /// The OK of a prepare.
    PrepareFirst,
    /// One of so many definitions of columns or placeholders.
    Definitions(u64, After),
    /// The EOF behind definitions, where it is not deprecated.
    DefinitionsEnd(After),
    /// A row, or the end of the rows.
    Rows,
}

/// What follows a list of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Rows,
    /// The columns of a prepared statement, behind its placeholders.
    Columns(u64),
}

/// The course of one reply.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) stage: Stage,
    pub(super) binary: bool,
    pub(super) summary: Summary,
    pub(super) statement_id: u32,
    deprecate_eof: bool,
}

impl Progress {
    pub(super) fn new(deprecate_eof: bool) -> Self {
        Self {
            stage: Stage::Idle,
            binary: false,
            summary: Summary::default(),
            statement_id: 0,
            deprecate_eof,
        }
    }

    pub(super) fn begin(&mut self, shape: ReplyShape) {
        self.binary = shape == ReplyShape::Binary;
        self.summary = Summary::default();
        self.stage = match shape {
            ReplyShape::Prepare => Stage::PrepareFirst,
            ReplyShape::Text | ReplyShape::Binary => Stage::First,
        };
    }

    /// Refuses a packet that is too long for its place, before its bytes are waited for.
    pub(super) fn check_length(&self, found: usize) -> Result<(), ScanError> {
        if self.stage == Stage::Rows || found <= NOT_ROW_LENGTH_MAX {
            return Ok(());
        }
        Err(ScanError::Length { place: self.place(), found })
    }

    /// Takes a payload of `total` bytes, of which the first (of an error: all that is kept) are given.
    pub(super) fn take(&mut self, head: &[u8], total: usize) -> Result<Option<Outcome>, ScanError> {
        let Some(&first) = head.first() else {
            return Err(ScanError::Content { place: self.place(), found: None });
        };
        if first == ERR {
            let kept = &head[..head.len().min(ERROR_LENGTH_MAX)];
            let error = ServerError::parse(kept).map_err(|_| self.unfit(first))?;
            return Ok(Some(Outcome::Failed(error)));
        }
        match self.stage {
            Stage::Idle => Err(self.unfit(first)),
            Stage::First => self.take_first(first, head),
            Stage::PrepareFirst => self.take_prepare_first(first, head),
            Stage::Definitions(left, after) => self.take_definition(first, left, after),
            Stage::DefinitionsEnd(after) => {
                let status = response::parse_eof(head).map_err(|_| self.unfit(first))?;
                self.summary.status = status;
                Ok(self.go_on(after))
            }
            Stage::Rows => self.take_row(first, head, total),
        }
    }

    fn take_first(&mut self, first: u8, head: &[u8]) -> Result<Option<Outcome>, ScanError> {
        match first {
            response::OK => self.take_ok(first, head),
            lenenc::NULL => Err(ScanError::LocalInfile),
            _ => {
                let columns =
                    result_set::parse_column_count(head).map_err(|_| self.unfit(first))?;
                if columns == 0 || columns > COLUMNS_MAX {
                    return Err(self.unfit(first));
                }
                self.summary.columns = columns;
                self.stage = Stage::Definitions(columns, After::Rows);
                Ok(None)
            }
        }
    }

    /// OK: the end of a result, and of the reply unless it says that another follows.
    fn take_ok(&mut self, first: u8, head: &[u8]) -> Result<Option<Outcome>, ScanError> {
        let ok = OkPacket::parse(head).map_err(|_| self.unfit(first))?;
        self.summary.affected_rows = self.summary.affected_rows.saturating_add(ok.affected_rows);
        if self.stage == Stage::First {
            self.summary.columns = 0;
        }
        Ok(self.end_result(ok.status))
    }

    fn end_result(&mut self, status: u16) -> Option<Outcome> {
        self.summary.status = status;
        if status & STATUS_MORE_RESULTS == 0 {
            return Some(Outcome::Done(self.summary));
        }
        self.stage = Stage::First;
        None
    }

    fn take_prepare_first(&mut self, first: u8, head: &[u8]) -> Result<Option<Outcome>, ScanError> {
        let ok = PrepareOk::parse(head).map_err(|_| self.unfit(first))?;
        self.statement_id = ok.statement_id;
        self.summary.columns = u64::from(ok.columns);
        if ok.parameters == 0 {
            return Ok(self.go_on(After::Columns(u64::from(ok.columns))));
        }
        let after = After::Columns(u64::from(ok.columns));
        self.stage = Stage::Definitions(u64::from(ok.parameters), after);
        Ok(None)
    }

    fn take_definition(
        &mut self,
        first: u8,
        left: u64,
        after: After,
    ) -> Result<Option<Outcome>, ScanError> {
        if first != DEFINITION_FIRST {
            return Err(self.unfit(first));
        }
        if left > 1 {
            self.stage = Stage::Definitions(left - 1, after);
        } else if self.deprecate_eof {
            return Ok(self.go_on(after));
        } else {
            self.stage = Stage::DefinitionsEnd(after);
        }
        Ok(None)
    }

    fn go_on(&mut self, after: After) -> Option<Outcome> {
        match after {
            After::Columns(0) => return Some(Outcome::Done(self.summary)),
            After::Columns(columns) => self.stage = Stage::Definitions(columns, After::Columns(0)),
            After::Rows => self.stage = Stage::Rows,
        }
        None
    }

    fn take_row(
        &mut self,
        first: u8,
        head: &[u8],
        total: usize,
    ) -> Result<Option<Outcome>, ScanError> {
        if response::ends_rows(first, total, self.deprecate_eof) {
            if self.deprecate_eof {
                return self.take_ok(first, head);
            }
            let status = response::parse_eof(head).map_err(|_| self.unfit(first))?;
            return Ok(self.end_result(status));
        }
        if self.binary && first != 0 || first == EOF && total < PAYLOAD_LENGTH_MAX {
            return Err(self.unfit(first));
        }
        self.summary.rows += 1;
        Ok(None)
    }

    fn unfit(&self, first: u8) -> ScanError {
        ScanError::Content { place: self.place(), found: Some(first) }
    }

    fn place(&self) -> &'static str {
        match self.stage {
            Stage::Idle => "nothing",
            Stage::First => "OK, an error or a number of columns",
            Stage::PrepareFirst => "the OK of a prepared statement",
            Stage::Definitions(..) => "a column definition",
            Stage::DefinitionsEnd(_) => "the end of the column definitions",
            Stage::Rows => "a row or the end of the rows",
        }
    }
}
