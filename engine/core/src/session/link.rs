//! Compression and TLS between the packets of a session and its socket; or neither.
//!
//! A link touches no socket. Its owner hands it each request, sends the bytes it returns, and feeds
//! it the bytes received. So the same link serves the blocking login and then the reactor, and
//! keeps half-read records in between. A plain link returns the request's bytes without a copy.
//!
//! A TLS record may hold no byte of a packet (a session ticket, a key update). TLS's own answer
//! leaves with the next request.

use crate::session::tls;
use dbdyno_wire::kept::{Full, Kept};
use dbdyno_wire::mysql::compressed::{Codec, FrameError, Frames};
use dbdyno_wire::mysql::scanner::ScanError;
use dbdyno_wire::postgres;
use rustls::Connection as Records;
use std::cell::RefCell;
use std::fmt;
use std::io::{BufRead, Write};

/// Compression and encryption of a session's bytes.
#[derive(Debug, Default)]
pub enum Link {
    /// Packets go to the socket as they are.
    #[default]
    Plain,
    /// Packets are compressed or encrypted.
    Wrapped(Box<Wrapped>),
}

/// Compression, TLS, or compression inside TLS.
#[derive(Debug, Default)]
pub struct Wrapped {
    records: Option<Records>,
    frames: Option<Frames>,
    out: Vec<u8>,
}

/// Receiver of decoded bytes, piece by piece.
pub type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), LinkError> + 'a;

/// A thread's compression, shared by its links.
#[derive(Default)]
struct Shared {
    codec: Codec,
    framed: Vec<u8>,
}

thread_local! {
    static SHARED: RefCell<Shared> = RefCell::default();
}

impl Link {
    /// Uses TLS from now on; the handshake is done.
    pub fn encrypt(&mut self, mut records: Records) {
        records.set_buffer_limit(None); // a request is sealed whole, however long
        self.wrapped().records = Some(records);
    }

    /// Uses compressed frames from now on.
    pub fn compress(&mut self) {
        self.wrapped().frames = Some(Frames::default());
    }

    fn wrapped(&mut self) -> &mut Wrapped {
        if matches!(self, Self::Plain) {
            *self = Self::Wrapped(Box::default());
        }
        match self {
            Self::Wrapped(wrapped) => wrapped,
            Self::Plain => unreachable!("just wrapped"),
        }
    }

    /// True if TLS is used.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Self::Wrapped(wrapped) if wrapped.records.is_some())
    }

    /// True if the compressed protocol is used: its frames are numbered, and packets inside may
    /// have any number.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        matches!(self, Self::Wrapped(wrapped) if wrapped.frames.is_some())
    }

    /// The bytes to send for the packets of a new request.
    #[inline]
    pub fn request<'a>(&'a mut self, packets: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Plain => packets,
            Self::Wrapped(wrapped) => wrapped.request(packets),
        }
    }

    /// The bytes to send for further packets of the same request.
    pub fn more<'a>(&'a mut self, packets: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Plain => packets,
            Self::Wrapped(wrapped) => wrapped.encode(packets),
        }
    }

    /// Changes the keys of TLS; gives the message about it for the other end.
    #[cfg(test)]
    pub(crate) fn change_keys(&mut self) -> Vec<u8> {
        let Self::Wrapped(wrapped) = self else { return Vec::new() };
        let Some(records) = &mut wrapped.records else { return Vec::new() };
        records.refresh_traffic_keys().expect("TLS 1.3, after its handshake");
        let mut told = Vec::new();
        while records.wants_write() {
            records.write_tls(&mut told).expect("memory takes every byte");
        }
        told
    }

    /// Takes arrived bytes and hands the packets' bytes in them to `sink`, in pieces cut anywhere.
    /// A part of a record gives no bytes yet.
    ///
    /// # Errors
    /// [`LinkError`] when the bytes break TLS or the compressed protocol, or from `sink`.
    pub fn decode(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), LinkError> {
        match self {
            Self::Plain => sink(bytes),
            Self::Wrapped(wrapped) => wrapped.decode(bytes, sink),
        }
    }
}

impl Wrapped {
    fn request(&mut self, packets: &[u8]) -> &[u8] {
        if let Some(frames) = &mut self.frames {
            frames.begin();
        }
        self.encode(packets)
    }

