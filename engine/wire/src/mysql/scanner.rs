//! Follows the reply of a command to its end, counting rows and skipping their content: the hot
//! path.
//!
//! The scanner is fed the bytes received, cut at any place. A row completely in the buffer costs a
//! look at its header and first byte; only the first bytes of a cut packet are copied. Only the
//! message of a server's error is allocated. Lengths, sequence numbers and the order of packets are
//! checked, since a generator out of step would measure nonsense.
//!
//! [`Scanner`] cuts bytes into packets; `ReplyState` knows the packet due next and reads its
//! meaning from the payload's first bytes and length.
//!
//! A server may announce the end of a session by an unrequested error after a reply, its last
//! words. They may arrive in parts, and after the next request has been sent. Their packet number,
//! 0 or the next number after the previous reply, tells them from a reply. They belong to no reply,
//! and the session ends after them.

use super::packet::{HEADER_LENGTH, Header, PAYLOAD_LENGTH_MAX};
pub use super::response::ServerError;
use super::response::{EOF, ERR, Ok as OkPacket, PrepareOk, STATUS_MORE_RESULTS};
use super::{lenenc, response, result_set};
pub use crate::Summary;

/// Bytes kept of a cut packet: enough for any number, and for an OK up to its text.
const HEAD_LENGTH: usize = 32;

/// The shape of a reply, by its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyShape {
    /// `COM_QUERY`, and all commands answered by OK alone.
    Text,
    /// `COM_STMT_EXECUTE`.
    Binary,
    /// `COM_STMT_PREPARE`.
    Prepare,
}

/// The outcome of a reply.
pub type Outcome = crate::Outcome<ServerError>;

/// An incomplete payload, or a payload of several packets.
#[derive(Debug, Default)]
struct Cut {
    header: [u8; HEADER_LENGTH],
    /// Header bytes arrived; 0 between packets.
    header_filled: usize,
    /// Bytes of this packet still to come.
    missing: usize,
    /// True if the payload continues in another packet.
    continues: bool,
    /// Length of the payload, as far as headers have arrived.
    total: usize,
    head: [u8; HEAD_LENGTH],
    head_filled: usize,
    /// The payload of an error, as far as it is kept.
    error: Vec<u8>,
}

impl Cut {
    const fn is_open(&self) -> bool {
        self.header_filled > 0 || self.continues
    }

    fn forget(&mut self) {
        self.header_filled = 0;
        self.continues = false;
    }

    /// Takes header bytes from the front of `rest`; gives the header once it is complete.
    fn take_header(&mut self, rest: &mut &[u8]) -> Option<Header> {
        let wanted = HEADER_LENGTH - self.header_filled;
        let (now, later) = rest.split_at(wanted.min(rest.len()));
        self.header[self.header_filled..][..now.len()].copy_from_slice(now);
        self.header_filled += now.len();
        *rest = later;
        (self.header_filled == HEADER_LENGTH).then(|| Header::parse(self.header))
    }

    fn open(&mut self, header: Header) {
        if !self.continues {
            self.total = 0;
            self.head_filled = 0;
            self.error.clear();
        }
        self.total = self.total.saturating_add(header.length);
        self.missing = header.length;
        self.continues = header.continues();
    }

    /// Takes payload bytes from the front of `rest`; true once the payload is complete.
    fn take_payload(&mut self, rest: &mut &[u8]) -> bool {
        let (now, later) = rest.split_at(self.missing.min(rest.len()));
        *rest = later;
        self.missing -= now.len();
        let kept = now.len().min(HEAD_LENGTH - self.head_filled);
        self.head[self.head_filled..][..kept].copy_from_slice(&now[..kept]);
        self.head_filled += kept;
        if self.head_filled > 0 && self.head[0] == ERR {
            let kept = now.len().min(ERROR_LENGTH_MAX - self.error.len());
            self.error.extend_from_slice(&now[..kept]);
        }
        if self.missing > 0 {
            return false;
        }
        self.header_filled = 0;
        !self.continues
    }
}

/// Follows the replies of a single connection.
#[derive(Debug)]
pub struct Scanner {
    reply: ReplyState,
    sequence: u8,
    any_number: bool,
    /// The number of the current packet if it is no part of a reply: it must hold a server's last
    /// words.
    unasked: Option<u8>,
    cut: Cut,
}

impl Scanner {
    /// A scanner for a session; `deprecate_eof` if `CLIENT_DEPRECATE_EOF` was agreed.
    #[must_use]
    pub fn new(deprecate_eof: bool) -> Self {
        let (reply, cut) = (ReplyState::new(deprecate_eof), Cut::default());
        Self { reply, sequence: 0, any_number: false, unasked: None, cut }
    }

    /// Accepts any packet numbers, if `any_number`. In the compressed protocol the frames' numbers
    /// keep the order, and a server sets its packets' numbers by them whenever it flushes.
    #[must_use]
    pub const fn of_any_number(mut self, any_number: bool) -> Self {
        self.any_number = any_number;
        self
    }

