//! `LOAD DATA LOCAL INFILE`: the server asks for a file by its name, the client streams it as
//! packets, and an empty packet ends it. The server then answers the statement with OK or ERR.
//!
//! A server may ask at any time for any file of the client. So only sessions for loading offer the
//! capability, and they answer only a request for the file named in their own statement
//! ([`FileRequest::is_for`]).

use super::packet::{begin_packet, end_packet};
use super::{Malformed, cursor::Cursor, lenenc};

/// First byte of the request; in a row it would be NULL.
pub const REQUEST: u8 = lenenc::NULL;

/// The server's wish for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRequest<'a> {
    name: &'a [u8],
}

impl<'a> FileRequest<'a> {
    /// A request for the file `name`.
    #[must_use]
    pub const fn new(name: &'a [u8]) -> Self {
        Self { name }
    }

    /// Reads the request.
    ///
    /// # Errors
    /// [`Malformed`] when it is something else.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new("request for a file", payload);
        cursor.expect(REQUEST, "first byte")?;
        Ok(Self { name: cursor.rest() })
    }

    /// True if the request is for the file `name`, byte for byte.
    #[must_use]
    pub fn is_for(&self, name: &str) -> bool {
        self.name == name.as_bytes()
    }

    /// Appends the request.
    pub fn write(&self, out: &mut Vec<u8>, sequence: &mut u8) {
        let start = begin_packet(out, *sequence);
        out.push(REQUEST);
        out.extend_from_slice(self.name);
        *sequence = end_packet(out, start);
    }
}

/// Appends the empty packet at the end of a file.
pub fn write_end(out: &mut Vec<u8>, sequence: &mut u8) {
    let start = begin_packet(out, *sequence);
    *sequence = end_packet(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::packet::HEADER_LENGTH;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let (mut out, mut sequence) = (Vec::new(), 1);
        FileRequest::new(b"rows").write(&mut out, &mut sequence);
        assert_eq!((&out[..], sequence), (&b"\x05\0\0\x01\xfbrows"[..], 2));
        let read = FileRequest::parse(&out[HEADER_LENGTH..]).expect("a request");
        assert!(read.is_for("rows"));
        for other in ["", "row", "rows ", "rows\0", "/etc/passwd"] {
            assert!(!read.is_for(other), "{other:?}");
        }
    }

    #[test]
    fn an_empty_packet_ends_a_file() {
        let (mut out, mut sequence) = (Vec::new(), 255);
        write_end(&mut out, &mut sequence);
        assert_eq!((&out[..], sequence), (&b"\0\0\0\xff"[..], 0));
    }

    proptest! {
        /// Only a well-formed request is read as a request, and only for the name in it.
        #[test]
        fn only_a_request_for_our_own_name_is_one(payload: Vec<u8>, ours in "[a-z ]{1,12}") {
            match FileRequest::parse(&payload) {
                Ok(request) => {
                    prop_assert_eq!(payload[0], REQUEST);
                    prop_assert_eq!(request.is_for(&ours), &payload[1..] == ours.as_bytes());
                }
                Err(_) => prop_assert_ne!(payload.first(), Some(&REQUEST)),
            }
        }
    }
}
