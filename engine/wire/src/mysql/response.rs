//! The short answers of a server: OK, ERR, EOF and the OK of a prepare; read and written.
//!
//! Writers append a whole packet numbered `*sequence` and advance the number.

use super::packet::{PAYLOAD_LENGTH_MAX, begin_packet, end_packet};
use super::{Malformed, cursor::Cursor, lenenc};

/// First byte of OK.
pub const OK: u8 = 0x00;
/// First byte of EOF, and of the OK in its place.
pub const EOF: u8 = 0xfe;
/// First byte of ERR.
pub const ERR: u8 = 0xff;
/// Status flag: another result follows.
pub const STATUS_MORE_RESULTS: u16 = 0x0008;
/// Status flag: each statement commits by itself.
pub const STATUS_AUTOCOMMIT: u16 = 0x0002;
const EOF_LENGTH_LIMIT: usize = 9;
const SQLSTATE_UNKNOWN: [u8; 5] = *b"HY000";

/// The OK of a server after a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ok {
    /// Rows changed.
    pub affected_rows: u64,
    /// The last generated key.
    pub last_insert_id: u64,
    /// Status flags.
    pub status: u16,
    /// Warnings raised by the statement.
    pub warnings: u16,
}

impl Ok {
    /// Reads OK, also in the place of EOF; text behind the numbers is ignored.
    ///
    /// # Errors
    /// [`Malformed`] when a number is missing.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new("OK", payload);
        if !matches!(cursor.u8("first byte")?, OK | EOF) {
            return Err(cursor.malformed("first byte"));
        }
        Ok(Self {
            affected_rows: cursor.integer("affected rows")?,
            last_insert_id: cursor.integer("last insert id")?,
            status: cursor.u16("status")?,
            warnings: cursor.u16("warnings")?,
        })
    }

    /// Appends OK.
    pub fn write(&self, out: &mut Vec<u8>, sequence: &mut u8) {
        self.write_as(OK, out, sequence);
    }

    /// Appends the end of the rows, in the form agreed by `deprecate_eof`.
    pub fn write_end(&self, out: &mut Vec<u8>, sequence: &mut u8, deprecate_eof: bool) {
        if deprecate_eof {
            self.write_as(EOF, out, sequence);
        } else {
            write_eof(out, sequence, self.status);
        }
    }

    fn write_as(&self, first: u8, out: &mut Vec<u8>, sequence: &mut u8) {
        let start = begin_packet(out, *sequence);
        out.push(first);
        lenenc::write_integer(out, self.affected_rows);
        lenenc::write_integer(out, self.last_insert_id);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&self.warnings.to_le_bytes());
        *sequence = end_packet(out, start);
    }
}

/// True if a payload of `length` bytes ends the rows. A row with a first value longer than 16 MiB
/// begins with the same byte, so the length decides.
#[must_use]
pub const fn ends_rows(first: u8, length: usize, deprecate_eof: bool) -> bool {
    let limit = if deprecate_eof { PAYLOAD_LENGTH_MAX } else { EOF_LENGTH_LIMIT };
    first == EOF && length < limit
}

/// Reads EOF and gives its status flags.
///
/// # Errors
/// [`Malformed`] when it is something else.
pub fn parse_eof(payload: &[u8]) -> Result<u16, Malformed> {
    let mut cursor = Cursor::new("EOF", payload);
    cursor.expect(EOF, "first byte")?;
    cursor.u16("warnings")?;
    let status = cursor.u16("status")?;
    if cursor.rest().is_empty() { Ok(status) } else { Err(cursor.malformed("length")) }
}

/// Appends EOF.
pub fn write_eof(out: &mut Vec<u8>, sequence: &mut u8, status: u16) {
    let start = begin_packet(out, *sequence);
    out.extend_from_slice(&[EOF, 0, 0]);
    out.extend_from_slice(&status.to_le_bytes());
    *sequence = end_packet(out, start);
}

/// The error of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error {code} ({}): {message}", self.sqlstate())]
pub struct ServerError {
    /// The error number: 1213 for a deadlock.
    pub code: u16,
    /// The SQLSTATE; `HY000` when the server did not send it.
    pub sqlstate: [u8; 5],
    /// The server's own words.
    pub message: String,
    /// All that PostgreSQL tells; `None` from MySQL.
    pub of_postgres: Option<Box<crate::postgres::message::ServerError>>,
}

impl ServerError {
    /// An error of MySQL.
    #[must_use]
    pub const fn new(code: u16, sqlstate: [u8; 5], message: String) -> Self {
        Self { code, sqlstate, message, of_postgres: None }
    }