    /// Prepares for the reply to a command sent in a single packet. An incomplete reply is
    /// forgotten; incomplete last words after a whole reply are still completed first.
    pub fn begin(&mut self, shape: ReplyShape) {
        self.begin_at(shape, 1);
    }

    /// Prepares for the reply to a command sent in `sequence` packets.
    pub fn begin_at(&mut self, shape: ReplyShape, sequence: u8) {
        if self.reply.stage != Stage::Idle {
            self.unasked = None;
            self.cut.forget();
        }
        self.reply.begin(shape);
        self.sequence = sequence;
    }

    /// The number the server gave to the statement prepared last.
    #[must_use]
    pub const fn statement_id(&self) -> u32 {
        self.reply.statement_id
    }

    /// Takes arrived bytes; gives the outcome with the last byte of the reply.
    ///
    /// # Errors
    /// [`ScanError`] when the bytes break the protocol or go beyond the end of the reply. The
    /// session cannot go on then.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Outcome>, ScanError> {
        self.reply.summary.bytes += bytes.len() as u64;
        let mut result = self.follow(bytes);
        if matches!(result, Ok(None)) && self.reply.summary.bytes > REPLY_LENGTH_MAX {
            result = Err(ScanError::Endless);
        }
        if !matches!(result, Ok(None)) {
            self.reply.stage = Stage::Idle;
        }
        result
    }

    fn follow(&mut self, bytes: &[u8]) -> Result<Option<Outcome>, ScanError> {
        let mut rest = bytes;
        if self.reply.stage == Stage::Idle {
            return self.end(rest).map(|()| None);
        }
        while !rest.is_empty() {
            if self.reply.stage == Stage::Rows && !self.cut.is_open() {
                rest = &rest[self.skip_rows(rest)..];
            }
            let Some(mut outcome) = self.take_packet(&mut rest)? else { continue };
            if let Outcome::Done(summary) = &mut outcome {
                summary.bytes -= rest.len() as u64;
            }
            return self.end(rest).map(|()| Some(outcome));
        }
        Ok(None)
    }

    /// Ends the reply. Only a server's last words, or a part of them, may come after it.
    fn end(&mut self, mut rest: &[u8]) -> Result<(), ScanError> {
        let count = rest.len();
        self.reply.stage = Stage::Idle;
        while !rest.is_empty() {
            self.take_packet(&mut rest).map_err(|_| ScanError::Trailing { count })?;
        }
        Ok(())
    }

    /// Counts the complete plain rows at the front of `bytes`; returns their length.
    fn skip_rows(&mut self, bytes: &[u8]) -> usize {
        let first_limit = if self.reply.binary { 1 } else { response::EOF };
        let mut rest = bytes;
        let mut rows = 0;
        while let Some(&[low, middle, high, sequence, first]) = rest.first_chunk() {
            let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
            let plain = length.wrapping_sub(1) < PAYLOAD_LENGTH_MAX - 1 && first < first_limit;
            if !plain || sequence != self.sequence {
                break;
            }
            let Some(later) = rest.get(HEADER_LENGTH + length..) else { break };
            rest = later;
            rows += 1;
            self.sequence = sequence.wrapping_add(1);
        }
        self.reply.summary.rows += rows;
        bytes.len() - rest.len()
    }

    fn take_packet(&mut self, rest: &mut &[u8]) -> Result<Option<Outcome>, ScanError> {
        if !self.cut.is_open()
            && let Some((header, payload, later)) = whole_packet(rest)
        {
            *rest = later;
            self.check(header)?;
            return self.take(payload, payload.len());
        }
        if self.cut.header_filled < HEADER_LENGTH {
            let Some(header) = self.cut.take_header(rest) else { return Ok(None) };
            self.check(header)?;
            self.cut.open(header);
        }
        if !self.cut.take_payload(rest) {
            return Ok(None);
        }
        let error = std::mem::take(&mut self.cut.error);
        let head = self.cut.head;
        let head = if error.is_empty() { &head[..self.cut.head_filled] } else { &error[..] };
        self.take(head, self.cut.total)
    }

    fn take(&mut self, head: &[u8], total: usize) -> Result<Option<Outcome>, ScanError> {
        let Some(found) = self.unasked.take() else { return self.reply.take(head, total) };
        if head.first() == Some(&ERR) {
            return Ok(None);
        }
        Err(ScanError::Sequence { expected: self.sequence, found })
    }

    fn check(&mut self, header: Header) -> Result<(), ScanError> {
        let is_next = header.sequence == self.sequence || self.any_number;
        if is_next && self.reply.stage != Stage::Idle {
            self.sequence = header.sequence.wrapping_add(1);
        } else if self.reply.is_between_replies() {
            self.unasked = Some(header.sequence);
        } else {
            return Err(ScanError::Sequence { expected: self.sequence, found: header.sequence });
        }
        self.reply.check_length(header.length)
    }
}

/// Splits off a complete packet with a whole payload: header, payload, and the bytes after it.
fn whole_packet(bytes: &[u8]) -> Option<(Header, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LENGTH>()?;
    let header = Header::parse(*header);
    if header.continues() || rest.len() < header.length {
        return None;
    }
    let (payload, later) = rest.split_at(header.length);
    Some((header, payload, later))
}