    fn encode(&mut self, packets: &[u8]) -> &[u8] {
        let Self { records, frames, out } = self;
        out.clear();
        match (frames, records) {
            (None, None) => out.extend_from_slice(packets),
            (None, Some(records)) => seal(records, packets, out),
            (Some(frames), None) => SHARED.with_borrow_mut(|shared| {
                frames.write(packets, &mut shared.codec, out);
            }),
            (Some(frames), Some(records)) => SHARED.with_borrow_mut(|Shared { codec, framed }| {
                framed.clear();
                frames.write(packets, codec, framed);
                seal(records, framed, out);
            }),
        }
        out
    }

    fn decode(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), LinkError> {
        let Self { records, frames, .. } = self;
        let mut unpack = |bytes: &[u8]| match frames {
            None => sink(bytes),
            Some(frames) => unpack(frames, bytes, sink),
        };
        match records {
            None => unpack(bytes),
            Some(records) => open(records, bytes, &mut unpack),
        }
    }
}

fn unpack(frames: &mut Frames, mut bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), LinkError> {
    SHARED.with_borrow_mut(|shared| {
        while let Some(content) = frames.next(&mut bytes, &mut shared.codec)? {
            sink(content)?;
        }
        Ok(())
    })
}

/// Shows the link in a report: `plain`, `compressed`, or TLS's version and cipher suite.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Wrapped(wrapped) = self else { return f.write_str("plain") };
        match (&wrapped.records, &wrapped.frames) {
            (Some(records), None) => f.write_str(&tls::described(records)),
            (Some(records), Some(_)) => write!(f, "{}, compressed", tls::described(records)),
            (None, _) => f.write_str("compressed"),
        }
    }
}

/// Bytes that break TLS, the compressed protocol, or the protocol inside.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LinkError {
    /// The records of TLS.
    #[error("wanted a record of TLS, found {0}")]
    Records(Box<rustls::Error>),
    /// The frames of the compressed protocol.
    #[error(transparent)]
    Frames(#[from] FrameError),
    /// The reply.
    #[error(transparent)]
    Reply(#[from] ScanError),
    /// The reply of PostgreSQL.
    #[error(transparent)]
    Pgsql(#[from] postgres::scanner::ScanError),
    /// An answer too long for a script.
    #[error("an answer of more than {} MiB, which a script cannot take", KEPT_LENGTH_MAX >> 20)]
    TooLong,
    /// All connections together hold too many bytes of answers.
    #[error(transparent)]
    Full(#[from] Full),
}

/// Most bytes kept of an answer for a script.
const KEPT_LENGTH_MAX: usize = 16 << 20;

/// Keeps more bytes of an answer for a script to read its rows.
///
/// # Errors
/// When the answer is longer than a script may fetch at once, or all scripts have fetched too much.
pub(crate) fn keep(kept: &mut Kept, more: &[u8]) -> Result<(), LinkError> {
    if kept.len() + more.len() > KEPT_LENGTH_MAX {
        return Err(LinkError::TooLong);
    }
    Ok(kept.append(more)?)
}

impl From<rustls::Error> for LinkError {
    fn from(error: rustls::Error) -> Self {
        Self::Records(Box::new(error))
    }
}

/// Appends TLS's own messages to `out`, then `bytes` as records. After TLS broke, only the
/// messages.
fn seal(records: &mut Records, bytes: &[u8], out: &mut Vec<u8>) {
    // The buffer has no limit, and a break is reported by the next answer.
    drop(records.writer().write_all(bytes));
    while records.wants_write() {
        records.write_tls(out).expect("memory takes every byte");
    }
}

/// Hands the content of the records in `bytes` to `sink`; an incomplete record is kept for the next
/// call.
fn open(records: &mut Records, mut bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), LinkError> {
    while !bytes.is_empty() {
        let taken = records.read_tls(&mut bytes).map_err(|error| {
            rustls::Error::General(error.to_string()) // a record longer than TLS allows
        })?;
        let state = records.process_new_packets()?;
        let mut left = state.plaintext_bytes_to_read();
        let mut reader = records.reader();
        while left > 0 {
            let length = {
                let piece = reader.fill_buf().expect("so many bytes are there");
                sink(piece)?;
                piece.len()
            };
            reader.consume(length);
            left -= length;
        }
        if taken == 0 {
            return Ok(()); // closed by the other end: the rest is ignored
        }
    }
    Ok(())
}
