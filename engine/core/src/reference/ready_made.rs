//! Answers of the null responder: each is made once, and chosen by the first words of a statement.

use super::answer::{Answers, Shape};
use dbdyno_wire::mysql::command::Command;

/// The bytes of every answer to a statement, by its shape, as text rows and as binary ones.
pub(super) struct ReadyMade {
    text: [Vec<u8>; Shape::ALL.len()],
    binary: [Vec<u8>; Shape::ALL.len()],
}

impl ReadyMade {
    pub(super) fn new(deprecate_eof: bool) -> Self {
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

/// Appends the answer to a command; None when the client leaves, or talks nonsense.
pub(super) fn answer(
    ready: &[ReadyMade; 2],
    deprecate_eof: bool,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let made = &ready[usize::from(deprecate_eof)];
    match Command::parse(payload).ok()? {
        Command::Execute(id, _) => {
            out.extend_from_slice(made.binary.get((id as usize).checked_sub(1)?)?)
        }
        Command::Query(sql) => {
            let shape = Shape::of(&String::from_utf8_lossy(sql));
            out.extend_from_slice(&made.text[shape as usize]);
        }
        Command::Prepare(sql) => {
            let text = String::from_utf8_lossy(sql);
            let parameters = sql.iter().filter(|&&byte| byte == b'?').count();
            let mut answers = Answers::new(deprecate_eof);
            // The statement's number says what to answer, so nothing needs to be kept of it.
            let number = Shape::of(&text) as u32 + 1;
            answers.prepared(number, &text, u16::try_from(parameters).ok()?);
            out.extend_from_slice(&answers.out);
        }
        Command::Ping | Command::InitDb(_) | Command::Reset(_) => {
            out.extend_from_slice(&made.text[Shape::Other as usize]);
        }
        Command::Close(_) => {}
        Command::Quit | Command::Other(_) => return None,
    }
    Some(())
}
