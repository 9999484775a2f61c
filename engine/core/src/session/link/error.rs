//! Why the bytes that arrived cannot be followed any further.

use std::fmt;

use dbdyno_wire::mysql::compressed::FrameError;
use dbdyno_wire::mysql::scanner::ScanError;

/// Bytes that break TLS, the compressed protocol, or the protocol inside.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkError {
    /// The records of TLS.
    Records(Box<rustls::Error>),
    /// The frames of the compressed protocol.
    Frames(FrameError),
    /// The reply.
    Reply(ScanError),
}

impl From<rustls::Error> for LinkError {
    fn from(error: rustls::Error) -> Self {
        Self::Records(Box::new(error))
    }
}

impl From<FrameError> for LinkError {
    fn from(error: FrameError) -> Self {
        Self::Frames(error)
    }
}

impl From<ScanError> for LinkError {
    fn from(error: ScanError) -> Self {
        Self::Reply(error)
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Records(error) => write!(f, "wanted a record of TLS, found {error}"),
            Self::Frames(error) => error.fmt(f),
            Self::Reply(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LinkError {}
