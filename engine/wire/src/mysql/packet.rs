//! Framing: every packet is a 3-byte length, a sequence number, and the payload.
//!
//! A payload of 2^24-1 bytes or more travels in several packets; all but the last are full. Writers
//! append to the caller's buffer: [`begin_packet`] leaves room for the header, [`end_packet`] fills
//! it in (and cuts a long payload), so a payload is encoded once and never copied into a packet.

/// Bytes of the header before each payload.
pub const HEADER_LENGTH: usize = 4;
/// Longest payload of a packet; after a packet of this length the payload continues in the next.
pub const PAYLOAD_LENGTH_MAX: usize = 0xff_ff_ff;

/// The 4-byte header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of payload in the packet.
    pub length: usize,
    /// Number of the packet in its exchange, modulo 256; the request begins at 0.
    pub sequence: u8,
}

impl Header {
    /// Reads a header; any four bytes are valid.
    #[must_use]
    pub const fn parse(bytes: [u8; HEADER_LENGTH]) -> Self {
        let [low, middle, high, sequence] = bytes;
        Self { length: u32::from_le_bytes([low, middle, high, 0]) as usize, sequence }
    }

    /// True if the payload continues in the next packet.
    #[must_use]
    pub const fn continues(self) -> bool {
        self.length == PAYLOAD_LENGTH_MAX
    }
}

/// Appends room for a header; the payload is appended next. Returns the `start` for [`end_packet`].
pub fn begin_packet(out: &mut Vec<u8>, sequence: u8) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, sequence]);
    start
}

/// Completes the packet begun at `start` and returns the next sequence number.
///
/// # Panics
/// When `start` does not come from [`begin_packet`] on the same buffer.
pub fn end_packet(out: &mut Vec<u8>, start: usize) -> u8 {
    let length = out.len() - start - HEADER_LENGTH;
    let sequence = out[start + 3];
    if length < PAYLOAD_LENGTH_MAX {
        out[start..start + 3].copy_from_slice(&length_bytes(length));
        return sequence.wrapping_add(1);
    }
    let payload = out.split_off(start + HEADER_LENGTH);
    out.truncate(start);
    split_payload(out, &payload, sequence)
}

fn split_payload(out: &mut Vec<u8>, payload: &[u8], mut sequence: u8) -> u8 {
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(PAYLOAD_LENGTH_MAX));
        out.extend_from_slice(&length_bytes(now.len()));
        out.push(sequence);
        out.extend_from_slice(now);
        sequence = sequence.wrapping_add(1);
        if now.len() < PAYLOAD_LENGTH_MAX {
            return sequence;
        }
        rest = later;
    }
}

/// The number of packets in a request of `length` bytes, headers included, modulo 256: its reply
/// begins with this sequence number.
#[must_use]
pub const fn packets_in(length: usize) -> u8 {
    (length / (HEADER_LENGTH + PAYLOAD_LENGTH_MAX) + 1) as u8
}

fn length_bytes(length: usize) -> [u8; 3] {
    let [low, middle, high, ..] = length.to_le_bytes();
    [low, middle, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(payload: &[u8], sequence: u8) -> (Vec<u8>, u8) {
        let mut out = b"before".to_vec();
        let start = begin_packet(&mut out, sequence);
        out.extend_from_slice(payload);
        let next = end_packet(&mut out, start);
        (out.split_off(6), next)
    }

    #[test]
    fn a_short_payload_is_one_packet() {
        assert_eq!(framed(b"abc", 0), (b"\x03\0\0\0abc".to_vec(), 1));
        assert_eq!(framed(b"", 255), (b"\0\0\0\xff".to_vec(), 0));
    }

    #[test]
    fn a_full_packet_is_followed_by_an_empty_one() {
        let (bytes, next) = framed(&vec![7; PAYLOAD_LENGTH_MAX], 3);
        assert_eq!(bytes[..4], [0xff, 0xff, 0xff, 3]);
        assert_eq!(bytes[HEADER_LENGTH + PAYLOAD_LENGTH_MAX..], [0, 0, 0, 4]);
        assert_eq!(next, 5);
    }

    #[test]
    fn a_long_payload_continues_in_the_next_packet() {
        let (bytes, next) = framed(&vec![7; PAYLOAD_LENGTH_MAX + 2], 0);
        assert_eq!(bytes[HEADER_LENGTH + PAYLOAD_LENGTH_MAX..], [2, 0, 0, 1, 7, 7]);
        assert_eq!(next, 2);
        assert_eq!((packets_in(bytes.len()), packets_in(HEADER_LENGTH + 1)), (2, 1));
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = Header::parse([0x01, 0x02, 0x03, 9]);
        assert_eq!(header, Header { length: 0x03_02_01, sequence: 9 });
        assert!(!header.continues());
        assert!(Header::parse([0xff, 0xff, 0xff, 0]).continues());
    }
}
