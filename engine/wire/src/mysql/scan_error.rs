//! Why a reply cannot be followed any further: the connection is out of step and must be closed.

use std::fmt;

/// A reply that does not follow the protocol, or asks for what is never given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanError {
    /// A packet has another sequence number than the one that comes next.
    Sequence {
        /// The number that comes next.
        expected: u8,
        /// The number in the packet.
        found: u8,
    },
    /// A packet is too long for its place in the reply.
    Length {
        /// What should be there.
        place: &'static str,
        /// The length in its header.
        found: usize,
    },
    /// A packet's content does not fit its place in the reply.
    Content {
        /// What should be there.
        place: &'static str,
        /// Its first byte; `None` for an empty payload.
        found: Option<u8>,
    },
    /// Bytes came after the end of the reply, or before a request.
    Trailing {
        /// How many in this buffer.
        count: usize,
    },
    /// The server asks for a file of this computer.
    LocalInfile,
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Sequence { expected, found } => {
                write!(f, "wanted packet number {expected} of the reply, found number {found}")
            }
            Self::Length { place, found } => {
                write!(f, "wanted {place}, found a packet of {found} bytes")
            }
            Self::Content { place, found: Some(byte) } => {
                write!(f, "wanted {place}, found a packet beginning with 0x{byte:02x}")
            }
            Self::Content { place, found: None } => {
                write!(f, "wanted {place}, found an empty packet")
            }
            Self::Trailing { count } => {
                write!(f, "wanted nothing after the end of the reply, found {count} bytes")
            }
            Self::LocalInfile => {
                f.write_str("the server asks for a local file, which is never sent")
            }
        }
    }
}

impl std::error::Error for ScanError {}