    /// Reads ERR.
    ///
    /// # Errors
    /// [`Malformed`] when it is something else.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new("ERR", payload);
        cursor.expect(ERR, "first byte")?;
        let code = cursor.u16("code")?;
        let mut sqlstate = SQLSTATE_UNKNOWN;
        if cursor.rest().first() == Some(&b'#') {
            cursor.u8("marker")?;
            sqlstate = cursor.array("SQLSTATE")?;
        }
        let message = String::from_utf8_lossy(cursor.rest()).into_owned();
        Ok(Self::new(code, sqlstate, message))
    }

    /// Appends ERR.
    pub fn write(&self, out: &mut Vec<u8>, sequence: &mut u8) {
        let start = begin_packet(out, *sequence);
        out.push(ERR);
        out.extend_from_slice(&self.code.to_le_bytes());
        out.push(b'#');
        out.extend_from_slice(&self.sqlstate);
        out.extend_from_slice(self.message.as_bytes());
        *sequence = end_packet(out, start);
    }

    /// The SQLSTATE as text.
    #[must_use]
    pub fn sqlstate(&self) -> String {
        String::from_utf8_lossy(&self.sqlstate).into_owned()
    }
}

/// The OK of a prepare; definitions of placeholders and columns come after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareOk {
    /// The number to execute it by.
    pub statement_id: u32,
    /// Columns of its rows.
    pub columns: u16,
    /// Its placeholders.
    pub parameters: u16,
}

impl PrepareOk {
    /// Reads the OK of a prepare.
    ///
    /// # Errors
    /// [`Malformed`] when it is something else.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new("OK of a prepared statement", payload);
        cursor.expect(OK, "first byte")?;
        let ok = Self {
            statement_id: cursor.u32("statement id")?,
            columns: cursor.u16("number of columns")?,
            parameters: cursor.u16("number of parameters")?,
        };
        cursor.take(3, "warnings")?;
        Ok(ok)
    }

    /// Appends the OK of a prepare.
    pub fn write(&self, out: &mut Vec<u8>, sequence: &mut u8) {
        let start = begin_packet(out, *sequence);
        out.push(OK);
        out.extend_from_slice(&self.statement_id.to_le_bytes());
        out.extend_from_slice(&self.columns.to_le_bytes());
        out.extend_from_slice(&self.parameters.to_le_bytes());
        out.extend_from_slice(&[0; 3]);
        *sequence = end_packet(out, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::packet::HEADER_LENGTH;

    fn payload(write: impl FnOnce(&mut Vec<u8>, &mut u8)) -> Vec<u8> {
        let (mut out, mut sequence) = (Vec::new(), 1);
        write(&mut out, &mut sequence);
        assert_eq!(sequence, 2);
        out.split_off(HEADER_LENGTH)
    }

    #[test]
    fn ok_is_read_as_it_was_written_in_both_forms() {
        let ok = Ok { affected_rows: 300, last_insert_id: 70_000, status: 2, warnings: 1 };
        assert_eq!(Ok::parse(&payload(|out, number| ok.write(out, number))), Ok(ok));
        let end = payload(|out, number| ok.write_end(out, number, true));
        assert_eq!((end[0], Ok::parse(&end)), (EOF, Ok(ok)));
        let eof = payload(|out, number| ok.write_end(out, number, false));
        assert_eq!(parse_eof(&eof), Ok(2));
    }

    #[test]
    fn an_error_is_read_as_it_was_written() {
        let error = ServerError::new(1213, *b"40001", "Deadlock".into());
        let read = ServerError::parse(&payload(|out, number| error.write(out, number)));
        assert_eq!(read, Ok(error));
    }

    #[test]
    fn an_error_before_the_handshake_has_no_sqlstate() {
        let error = ServerError::parse(b"\xff\x10\x04Too many connections").expect("an error");
        assert_eq!((error.code, error.sqlstate()), (1040, "HY000".to_owned()));
        assert_eq!(error.to_string(), "error 1040 (HY000): Too many connections");
    }

    #[test]
    fn the_ok_of_a_prepare_is_read_as_it_was_written() {
        let ok = PrepareOk { statement_id: 9, columns: 1, parameters: 2 };
        assert_eq!(PrepareOk::parse(&payload(|out, number| ok.write(out, number))), Ok(ok));
    }

    #[test]
    fn only_a_short_payload_ends_the_rows() {
        assert!(ends_rows(EOF, 5, false) && ends_rows(EOF, 7, true));
        assert!(!ends_rows(EOF, 9, false) && ends_rows(EOF, 9, true));
        assert!(!ends_rows(EOF, PAYLOAD_LENGTH_MAX, true));
        assert!(!ends_rows(OK, 5, false));
    }

    #[test]
    fn short_answers_are_refused() {
        assert!(Ok::parse(&[0, 1]).is_err());
        assert!(parse_eof(&[EOF, 0, 0, 0]).is_err());
        assert!(parse_eof(&[EOF, 0, 0, 0, 0, 0]).is_err());
        assert!(ServerError::parse(&[ERR, 1]).is_err());
        assert!(PrepareOk::parse(&[0; 11]).is_err());
    }
}
