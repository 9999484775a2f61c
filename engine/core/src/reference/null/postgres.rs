//! PostgreSQL's ready-made answers, selected by the first words of a statement.

use dbdyno_wire::postgres::message::from_server;

use super::{Client, ReadyMade};
use crate::reference::answer::{RANGE_ROWS, ROW_LENGTH, Shape};

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
/// Version reported to clients.
const VERSION: &str = "18.0 (null responder)";
/// Highest statement number; a higher number ends the session, as each client has room for all
/// lower ones.
const STATEMENT_MAX: usize = 4096;
/// Type of messages before the login is over, which carry no type byte.
const NONE: u8 = 0;

pub(super) struct Postgres {
    /// Messages that complete the login.
    welcome: Vec<u8>,
    /// Description of the only column of all rows.
    description: Vec<u8>,
    /// Rows and command tag, by shape.
    results: [Vec<u8>; Shape::ALL.len()],
}

impl Postgres {
    pub(super) fn new() -> Self {
        let mut welcome = Vec::new();
        from_server(&mut welcome, b'R', &[0; 4]);
        from_server(&mut welcome, b'S', format!("server_version\0{VERSION}\0").as_bytes());
        from_server(&mut welcome, b'K', &[0; 8]);
        ready(&mut welcome);
        let mut description = Vec::new();
        // A column `c` of no table: text (25) of any length, in text format.
        let column = b"\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        from_server(&mut description, b'T', column);
        Self { welcome, description, results: Shape::ALL.map(result) }
    }

    /// Appends the answer to a message; None if the client leaves or breaks the protocol.
    fn message(
        &self,
        client: &mut Client,
        kind: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        match kind {
            NONE if !client.is_logged_in => match u32::from_be_bytes(*payload.first_chunk()?) {
                SSL_REQUEST | GSS_REQUEST => out.push(b'N'),
                _ => {
                    client.is_logged_in = true;
                    out.extend_from_slice(&self.welcome);
                }
            },
            b'Q' => {
                let shape = Shape::of(&String::from_utf8_lossy(payload));
                self.describe(shape, out);
                out.extend_from_slice(&self.results[shape as usize]);
                ready(out);
            }
            b'P' => {
                let (name, rest) = first_text(payload)?;
                let number = number_of(name).filter(|&number| number < STATEMENT_MAX)?;
                if client.prepared.len() <= number {
                    client.prepared.resize(number + 1, Shape::Other);
                }
                client.prepared[number] = Shape::of(&String::from_utf8_lossy(first_text(rest)?.0));
                from_server(out, b'1', b"");
            }
            b'B' => {
                let (_, rest) = first_text(payload)?; // the portal, of which there is one
                client.bound = *client.prepared.get(number_of(first_text(rest)?.0)?)?;
                from_server(out, b'2', b"");
            }
            b'D' if payload.first() == Some(&b'P') && client.bound.has_rows() => {
                self.describe(client.bound, out);
            }
            b'D' => from_server(out, b'n', b""),
            b'E' => out.extend_from_slice(&self.results[client.bound as usize]),
            b'C' => from_server(out, b'3', b""),
            b'S' => ready(out),
            b'H' => {}
            _ => return None,
        }
        Some(())
    }

    fn describe(&self, shape: Shape, out: &mut Vec<u8>) {
        if shape.has_rows() {
            out.extend_from_slice(&self.description);
        }
    }
}

impl ReadyMade for Postgres {
    fn greeting(&self) -> &[u8] {
        &[]
    }

    fn answer(&self, client: &mut Client, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let mut rest = bytes;
        while let Some((kind, payload, later)) = first_message(rest, client.is_logged_in) {
            rest = later;
            self.message(client, kind, payload, out)?;
        }
        Some(bytes.len() - rest.len())
    }
}

/// Rows of this shape, and the command's tag.
fn result(shape: Shape) -> Vec<u8> {
    let (rows, tag) = match shape {
        Shape::Other => (0, "BEGIN".to_owned()),
        Shape::Change => (0, "UPDATE 1".to_owned()),
        Shape::Row => (1, "SELECT 1".to_owned()),
        Shape::Range => (RANGE_ROWS, format!("SELECT {RANGE_ROWS}")),
    };
    let length = u32::try_from(ROW_LENGTH).expect("a row is short");
    let row = [&[0, 1][..], &length.to_be_bytes(), &[b'7'; ROW_LENGTH]].concat();
    let mut out = Vec::new();
    for _ in 0..rows {
        from_server(&mut out, b'D', &row);
    }
    from_server(&mut out, b'C', format!("{tag}\0").as_bytes());
    out
}

/// Reports readiness outside a transaction.
fn ready(out: &mut Vec<u8>) {
    from_server(out, b'Z', b"I");
}

/// Splits the first complete message off `bytes`: type, payload, remaining bytes.
fn first_message(bytes: &[u8], has_type: bool) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = if has_type { bytes.split_first()? } else { (&NONE, bytes) };
    let (length, rest) = rest.split_first_chunk()?;
    let length = u32::from_be_bytes(*length) as usize;
    let (payload, later) = rest.split_at_checked(length.checked_sub(4)?)?;
    Some((*kind, payload, later))
}

/// Splits off the text up to its final zero.
fn first_text(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = payload.iter().position(|&byte| byte == 0)?;
    Some((&payload[..end], &payload[end + 1..]))
}

/// Number at the end of a statement's name: 7 of `s7`, 0 of the unnamed statement.
fn number_of(name: &[u8]) -> Option<usize> {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = str::from_utf8(&name[name.len() - digits..]).ok()?;
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}
