//! Messages: a type, a length that counts itself, a payload. What a client sends, and errors of the server.
//!
//! Writers append to the caller's buffer. What belongs together is one request: [`execution`] binds, runs and
//! ends with a Sync, so a prepared statement costs one packet each way.

use std::fmt;
use std::io::Write as _;

/// Bytes of the type and the length before each payload of the server.
pub const HEADER_LENGTH: usize = 5;

const VERSION_3: u32 = 196_608;
const SSL_REQUEST: u32 = 80_877_103;

/// OID of a 64-bit integer.
pub const TYPE_INT8: u32 = 20;
/// OID of a string with a limit.
pub const TYPE_VARCHAR: u32 = 1043;
/// OID of a double.
pub const TYPE_FLOAT8: u32 = 701;

/// A value bound to a placeholder of a prepared statement; all travel as text, as sysbench sends them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter<'a> {
    /// SQL NULL.
    Null,
    /// An integer.
    BigInt(i64),
    /// A double.
    Double(f64),
    /// A string, in the session's character set.
    Text(&'a [u8]),
}

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

/// Appends the question whether the server speaks TLS; it answers with one byte, `S` or `N`.
pub fn ssl_request(out: &mut Vec<u8>) {
    message(out, None, |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
}

/// Appends a password, or what was made of it.
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
    message(out, Some(b'Q'), |out| text(out, sql.as_ref()));
}

/// Appends a whole request that prepares `sql` under `name`, with these types of parameters.
pub fn preparation(out: &mut Vec<u8>, name: &str, sql: impl AsRef<[u8]>, types: &[u32]) {
    message(out, Some(b'P'), |out| {
        text(out, name.as_bytes());
        text(out, sql.as_ref());
        short(out, types.len());
        types.iter().for_each(|one| out.extend_from_slice(&one.to_be_bytes()));
    });
    sync(out);
}

/// Appends a whole request that runs the statement `name`; rows come in binary form.
pub fn execution(out: &mut Vec<u8>, name: &str, parameters: &[Parameter<'_>]) {
    message(out, Some(b'B'), |out| {
        out.push(0); // the unnamed portal
        text(out, name.as_bytes());
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
        Parameter::BigInt(number) => write!(out, "{number}").expect("memory takes it"),
        Parameter::Double(number) => write!(out, "{number}").expect("memory takes it"),
        Parameter::Text(text) => out.extend_from_slice(text),
    }
    let length = u32::try_from(out.len() - start - 4).expect("a value is far below 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a whole request that forgets the statement `name`.
pub fn close_statement(out: &mut Vec<u8>, name: &str) {
    message(out, Some(b'C'), |out| {
        out.push(b'S');
        text(out, name.as_bytes());
    });
    sync(out);
}

fn sync(out: &mut Vec<u8>) {
    message(out, Some(b'S'), |_| {});
}

/// Appends rows of a COPY.
pub fn copy_data(out: &mut Vec<u8>, rows: &[u8]) {
    message(out, Some(b'd'), |out| out.extend_from_slice(rows));
}

/// Appends the end of a COPY.
pub fn copy_done(out: &mut Vec<u8>) {
    message(out, Some(b'c'), |_| {});
}

/// The end of a session, a whole message.
pub const TERMINATE: &[u8] = &[b'X', 0, 0, 0, 4];

/// What the server refuses, in its words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// The SQL standard's class of the error, such as `40001`.
    pub sqlstate: [u8; 5],
    /// `ERROR`, `FATAL` or `PANIC`; after the latter two the session is over.
    pub severity: String,
    /// The server's own words.
    pub message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = String::from_utf8_lossy(&self.sqlstate);
        write!(f, "{}: {} ({state})", self.severity, self.message)
    }
}

impl ServerError {
    /// Reads the payload of an ErrorResponse: fields of a letter and a text. Of one that is cut off, what is
    /// there.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Self {
        let mut error = Self { sqlstate: *b"XX000", ..Self::default() };
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
                _ => {}
            }
        }
        error
    }

    /// Appends it as the server does.
    pub fn write(&self, out: &mut Vec<u8>) {
        message(out, Some(b'E'), |out| {
            let fields: [(u8, &[u8]); 3] = [
                (b'V', self.severity.as_bytes()),
                (b'C', &self.sqlstate),
                (b'M', self.message.as_bytes()),
            ];
            for (kind, words) in fields {
                out.push(kind);
                text(out, words);
            }
            out.push(0);
        });
    }
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
        let bytes = written(|out| execution(out, "s1", &parameters));
        let bind =
            b"B\0\0\0\x20\0s1\0\0\0\0\x03\0\0\0\x02-7\xff\xff\xff\xff\0\0\0\x02ab\0\x01\0\x01";
        let expected = [&bind[..], b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\x04"].concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_preparation_names_its_types() {
        let bytes = written(|out| preparation(out, "s", "SELECT $1", &[TYPE_INT8]));
        assert_eq!(bytes, b"P\0\0\0\x16s\0SELECT $1\0\0\x01\0\0\0\x14S\0\0\0\x04");
    }

    #[test]
    fn an_error_is_read_as_it_was_written() {
        let error = ServerError {
            sqlstate: *b"40P01",
            severity: "ERROR".into(),
            message: "deadlock detected".into(),
        };
        let bytes = written(|out| error.write(out));
        assert_eq!(ServerError::parse(&bytes[HEADER_LENGTH..]), error);
        assert_eq!(error.to_string(), "ERROR: deadlock detected (40P01)");
        assert_eq!(ServerError::parse(b"").sqlstate, *b"XX000");
    }
}
