//! Commands of a client: functions to append a whole packet, and [`Command::parse`] for the server.
//!
//! The functions write straight into the caller's buffer, header included, so an event of a
//! workload is a single buffer of ready packets.

use super::packet::{begin_packet, end_packet};
use super::{Malformed, cursor::Cursor, lenenc};
pub use crate::Parameter;

const QUIT: u8 = 0x01;
const INIT_DB: u8 = 0x02;
const QUERY: u8 = 0x03;
const PING: u8 = 0x0e;
const STATEMENT_PREPARE: u8 = 0x16;
const STATEMENT_EXECUTE: u8 = 0x17;
const STATEMENT_CLOSE: u8 = 0x19;
const STATEMENT_RESET: u8 = 0x1a;

/// Column type of a DOUBLE.
const TYPE_DOUBLE: u8 = 0x05;
/// Column type of NULL.
const TYPE_NULL: u8 = 0x06;
/// Column type of a 64-bit integer.
pub const TYPE_BIG_INT: u8 = 0x08;
/// Column type of a string.
pub const TYPE_STRING: u8 = 0xfe;

fn append(out: &mut Vec<u8>, code: u8, body: &[u8]) {
    let start = begin_packet(out, 0);
    out.push(code);
    out.extend_from_slice(body);
    end_packet(out, start);
}

/// Appends `COM_QUERY`: run `sql`, answer with text rows.
pub fn query(out: &mut Vec<u8>, sql: impl AsRef<[u8]>) {
    append(out, QUERY, sql.as_ref());
}

/// Appends `COM_STMT_PREPARE`.
pub fn statement_prepare(out: &mut Vec<u8>, sql: impl AsRef<[u8]>) {
    append(out, STATEMENT_PREPARE, sql.as_ref());
}