/// Most bytes kept of an error: MySQL's own messages are below 512.
const ERROR_LENGTH_MAX: usize = 4096;
/// Longest packet other than a row, far above any real packet.
const NOT_ROW_LENGTH_MAX: usize = 1 << 20;
/// Longest reply, 1 GiB: only a server gone wrong sends more.
const REPLY_LENGTH_MAX: u64 = 1 << 30;
/// Most columns of a result; MySQL's own limit is 4096.
const COLUMNS_MAX: u64 = 0xffff;
/// Every column definition begins with the catalogue "def", preceded by its length.
const DEFINITION_FIRST: u8 = 3;

/// The packet due next in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No reply is awaited.
    Idle,
    /// OK, ERR, or the number of columns.
    First,
    /// The OK of a prepare.
    PrepareFirst,
    /// A definition of a column or placeholder, with the number still due.
    Definitions(u64, After),
    /// The EOF behind definitions, where it is not deprecated.
    DefinitionsEnd(After),
    /// A row, or the end of the rows.
    Rows,
}

/// The part after a list of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Rows,
    /// The columns of a prepared statement, behind its placeholders.
    Columns(u64),
}

/// The course of a reply.
#[derive(Debug)]
struct ReplyState {
    stage: Stage,
    binary: bool,
    summary: Summary,
    statement_id: u32,
    deprecate_eof: bool,
}

impl ReplyState {
    fn new(deprecate_eof: bool) -> Self {
        Self {
            stage: Stage::Idle,
            binary: false,
            summary: Summary::default(),
            statement_id: 0,
            deprecate_eof,
        }
    }

    fn begin(&mut self, shape: ReplyShape) {
        self.binary = shape == ReplyShape::Binary;
        self.summary = Summary::default();
        self.stage = match shape {
            ReplyShape::Prepare => Stage::PrepareFirst,
            ReplyShape::Text | ReplyShape::Binary => Stage::First,
        };
    }

    /// True before the first packet of a reply or result, and after a reply.
    fn is_between_replies(&self) -> bool {
        matches!(self.stage, Stage::Idle | Stage::First | Stage::PrepareFirst)
    }

    /// Refuses a packet too long for its place, before its bytes arrive.
    fn check_length(&self, found: usize) -> Result<(), ScanError> {
        if self.stage == Stage::Rows || found <= NOT_ROW_LENGTH_MAX {
            return Ok(());
        }
        Err(ScanError::Length { place: self.place(), found })
    }

    /// Takes a payload of `total` bytes by its first bytes, or by all bytes kept of an error.
    fn take(&mut self, head: &[u8], total: usize) -> Result<Option<Outcome>, ScanError> {
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
                response::parse_eof(head).map_err(|_| self.unfit(first))?;
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

    /// Takes OK, the end of a result; it ends the reply too, unless it announces another result.
    fn take_ok(&mut self, first: u8, head: &[u8]) -> Result<Option<Outcome>, ScanError> {
        let ok = OkPacket::parse(head).map_err(|_| self.unfit(first))?;
        self.summary.affected_rows = self.summary.affected_rows.saturating_add(ok.affected_rows);
        self.summary.last_insert_id = ok.last_insert_id;
        if self.stage == Stage::First {
            self.summary.columns = 0;
        }
        Ok(self.end_result(ok.status))
    }

    fn end_result(&mut self, status: u16) -> Option<Outcome> {
        self.summary.results = self.summary.results.saturating_add(1);
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

/// A reply out of step with the protocol, or with a request for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// The reply is longer than the limit.
    #[error("a reply longer than {} MiB", REPLY_LENGTH_MAX >> 20)]
    Endless,
    /// A packet has the wrong sequence number.
    #[error("wanted packet number {expected} of the reply, found number {found}")]
    Sequence {
        /// The number due.
        expected: u8,
        /// The number in the packet.
        found: u8,
    },
    /// A packet is too long for its place in the reply.
    #[error("wanted {place}, found a packet of {found} bytes")]
    Length {
        /// The packet due.
        place: &'static str,
        /// The length in its header.
        found: usize,
    },
    /// A packet's content does not fit its place in the reply.
    #[error("wanted {place}, found {}", first_byte(*found))]
    Content {
        /// The packet due.
        place: &'static str,
        /// Its first byte; `None` for an empty payload.
        found: Option<u8>,
    },
    /// Bytes came after the end of the reply, or before a request.
    #[error("wanted nothing after the end of the reply, found {count} bytes")]
    Trailing {
        /// Number of bytes in this buffer.
        count: usize,
    },
    /// The server asks for a file of this computer.
    #[error("the server asks for a local file, which is never sent")]
    LocalInfile,
}

fn first_byte(found: Option<u8>) -> String {
    found.map_or_else(
        || "an empty packet".to_owned(),
        |byte| format!("a packet beginning with 0x{byte:02x}"),
    )
}
