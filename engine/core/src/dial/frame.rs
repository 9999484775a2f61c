//! Reads one payload from a blocking stream, exactly: not a byte beyond it.

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
    let header = read_header(stream)?;
    read_from(header, stream, sequence, payload)
}

/// The same for a server that speaks out of turn: whatever number its first packet has.
///
/// # Errors
/// Those of the stream, and `InvalidData` for a wrong number of a later packet.
pub(crate) fn read_payload_out_of_turn(
    stream: &mut impl Read,
    payload: &mut Vec<u8>,
) -> io::Result<()> {
    let header = read_header(stream)?;
    read_from(header, stream, &mut { header.sequence }, payload)
}

fn read_header(stream: &mut impl Read) -> io::Result<Header> {
    let mut bytes = [0; HEADER_LENGTH];
    stream.read_exact(&mut bytes)?;
    Ok(Header::parse(bytes))
}

fn read_from(
    first: Header,
    stream: &mut impl Read,
    sequence: &mut u8,
    payload: &mut Vec<u8>,
) -> io::Result<()> {
    payload.clear();
    let mut header = first;
    loop {
        if header.sequence != *sequence {
            let text = format!("packet number {} where {} comes next", header.sequence, *sequence);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        *sequence = sequence.wrapping_add(1);
        let read = stream.by_ref().take(header.length as u64).read_to_end(payload)?;
        if read < header.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !header.continues() {
            return Ok(());
        }
        header = read_header(stream)?;
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
        read_payload_out_of_turn(&mut &b"\x01\0\0\x05a"[..], &mut payload).expect("a payload");
        assert_eq!(payload, b"a");
    }
}
