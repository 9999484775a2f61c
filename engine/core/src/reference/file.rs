//! The reference server's side of LOAD DATA LOCAL: requests a file, counts its lines, and discards
//! it.

use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

use dbdyno_wire::mysql::local_infile::FileRequest;
use dbdyno_wire::mysql::response::ServerError;

use super::MESSAGE_LENGTH_MAX;
use super::answer::Answers;
use super::script::Files;
use crate::session::frame;

/// Requests the file named in `sql` and encodes the answer.
pub(super) fn take(
    plan: Files,
    sql: &str,
    reader: &mut impl Read,
    writer: &mut impl Write,
    answers: &mut Answers,
) -> io::Result<()> {
    let name = sql.split('\'').nth(1).unwrap_or_default();
    let requested = if plan == Files::Foreign { "/etc/passwd" } else { name };
    let (mut request, mut sequence) = (Vec::new(), 1);
    FileRequest::new(requested.as_bytes()).write(&mut request, &mut sequence);
    writer.write_all(&request)?;
    let (mut payload, mut bytes, mut lines) = (Vec::new(), 0, 0);
    loop {
        frame::read_payload(reader, &mut sequence, MESSAGE_LENGTH_MAX, &mut payload)?;
        if payload.is_empty() {
            break;
        }
        bytes += payload.len();
        lines += payload.iter().filter(|&&byte| byte == b'\n').count() as u64;
        match plan {
            Files::DiesAfter(limit) if bytes > limit => {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            Files::HangsAfter(limit) if bytes > limit => thread::sleep(Duration::from_secs(60)),
            Files::RefusesAfter(limit) if bytes > limit => {
                let message = "The table 'sbtest1' is full".to_owned();
                ServerError::new(1114, *b"HY000", message).write(&mut answers.out, &mut sequence);
                return Ok(());
            }
            _ => {}
        }
    }
    let taken = if plan == Files::LosesOne { lines - 1 } else { lines };
    answers.ok_numbered(taken, &mut sequence);
    Ok(())
}
