//! Reads a single payload from a blocking stream, without a byte beyond it.

use std::io::{self, Read};

use dbdyno_wire::mysql::packet::{HEADER_LENGTH, Header};

/// Reads the next payload, at most `most` bytes, into `payload` and advances `sequence` past its
/// packets.
///
/// # Errors
/// Errors of the stream; `UnexpectedEof` at its end, `InvalidData` for a wrong sequence number, or
/// for a longer payload before its bytes are read.
pub(crate) fn read_payload(
    stream: &mut impl Read,
    sequence: &mut u8,
    most: usize,
    payload: &mut Vec<u8>,
) -> io::Result<()> {
    read_packets(stream, most, payload, |found| {
        if found != *sequence {
            let text = format!("packet number {found} where {} comes next", *sequence);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        *sequence = sequence.wrapping_add(1);
        Ok(())
    })
}

/// Reads the next payload, at most `most` bytes, into `payload`; its packets may have any number.
///
/// # Errors
/// Errors of the stream; `UnexpectedEof` at its end, `InvalidData` for a longer payload.
pub(crate) fn read_payload_of_any_number(
    stream: &mut impl Read,
    most: usize,
    payload: &mut Vec<u8>,
) -> io::Result<()> {
    read_packets(stream, most, payload, |_| Ok(()))
}

fn read_packets(
    stream: &mut impl Read,
    most: usize,
    payload: &mut Vec<u8>,
    mut check_number: impl FnMut(u8) -> io::Result<()>,
) -> io::Result<()> {
    payload.clear();
    loop {
        let mut bytes = [0; HEADER_LENGTH];
        stream.read_exact(&mut bytes)?;
        let header = Header::parse(bytes);
        check_number(header.sequence)?;
        if header.length > most - payload.len() {
            let text = format!("a message longer than {most} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
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
    use proptest::prelude::*;

    fn read(mut bytes: &[u8]) -> io::Result<(Vec<u8>, usize)> {
        let mut payload = b"old".to_vec();
        read_payload(&mut bytes, &mut 0, 40_000_000, &mut payload).map(|()| (payload, bytes.len()))
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
        read_payload_of_any_number(&mut &b"\x01\0\0\x05a"[..], 1, &mut payload).expect("a payload");
        assert_eq!(payload, b"a");
    }

    /// An endless payload of 16 MiB packets.
    struct Endless(usize);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(0xff);
            self.0 += buffer.len();
            Ok(buffer.len())
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_payload_within_the_limit_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..300), most in 0_usize..300
        ) {
            let mut payload = Vec::new();
            if read_payload_of_any_number(&mut &bytes[..], most, &mut payload).is_ok() {
                prop_assert!(payload.len() <= most);
                prop_assert_eq!(&payload[..], &bytes[HEADER_LENGTH..][..payload.len()]);
            }
        }
    }

    #[test]
    fn a_payload_beyond_the_limit_is_refused_by_its_length() {
        let (mut endless, mut payload) = (Endless(0), Vec::new());
        let found = read_payload_of_any_number(&mut endless, 1 << 20, &mut payload);
        let error = found.expect_err("too long");
        assert_eq!(error.to_string(), "a message longer than 1048576 bytes");
        assert_eq!((endless.0, payload.capacity()), (HEADER_LENGTH, 0));
        let found = read_payload_of_any_number(&mut endless, 40_000_000, &mut payload);
        assert_eq!(found.expect_err("too long").kind(), io::ErrorKind::InvalidData);
        assert!(endless.0 < 40_000_000, "{}", endless.0);
    }
}
