//! Messages of a client, and errors of the server. A message is a type, a length (itself included)
//! and a payload.
//!
//! Writers append to the caller's buffer. Messages sent together are a single request:
//! [`execution`] binds, runs and ends with a Sync, so a prepared statement costs a packet each way.

use crate::{Parameter, decimal};
use std::fmt;
use std::io::Write as _;

/// Bytes of the type and the length before each payload of the server.
pub const HEADER_LENGTH: usize = 5;

const VERSION_3: u32 = 196_608;
const SSL_REQUEST: u32 = 80_877_103;

/// PostgreSQL's number of the type `int8`, used by sysbench for integers.
pub const INT8: u32 = 20;
/// PostgreSQL's number of the type `float8`, used by sysbench for other numbers.
pub const FLOAT8: u32 = 701;
/// PostgreSQL's number of the type `varchar`, used by sysbench for texts.
pub const VARCHAR: u32 = 1043;

/// Appends a message; `write` appends its payload.
fn message(out: &mut Vec<u8>, kind: Option<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend(kind);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = u32::try_from(out.len() - start).expect("a message is far below 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

fn short(out: &mut Vec<u8>, number: usize) {
    let number = u16::try_from(number).expect("counts of parameters have 16 bits");
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends the first message of a session: names and values such as `user` and `database`.
pub fn startup(out: &mut Vec<u8>, parameters: &[(&str, &str)]) {
    message(out, None, |out| {
        out.extend_from_slice(&VERSION_3.to_be_bytes());
        for (name, value) in parameters {
            text(out, name.as_bytes());
            text(out, value.as_bytes());
        }
        out.push(0);
    });
}

/// Appends the request for TLS; the server answers with a byte, `S` or `N`.
pub fn ssl_request(out: &mut Vec<u8>) {
    message(out, None, |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
}

/// Appends a password, or its MD5 proof.
pub fn password(out: &mut Vec<u8>, secret: &[u8]) {
    message(out, Some(b'p'), |out| text(out, secret));
}

/// Appends the first answer of a SASL mechanism.
pub fn sasl_first(out: &mut Vec<u8>, mechanism: &str, data: &[u8]) {
    message(out, Some(b'p'), |out| {
        text(out, mechanism.as_bytes());
        let length = u32::try_from(data.len()).expect("an answer is short");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// Appends a later answer of a SASL mechanism.
pub fn sasl_next(out: &mut Vec<u8>, data: &[u8]) {
    message(out, Some(b'p'), |out| out.extend_from_slice(data));
}

/// Appends a text to be run; the server answers with rows as text.
pub fn query(out: &mut Vec<u8>, sql: impl AsRef<[u8]>) {
    let start = begin_query(out);
    out.extend_from_slice(sql.as_ref());
    end_query(out, start);
}

/// Begins a query, whose text the caller appends; gives the `start` for [`end_query`].
pub fn begin_query(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(b"Q\0\0\0\0");
    start
}

/// Ends the query begun at `start`.
///
/// # Panics
/// When the text is longer than a message may be, 4 GiB.
pub fn end_query(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = u32::try_from(out.len() - start - 1).expect("a text is far below 4 GiB");
    out[start + 1..start + HEADER_LENGTH].copy_from_slice(&length.to_be_bytes());
}

/// Appends the name of statement `id`.
fn name(out: &mut Vec<u8>, id: u32) {
    out.push(b's');
    decimal(out, id.into());
    out.push(0);
}

/// Appends a whole request to prepare `sql` as statement `id`, with the `types` of its first
/// parameters; the server infers the others.
pub fn preparation(out: &mut Vec<u8>, id: u32, sql: impl AsRef<[u8]>, types: &[u32]) {
    message(out, Some(b'P'), |out| {
        name(out, id);
        text(out, sql.as_ref());
        short(out, types.len());
        types.iter().for_each(|one| out.extend_from_slice(&one.to_be_bytes()));
    });
    sync(out);
}

/// Appends a whole request to run statement `id`. Parameters travel as text, as in sysbench; rows
/// come in binary form.
pub fn execution(out: &mut Vec<u8>, id: u32, parameters: &[Parameter<'_>]) {
    message(out, Some(b'B'), |out| {
        out.push(0); // the unnamed portal
        name(out, id);
        short(out, 0); // all parameters are text
        short(out, parameters.len());
        parameters.iter().for_each(|one| value(out, one));
        short(out, 1);
        short(out, 1); // all columns are binary
    });
    message(out, Some(b'E'), |out| out.extend_from_slice(&[0; 5])); // no limit of rows
    sync(out);
}

fn value(out: &mut Vec<u8>, parameter: &Parameter<'_>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match parameter {
        Parameter::Null => {
            out[start..].copy_from_slice(&u32::MAX.to_be_bytes());
            return;
        }
        Parameter::BigInt(number) => decimal(out, *number),
        Parameter::Double(number) => write!(out, "{number}").expect("memory takes it"),
        Parameter::Text(text) => out.extend_from_slice(text),
    }
    let length = u32::try_from(out.len() - start - 4).expect("a value is far below 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn sync(out: &mut Vec<u8>) {
    message(out, Some(b'S'), |_| {});
}

/// Appends rows of a COPY, which `write` appends.
pub fn copy_data(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    message(out, Some(b'd'), write);
}

/// Appends the end of a COPY.
pub fn copy_done(out: &mut Vec<u8>) {
    message(out, Some(b'c'), |_| {});
}

/// The end of a session, a whole message.
pub const TERMINATE: &[u8] = &[b'X', 0, 0, 0, 4];

/// The error of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// The SQLSTATE: `40001` for a serialization failure.
    pub sqlstate: [u8; 5],
    /// `ERROR`, `FATAL` or `PANIC`; after the latter two the session is over.
    pub severity: String,
    /// The server's own words.
    pub message: String,
    /// Place of the error in the statement, in characters from 1; 0 if the server tells none.
    pub position: u32,
    /// Further words as lines of PostgreSQL's client library: detail, hint and context.
    pub more: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = String::from_utf8_lossy(&self.sqlstate);
        write!(f, "{}: {} ({state})", self.severity, self.message)
    }
}

impl ServerError {
    /// True if the error ends the session.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.severity != "ERROR"
    }

    /// Reads the payload of an ErrorResponse: fields of a letter and a text. A truncated payload
    /// gives the fields left.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Self {
        let mut error = Self { sqlstate: *b"XX000", ..Self::default() };
        let mut more = [const { String::new() }; 3];
        for field in payload.split(|&byte| byte == 0) {
            let Some((&kind, text)) = field.split_first() else { break };
            let words = || String::from_utf8_lossy(text).into_owned();
            match kind {
                b'C' => {
                    if let Ok(state) = text.try_into() {
                        error.sqlstate = state;
                    }
                }
                b'V' => error.severity = words(),
                b'S' if error.severity.is_empty() => error.severity = words(),
                b'M' => error.message = words(),
                b'P' => error.position = words().parse().unwrap_or_default(),
                b'D' => more[0] = format!("DETAIL:  {}\n", words()),
                b'H' => more[1] = format!("HINT:  {}\n", words()),
                b'W' => more[2] = format!("CONTEXT:  {}\n", words()),
                _ => {}
            }
        }
        error.more = more.concat();
        error
    }

    /// Appends the error as a server does, without the further words.
    pub fn write(&self, out: &mut Vec<u8>) {
        let position = if self.position > 0 { self.position.to_string() } else { String::new() };
        message(out, Some(b'E'), |out| {
            let fields: [(u8, &[u8]); 4] = [
                (b'V', self.severity.as_bytes()),
                (b'C', &self.sqlstate),
                (b'M', self.message.as_bytes()),
                (b'P', position.as_bytes()),
            ];
            for (kind, words) in fields.into_iter().filter(|(_, words)| !words.is_empty()) {
                out.push(kind);
                text(out, words);
            }
            out.push(0);
        });
    }

    /// The error as PostgreSQL's client library prints it, each line with its end: severity and
    /// message, the place in `sql`, detail, hint and context.
    #[must_use]
    pub fn in_words_of_libpq(&self, sql: &str) -> String {
        let mut text = format!("{}:  {}\n", self.severity, self.message);
        if let Some(index) = (self.position as usize).checked_sub(1) {
            text += &place_in(sql, index);
        }
        text += &self.more;
        text
    }
}

/// Most characters shown of the line with an error, and characters kept behind its place.
const LINE_LENGTH_MAX: usize = 60;
const LENGTH_BEHIND: usize = 10;

/// The line of `sql` with the character `index`, and a caret below that; empty beyond the end.
fn place_in(sql: &str, index: usize) -> String {
    let characters: Vec<char> = sql.chars().collect();
    let Some((before, behind)) = characters.split_at_checked(index) else { return String::new() };
    let ends = |one: &char| matches!(one, '\n' | '\r');
    let ended = String::from_iter(before).replace("\r\n", "\n").matches(['\n', '\r']).count();
    let mut start = before.iter().rposition(ends).map_or(0, |last| last + 1);
    let mut end = behind.iter().position(ends).map_or(characters.len(), |next| index + next);
    let (mut left, mut right) = ("", "");
    if end - start > LINE_LENGTH_MAX {
        let is_near = index + LENGTH_BEHIND <= start + LINE_LENGTH_MAX;
        let most = if is_near { start + LINE_LENGTH_MAX } else { index + LENGTH_BEHIND };
        if most < end {
            (end, right) = (most, "...");
        }
        if end - start > LINE_LENGTH_MAX {
            (start, left) = (end - LINE_LENGTH_MAX, "...");
        }
    }
    let head = format!("LINE {}: {left}", ended + 1);
    let caret = head.len() + index - start;
    let line = String::from_iter(&characters[start..end]).replace('\t', " ");
    format!("{head}{line}{right}\n{:caret$}^\n", "")
}

/// The text of a request that [`query`] has written; `None` for any other.
#[must_use]
pub fn text_of(request: &[u8]) -> Option<&[u8]> {
    request.strip_prefix(b"Q")?.get(HEADER_LENGTH - 1..)?.strip_suffix(&[0])
}

/// The statement run by a request that [`execution`] has written; `None` for any other.
#[must_use]
pub fn executed_by(request: &[u8]) -> Option<u32> {
    let names = request.strip_prefix(b"B")?.get(HEADER_LENGTH - 1..)?;
    let name = names.strip_prefix(b"\0s")?.split(|&byte| byte == 0).next()?;
    str::from_utf8(name).ok()?.parse().ok()
}

/// The values of a row, NULL as `None`; for a truncated payload of DataRow, `None` as a whole.
#[must_use]
pub fn row(payload: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let (count, mut rest) = payload.split_first_chunk()?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk()?;
        let length = u32::from_be_bytes(*length);
        if length == u32::MAX {
            values.push(None);
            rest = behind;
        } else {
            let (value, behind) = behind.split_at_checked(length as usize)?;
            values.push(Some(value));
            rest = behind;
        }
    }
    Some(values)
}

/// Appends a message of the server with this payload; for tests and the reference server.
pub fn from_server(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    message(out, Some(kind), |out| out.extend_from_slice(payload));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn a_startup_has_the_documented_bytes() {
        let bytes = written(|out| startup(out, &[("user", "a"), ("database", "b")]));
        assert_eq!(bytes, b"\0\0\0\x1b\0\x03\0\0user\0a\0database\0b\0\0");
        assert_eq!(written(ssl_request), [0, 0, 0, 8, 4, 210, 22, 47]);
    }

    #[test]
    fn an_execution_is_one_request() {
        let parameters = [Parameter::BigInt(-7), Parameter::Null, Parameter::Text(b"ab")];
        let bytes = written(|out| execution(out, 1, &parameters));
        let bind =
            b"B\0\0\0\x20\0s1\0\0\0\0\x03\0\0\0\x02-7\xff\xff\xff\xff\0\0\0\x02ab\0\x01\0\x01";
        let expected = [&bind[..], b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\x04"].concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_preparation_tells_types_or_leaves_them_to_the_server() {
        let bytes = written(|out| preparation(out, 7, "SELECT $1", &[]));
        assert_eq!(bytes, b"P\0\0\0\x13s7\0SELECT $1\0\0\0S\0\0\0\x04");
        let bytes = written(|out| preparation(out, 7, "SELECT $1", &[INT8, VARCHAR]));
        let parse = b"P\0\0\0\x1bs7\0SELECT $1\0\0\x02\0\0\0\x14\0\0\x04\x13";
        assert_eq!(bytes, [&parse[..], b"S\0\0\0\x04"].concat());
    }

    #[test]
    fn a_row_is_its_values_or_nothing() {
        let payload = b"\0\x02\0\0\0\x02ab\xff\xff\xff\xff";
        assert_eq!(row(payload), Some(vec![Some(&b"ab"[..]), None]));
        for cut in 0..payload.len() {
            assert_eq!(row(&payload[..cut]), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_payload_is_a_row_an_error_or_neither(payload: Vec<u8>) {
            let _ = ServerError::parse(&payload);
            let row = row(&payload).unwrap_or_default();
            let length: usize = row.iter().flatten().map(|value| value.len()).sum();
            proptest::prop_assert!(length <= payload.len());
        }
    }

    #[test]
    fn an_error_is_read_as_it_was_written() {
        let error = ServerError {
            sqlstate: *b"40P01",
            severity: "ERROR".into(),
            message: "deadlock detected".into(),
            position: 7,
            more: String::new(),
        };
        let bytes = written(|out| error.write(out));
        assert_eq!(ServerError::parse(&bytes[HEADER_LENGTH..]), error);
        assert_eq!(error.to_string(), "ERROR: deadlock detected (40P01)");
        assert_eq!(ServerError::parse(b"").sqlstate, *b"XX000");
    }

    #[test]
    fn a_request_tells_its_text_or_its_statement() {
        let text = written(|out| query(out, "BEGIN"));
        let run = written(|out| execution(out, 42, &[Parameter::BigInt(1)]));
        let other = written(|out| preparation(out, 1, "SELECT 1", &[]));
        let told = |bytes| (text_of(bytes), executed_by(bytes));
        assert_eq!(told(&text), (Some(&b"BEGIN"[..]), None));
        assert_eq!(told(&run), (None, Some(42)));
        assert_eq!((told(&other), told(b"")), ((None, None), (None, None)));
    }

    /// As libpq 15.18 prints errors of a server, at the beginning, in the middle and at the end of
    /// long lines.
    #[test]
    fn an_error_points_to_its_place_as_in_libpq() {
        let at = |position, sql: &str| {
            let (severity, message) = ("ERROR".to_owned(), "no".to_owned());
            ServerError { severity, message, position, ..ServerError::default() }
                .in_words_of_libpq(sql)
        };
        assert_eq!(at(0, "SELECT 1"), "ERROR:  no\n");
        assert_eq!(
            at(15, "SELECT c FROM x WHERE id=$1"),
            "ERROR:  no\nLINE 1: SELECT c FROM x WHERE id=$1\n                      ^\n"
        );
        assert_eq!(at(14, "SELECT\r\n1\n\tö x"), "ERROR:  no\nLINE 3:  ö x\n           ^\n");
        assert_eq!(at(9, "SELECT 1"), "ERROR:  no\nLINE 1: SELECT 1\n                ^\n");
        assert_eq!(at(10, "SELECT 1"), "ERROR:  no\n");
        let (before, behind) = ("a".repeat(100), "b".repeat(100));
        let long = format!("{before}X{behind}");
        let shown = |line: &str, caret: usize| {
            format!("ERROR:  no\nLINE 1: {line}\n{:width$}^\n", "", width = 8 + caret)
        };
        assert_eq!(at(1, &long), shown(&format!("{}...", "a".repeat(60)), 0));
        let middle = format!("...{}X{}...", "a".repeat(50), "b".repeat(9));
        assert_eq!(at(101, &long), shown(&middle, 53));
        assert_eq!(at(201, &long), shown(&format!("...{}", "b".repeat(60)), 62));
        let error = ServerError::parse(b"VERROR\0Hh\0Mno\0Dd\0Wc\0\0");
        let words = "ERROR:  no\nDETAIL:  d\nHINT:  h\nCONTEXT:  c\n";
        assert_eq!(error.in_words_of_libpq(""), words);
    }
}
