//! Reads exactly one payload from a blocking stream, and not a byte beyond it.

use std::io::{self, Read};

use dbdyno_wire::mysql::packet::{HEADER_LENGTH, Header};

/// Replaces `payload` by the next one and advances `sequence` past its packets.
///
/// # Errors
/// Those of the stream; `UnexpectedEof` when it ends, `InvalidData` for a wrong sequence number.
pub(crate) fn read_payload(
    stream: &mut impl Read,
    sequence: &mut u8,
    payload: &mut Vec<u8>,
) -> io::Result<()> {
    read_packets(stream, payload, |found| {
        if found != *sequence {
            let text = format!("packet number {found} where {} comes next", *sequence);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        *sequence = sequence.wrapping_add(1);
        Ok(())
    })
}

/// Replaces `payload` by the next one; its packets may have any number.
///
/// # Errors
/// Those of the stream; `UnexpectedEof` when it ends.
pub(crate) fn read_payload_of_any_number(
    stream: &mut impl Read,
    payload: &mut Vec<u8>,
) -> io::Result<()> {
    read_packets(stream, payload, |_| Ok(()))
}

fn read_packets(
    stream: &mut impl Read,
    payload: &mut Vec<u8>,
    mut check_number: impl FnMut(u8) -> io::Result<()>,
) -> io::Result<()> {
    payload.clear();
    loop {
        let mut bytes = [0; HEADER_LENGTH];
        stream.read_exact(&mut bytes)?;
        let header = Header::parse(bytes);
        check_number(header.sequence)?;
        let read = stream.by_ref().take(header.length as u64).read_to_end(payload)?;
        if read < header.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !header.continues() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> io::Result<(Vec<u8>, usize)> {
        let mut payload = b"old".to_vec();
        read_payload(&mut bytes, &mut 0, &mut payload).map(|()| (payload, bytes.len()))
    }

    #[test]
    fn a_payload_is_read_and_not_a_byte_more() {
        let (payload, left) = read(b"\x02\0\0\0abmore").expect("a payload");
        assert_eq!((&payload[..], left), (&b"ab"[..], 4));
    }

    #[test]
    fn a_stream_that_ends_early_is_an_error() {
        for bytes in [&b""[..], b"\x02\0\0", b"\x02\0\0\0a"] {
            let error = read(bytes).expect_err("an early end");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn a_wrong_sequence_number_is_an_error() {
        let error = read(b"\x00\0\0\x05").expect_err("a wrong number");
        assert_eq!(error.to_string(), "packet number 5 where 0 comes next");
        let mut payload = Vec::new();
        read_payload_of_any_number(&mut &b"\x01\0\0\x05a"[..], &mut payload).expect("a payload");
        assert_eq!(payload, b"a");
    }
}