/// Appends `COM_STMT_EXECUTE` without a cursor. The types of the parameters are written when
/// `new_params_bound`, as the first execution of a statement requires.
pub fn statement_execute(
    out: &mut Vec<u8>,
    statement_id: u32,
    parameters: &[Parameter<'_>],
    new_params_bound: bool,
) {
    let start = begin_packet(out, 0);
    out.push(STATEMENT_EXECUTE);
    out.extend_from_slice(&statement_id.to_le_bytes());
    out.push(0); // no cursor
    out.extend_from_slice(&1_u32.to_le_bytes()); // iterations
    if !parameters.is_empty() {
        write_nulls(out, parameters);
        out.push(u8::from(new_params_bound));
        if new_params_bound {
            parameters.iter().for_each(|parameter| write_type(out, parameter));
        }
        parameters.iter().for_each(|parameter| write_value(out, parameter));
    }
    end_packet(out, start);
}

/// Appends the bitmap of NULLs, a bit for each parameter.
fn write_nulls(out: &mut Vec<u8>, parameters: &[Parameter<'_>]) {
    let start = out.len();
    out.resize(start + parameters.len().div_ceil(8), 0);
    for (place, parameter) in parameters.iter().enumerate() {
        if matches!(parameter, Parameter::Null) {
            out[start + place / 8] |= 1 << (place % 8);
        }
    }
}

fn write_type(out: &mut Vec<u8>, parameter: &Parameter<'_>) {
    let code = match parameter {
        Parameter::Null => TYPE_NULL,
        Parameter::BigInt(_) => TYPE_BIG_INT,
        Parameter::Double(_) => TYPE_DOUBLE,
        Parameter::Text(_) => TYPE_STRING,
    };
    out.extend_from_slice(&[code, 0]);
}

fn write_value(out: &mut Vec<u8>, parameter: &Parameter<'_>) {
    match parameter {
        Parameter::Null => {}
        Parameter::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
        Parameter::BigInt(value) => out.extend_from_slice(&value.to_le_bytes()),
        Parameter::Text(text) => lenenc::write_string(out, text),
    }
}

/// Appends `COM_STMT_CLOSE`; the server sends no reply.
pub fn statement_close(out: &mut Vec<u8>, statement_id: u32) {
    append(out, STATEMENT_CLOSE, &statement_id.to_le_bytes());
}

/// `COM_QUIT`, a whole packet; the server closes the connection.
pub const QUIT_PACKET: &[u8] = &[1, 0, 0, 0, QUIT];

/// A command as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Close the connection.
    Quit,
    /// Make this database current.
    InitDb(&'a [u8]),
    /// Run this statement.
    Query(&'a [u8]),
    /// Answer OK, to show the session is alive.
    Ping,
    /// Prepare this statement.
    Prepare(&'a [u8]),
    /// Run a prepared statement; the bytes are for [`super::parameter::parse`].
    Execute(u32, &'a [u8]),
    /// Forget a prepared statement, silently.
    Close(u32),
    /// Forget the state of a prepared statement.
    Reset(u32),
    /// A command not supported here, by its code.
    Other(u8),
}

impl<'a> Command<'a> {
    /// Reads the payload of a command.
    ///
    /// # Errors
    /// [`Malformed`] when the payload is empty or ends early.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new("command", payload);
        Ok(match cursor.u8("code")? {
            QUIT => Self::Quit,
            INIT_DB => Self::InitDb(cursor.rest()),
            QUERY => Self::Query(cursor.rest()),
            PING => Self::Ping,
            STATEMENT_PREPARE => Self::Prepare(cursor.rest()),
            STATEMENT_EXECUTE => {
                let statement_id = cursor.u32("statement id")?;
                cursor.take(5, "flags and iterations")?;
                Self::Execute(statement_id, cursor.rest())
            }
            STATEMENT_CLOSE => Self::Close(cursor.u32("statement id")?),
            STATEMENT_RESET => Self::Reset(cursor.u32("statement id")?),
            code => Self::Other(code),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::packet::HEADER_LENGTH;
    use crate::mysql::parameter::{self, Value};

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    fn payload(packet: &[u8]) -> &[u8] {
        &packet[HEADER_LENGTH..]
    }

    #[test]
    fn every_command_is_read_as_it_was_written() {
        let packets = [
            (QUIT_PACKET.to_vec(), Command::Quit),
            (b"\x01\0\0\0\x0e".to_vec(), Command::Ping),
            (written(|out| query(out, "SELECT 1")), Command::Query(b"SELECT 1")),
            (written(|out| statement_prepare(out, "SELECT ?")), Command::Prepare(b"SELECT ?")),
            (b"\x07\0\0\0\x02sbtest".to_vec(), Command::InitDb(b"sbtest")),
            (written(|out| statement_close(out, 7)), Command::Close(7)),
        ];
        for (packet, command) in packets {
            assert_eq!(Command::parse(payload(&packet)), Ok(command));
        }
    }

    #[test]
    fn an_execution_has_the_documented_bytes() {
        let parameters = [Parameter::BigInt(-2), Parameter::Text(b"ab")];
        let packet = written(|out| statement_execute(out, 5, &parameters, true));
        let mut expected = b"\x1b\0\0\0\x17\x05\0\0\0\0\x01\0\0\0\0\x01\x08\0\xfe\0".to_vec();
        expected.extend_from_slice(&(-2_i64).to_le_bytes());
        expected.extend_from_slice(b"\x02ab");
        assert_eq!(packet, expected);
    }

    #[test]
    fn types_may_be_left_out_after_the_first_execution() {
        let parameters = [Parameter::BigInt(3), Parameter::Text(b"x")];
        let mut types = Vec::new();
        for new_params_bound in [true, false] {
            let packet = written(|out| statement_execute(out, 5, &parameters, new_params_bound));
            let Ok(Command::Execute(5, rest)) = Command::parse(payload(&packet)) else {
                panic!("no execution: {packet:?}");
            };
            let values = parameter::parse(rest, 2, &mut types);
            assert_eq!(values, Ok(vec![Value::Integer(3), Value::Text(b"x".to_vec())]));
        }
    }

    #[test]
    fn nulls_and_doubles_are_read_as_they_were_written() {
        let mut parameters = vec![Parameter::Null; 9];
        parameters[1] = Parameter::Double(0.25);
        parameters[8] = Parameter::Text(b"");
        let packet = written(|out| statement_execute(out, 5, &parameters, true));
        let Ok(Command::Execute(5, rest)) = Command::parse(payload(&packet)) else {
            panic!("no execution: {packet:?}");
        };
        let values = parameter::parse(rest, 9, &mut Vec::new()).expect("a whole execution");
        assert_eq!((&values[0], &values[1]), (&Value::Null, &Value::Real(0.25)));
        assert_eq!((&values[7], &values[8]), (&Value::Null, &Value::Text(Vec::new())));
    }

    #[test]
    fn an_execution_without_parameters_ends_after_the_iterations() {
        let packet = written(|out| statement_execute(out, 1, &[], true));
        assert_eq!(Command::parse(payload(&packet)), Ok(Command::Execute(1, &[])));
    }

    #[test]
    fn a_short_command_is_refused() {
        assert!(Command::parse(&[]).is_err());
        assert!(Command::parse(&[STATEMENT_EXECUTE, 1, 0]).is_err());
        assert_eq!(Command::parse(&[0x7f, 1]), Ok(Command::Other(0x7f)));
    }
}
