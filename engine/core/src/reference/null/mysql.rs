//! MySQL's ready-made answers, selected by the first words of a statement.

use dbdyno_wire::mysql::command::Command;
use dbdyno_wire::mysql::handshake::HandshakeResponse;
use dbdyno_wire::mysql::packet::{HEADER_LENGTH, Header};
use dbdyno_wire::mysql::{capability, response};

use super::{Client, ReadyMade};
use crate::reference::answer::{Answers, Shape};
use crate::reference::login;
use crate::reference::script::Script;

pub(super) struct Mysql {
    greeting: Vec<u8>,
    /// For clients whose rows end with EOF, and with OK.
    results: [Results; 2],
}

/// Answers by shape, with text rows and with binary rows.
struct Results {
    text: [Vec<u8>; Shape::ALL.len()],
    binary: [Vec<u8>; Shape::ALL.len()],
}

impl Results {
    fn new(deprecate_eof: bool) -> Self {
        let make = |binary| {
            Shape::ALL.map(|shape| {
                let mut answers = Answers::new(deprecate_eof);
                answers.shaped(shape, binary);
                answers.out
            })
        };
        Self { text: make(false), binary: make(true) }
    }
}

impl Mysql {
    pub(super) fn new() -> Self {
        Self {
            greeting: login::greeting_packet(&Script::default()),
            results: [Results::new(false), Results::new(true)],
        }
    }

    fn command(&self, deprecate_eof: bool, payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let results = &self.results[usize::from(deprecate_eof)];
        match Command::parse(payload).ok()? {
            Command::Execute(id, _) => {
                out.extend_from_slice(results.binary.get((id as usize).checked_sub(1)?)?);
            }
            Command::Query(sql) => {
                let shape = Shape::of(&String::from_utf8_lossy(sql));
                out.extend_from_slice(&results.text[shape as usize]);
            }
            Command::Prepare(sql) => {
                let text = String::from_utf8_lossy(sql);
                let parameters = sql.iter().filter(|&&byte| byte == b'?').count();
                let mut answers = Answers::new(deprecate_eof);
                // The statement's id encodes its answer, so no state is kept for it.
                let number = Shape::of(&text) as u32 + 1;
                answers.prepared(number, &text, u16::try_from(parameters).ok()?);
                out.extend_from_slice(&answers.out);
            }
            Command::Ping | Command::InitDb(_) | Command::Reset(_) => {
                out.extend_from_slice(&results.text[Shape::Other as usize]);
            }
            Command::Close(_) => {}
            Command::Quit | Command::Other(_) => return None,
        }
        Some(())
    }
}

impl ReadyMade for Mysql {
    fn greeting(&self) -> &[u8] {
        &self.greeting
    }

    fn answer(&self, client: &mut Client, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let mut rest = bytes;
        while let Some((sequence, payload, later)) = first_packet(rest) {
            rest = later;
            if client.is_logged_in {
                self.command(client.deprecate_eof, payload, out)?;
            } else {
                let agreed = HandshakeResponse::parse(payload).ok()?.capabilities;
                client.deprecate_eof = agreed & capability::DEPRECATE_EOF != 0;
                client.is_logged_in = true;
                response::Ok::default().write(out, &mut sequence.wrapping_add(1));
            }
        }
        Some(bytes.len() - rest.len())
    }
}

/// Splits the first complete packet off `bytes`: number, payload, remaining bytes.
fn first_packet(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LENGTH>()?;
    let header = Header::parse(*header);
    let (payload, later) = rest.split_at_checked(header.length)?;
    Some((header.sequence, payload, later))
}
