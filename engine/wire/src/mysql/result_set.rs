//! Result sets: the number of columns, their definitions, and rows as text or binary.
//!
//! Only strings are written: the reference server needs no more. Readers know text rows, for the
//! control plane; the hot path never looks into a row.

use super::packet::{begin_packet, end_packet};
use super::{Malformed, command::TYPE_STRING, cursor::Cursor, lenenc};

const UTF8MB4: u16 = 45;
const COLUMN_LENGTH_BYTES: u32 = 480;

/// Appends the first packet of a result set, the number of columns.
pub fn write_column_count(out: &mut Vec<u8>, sequence: &mut u8, columns: u64) {
    let start = begin_packet(out, *sequence);
    lenenc::write_integer(out, columns);
    *sequence = end_packet(out, start);
}

/// Reads the first packet of a result set, the number of columns.
///
/// # Errors
/// [`Malformed`] when it is no number, or more follows it.
pub fn parse_column_count(payload: &[u8]) -> Result<u64, Malformed> {
    let mut cursor = Cursor::new("number of columns", payload);
    let columns = cursor.integer("number")?;
    if cursor.rest().is_empty() { Ok(columns) } else { Err(cursor.malformed("length")) }
}

/// Appends the definition of a string column, or of a placeholder.
pub fn write_column(out: &mut Vec<u8>, sequence: &mut u8, name: &str) {
    let start = begin_packet(out, *sequence);
    for text in ["def", "", "", "", name, ""] {
        lenenc::write_string(out, text.as_bytes());
    }
    out.push(0x0c); // bytes of the fixed part
    out.extend_from_slice(&UTF8MB4.to_le_bytes());
    out.extend_from_slice(&COLUMN_LENGTH_BYTES.to_le_bytes());
    out.extend_from_slice(&[TYPE_STRING, 0, 0, 0, 0, 0]); // type, flags, decimals, filler
    *sequence = end_packet(out, start);
}

/// Appends a row of text.
pub fn write_text_row(out: &mut Vec<u8>, sequence: &mut u8, values: &[Option<&[u8]>]) {
    let start = begin_packet(out, *sequence);
    for value in values {
        match value {
            Some(text) => lenenc::write_string(out, text),
            None => out.push(lenenc::NULL),
        }
    }
    *sequence = end_packet(out, start);
}

/// Reads a row of text.
///
/// # Errors
/// [`Malformed`] when it has another number of values than `columns`.
pub fn parse_text_row(payload: &[u8], columns: usize) -> Result<Vec<Option<&[u8]>>, Malformed> {
    let mut cursor = Cursor::new("row", payload);
    let mut values = Vec::new();
    for _ in 0..columns {
        if cursor.rest().first() == Some(&lenenc::NULL) {
            cursor.u8("NULL")?;
            values.push(None);
        } else {
            values.push(Some(cursor.string("value")?));
        }
    }
    if cursor.rest().is_empty() { Ok(values) } else { Err(cursor.malformed("length")) }
}

/// Appends a binary row of strings.
pub fn write_binary_row(out: &mut Vec<u8>, sequence: &mut u8, values: &[Option<&[u8]>]) {
    let start = begin_packet(out, *sequence);
    out.push(0);
    let bitmap = out.len();
    out.resize(bitmap + (values.len() + 2).div_ceil(8), 0);
    for (index, value) in values.iter().enumerate() {
        match value {
            Some(text) => lenenc::write_string(out, text),
            None => out[bitmap + (index + 2) / 8] |= 1 << ((index + 2) % 8),
        }
    }
    *sequence = end_packet(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::packet::HEADER_LENGTH;

    #[test]
    fn a_text_row_is_read_as_it_was_written() {
        let values = [Some(&b"a"[..]), None, Some(b"")];
        let (mut out, mut sequence) = (Vec::new(), 7);
        write_text_row(&mut out, &mut sequence, &values);
        assert_eq!(sequence, 8);
        assert_eq!(parse_text_row(&out[HEADER_LENGTH..], 3), Ok(values.to_vec()));
        assert!(parse_text_row(&out[HEADER_LENGTH..], 2).is_err());
        assert!(parse_text_row(&out[HEADER_LENGTH..], 4).is_err());
    }

    #[test]
    fn a_binary_row_has_the_documented_bytes() {
        let (mut out, mut sequence) = (Vec::new(), 1);
        write_binary_row(&mut out, &mut sequence, &[Some(b"xy"), None]);
        assert_eq!(out, b"\x05\0\0\x01\0\x08\x02xy");
    }

    #[test]
    fn a_column_count_stands_alone() {
        let (mut out, mut sequence) = (Vec::new(), 1);
        write_column_count(&mut out, &mut sequence, 300);
        assert_eq!(parse_column_count(&out[HEADER_LENGTH..]), Ok(300));
        assert!(parse_column_count(&[1, 1]).is_err());
    }
}
