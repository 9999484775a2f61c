//! The compressed protocol: packets inside frames, compressed by zlib where it pays.
//!
//! A frame is a 3-byte length, a number, the 3-byte length of its content before compression (0
//! when it is not compressed), and the content: any piece of the stream of packets. Frames are
//! numbered like packets, from 0 with each request, and the numbers go on in the reply.
//!
//! zlib's state is large and each frame is a separate stream, so a single [`Codec`] serves any
//! number of sessions in turn; [`Frames`] is a session's state between two reads. Both lengths of a
//! frame come from the other end and may be wrong: memory grows with the bytes arrived and the
//! bytes produced by zlib, never with a length claimed in a header.

use crate::kept::{Full, Kept};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::fmt;

/// Bytes before the content of each frame.
pub const FRAME_HEADER_LENGTH: usize = 7;
/// Longest content of a frame, compressed or not.
pub const CONTENT_LENGTH_MAX: usize = 0xff_ff_ff;
/// Shortest content worth compressing, as in all clients.
const WORTH_COMPRESSING: usize = 50;
/// Growth step of the buffer for decompressed content.
const GROWTH: usize = 64 * 1024;
/// Number of empty frames in a row at which they are refused.
const EMPTY_MAX: u8 = 100;

/// zlib's two streams and their last content.
pub struct Codec {
    deflate: Compress,
    inflate: Decompress,
    content: Kept,
}

impl Default for Codec {
    fn default() -> Self {
        Self {
            deflate: Compress::new(Compression::default(), true),
            inflate: Decompress::new(true),
            content: Kept::default(),
        }
    }
}

/// State of a session: the number of the next frame, and the arrived part of an incomplete frame.
#[derive(Debug, Default)]
pub struct Frames {
    sequence: u8,
    /// Empty frames since the last frame with content.
    empty: u8,
    held: Kept,
    /// True if `held` is a whole frame already handed out.
    is_spent: bool,
}

/// An unreadable frame; the session is out of step and must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame has the wrong number.
    #[error("wanted compressed frame number {expected}, found number {found}")]
    Sequence {
        /// The number due.
        expected: u8,
        /// The number in the frame.
        found: u8,
    },
    /// The content is no zlib stream, or does not end with the frame.
    #[error("wanted a frame compressed by zlib, found something else")]
    Content,
    /// Too many empty frames in a row.
    #[error("wanted a compressed frame with content, found {EMPTY_MAX} empty ones")]
    Empty,
    /// The content has another length than the frame announced.
    #[error("wanted {announced} bytes in a compressed frame, found {found} bytes")]
    Length {
        /// Bytes announced.
        announced: usize,
        /// Bytes found; more may have followed.
        found: usize,
    },
    /// The frame must be kept until its rest arrives or until it is read, and there is no room.
    #[error(transparent)]
    Full(#[from] Full),
}

#[derive(Clone, Copy)]
struct FrameHeader {
    length: usize,
    sequence: u8,
    /// Length of the content before compression; 0 when it is not compressed.
    content_length: usize,
}

impl FrameHeader {
    fn parse(bytes: [u8; FRAME_HEADER_LENGTH]) -> Self {
        let [a, b, c, sequence, d, e, f] = bytes;
        let length = |low, middle, high| u32::from_le_bytes([low, middle, high, 0]) as usize;
        Self { length: length(a, b, c), sequence, content_length: length(d, e, f) }
    }

    fn bytes(self) -> [u8; FRAME_HEADER_LENGTH] {
        let [a, b, c, ..] = self.length.to_le_bytes();
        let [d, e, f, ..] = self.content_length.to_le_bytes();
        [a, b, c, self.sequence, d, e, f]
    }
}

impl Frames {
    /// Begins a request: frames are numbered from 0 again.
    pub fn begin(&mut self) {
        self.sequence = 0;
    }

    /// Appends `bytes` to `out` in as many frames as they need.
    pub fn write(&mut self, mut bytes: &[u8], codec: &mut Codec, out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let (content, later) = bytes.split_at(bytes.len().min(CONTENT_LENGTH_MAX));
            let start = out.len();
            out.extend_from_slice(&[0; FRAME_HEADER_LENGTH]);
            let content_length = codec.append(content, out);
            let length = out.len() - start - FRAME_HEADER_LENGTH;
            let header = FrameHeader { length, sequence: self.sequence, content_length };
            out[start..start + FRAME_HEADER_LENGTH].copy_from_slice(&header.bytes());
            self.sequence = self.sequence.wrapping_add(1);
            bytes = later;
        }
    }

    /// Takes bytes from the front of `rest`; gives the content of the next frame once it is
    /// complete, and `None` when all bytes are taken.
    ///
    /// # Errors
    /// [`FrameError`] when the bytes are no frame, or a frame out of order.
    pub fn next<'a, 'b: 'a>(
        &'a mut self,
        rest: &mut &'b [u8],
        codec: &'a mut Codec,
    ) -> Result<Option<&'a [u8]>, FrameError> {
        self.forget_spent();
        if self.held.is_empty()
            && let Some(&bytes) = rest.first_chunk()
        {
            let header = self.check(bytes)?;
            if let Some((frame, later)) = rest.split_at_checked(FRAME_HEADER_LENGTH + header.length)
            {
                *rest = later;
                self.count(header)?;
                return codec.content(header, &frame[FRAME_HEADER_LENGTH..]).map(Some);
            }
        }
        self.hold(FRAME_HEADER_LENGTH, rest)?;
        let Some(&bytes) = self.held.first_chunk() else { return Ok(None) };
        let header = self.check(bytes)?;
        self.hold(FRAME_HEADER_LENGTH + header.length, rest)?;
        if self.held.len() < FRAME_HEADER_LENGTH + header.length {
            return Ok(None);
        }
        self.count(header)?;
        self.is_spent = true;
        codec.content(header, &self.held[FRAME_HEADER_LENGTH..]).map(Some)
    }

    /// Counts a whole frame. Refuses an endless row of empty frames, which would look like
    /// progress.
    fn count(&mut self, header: FrameHeader) -> Result<(), FrameError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.empty = if header.length == 0 { self.empty.saturating_add(1) } else { 0 };
        if self.empty < EMPTY_MAX { Ok(()) } else { Err(FrameError::Empty) }
    }

    fn forget_spent(&mut self) {
        if std::mem::take(&mut self.is_spent) {
            self.held.clear();
        }
    }

    /// Moves bytes from the front of `rest` to `held` until it has `length` bytes.
    fn hold(&mut self, length: usize, rest: &mut &[u8]) -> Result<(), Full> {
        let missing = length.saturating_sub(self.held.len());
        let (now, later) = rest.split_at(missing.min(rest.len()));
        *rest = later;
        self.held.append(now)
    }

    fn check(&self, bytes: [u8; FRAME_HEADER_LENGTH]) -> Result<FrameHeader, FrameError> {
        let header = FrameHeader::parse(bytes);
        if header.sequence == self.sequence {
            Ok(header)
        } else {
            Err(FrameError::Sequence { expected: self.sequence, found: header.sequence })
        }
    }
}

impl Codec {
    /// Appends `content`, compressed if it gets shorter; gives the header's length before
    /// compression, 0 if not compressed.
    fn append(&mut self, content: &[u8], out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.reserve(content.len());
        if content.len() >= WORTH_COMPRESSING {
            self.deflate.reset();
            let status = self.deflate.compress_vec(content, out, FlushCompress::Finish);
            if matches!(status, Ok(Status::StreamEnd)) && out.len() - start < content.len() {
                return content.len();
            }
            out.truncate(start);
        }
        out.extend_from_slice(content);
        0
    }

    /// The content of a complete frame.
    fn content<'a>(
        &'a mut self,
        header: FrameHeader,
        body: &'a [u8],
    ) -> Result<&'a [u8], FrameError> {
        let announced = header.content_length;
        if announced == 0 {
            return Ok(body);
        }
        self.content.clear();
        self.inflate.reset(true);
        loop {
            let missing = announced.saturating_sub(self.content.len());
            let content = self.content.room(missing.clamp(1, GROWTH))?;
            let before = (self.inflate.total_in(), content.len());
            let left = &body[before.0 as usize..];
            let status = self.inflate.decompress_vec(left, content, FlushDecompress::None);
            let found = content.len();
            let is_at_rest = before == (self.inflate.total_in(), found);
            match status {
                Ok(Status::StreamEnd) if self.inflate.total_in() < body.len() as u64 => {
                    return Err(FrameError::Content);
                }
                Ok(Status::StreamEnd) if found == announced => return Ok(&self.content),
                Ok(Status::StreamEnd) => return Err(FrameError::Length { announced, found }),
                Ok(_) if found > announced => return Err(FrameError::Length { announced, found }),
                Ok(_) if !is_at_rest => {}
                _ => return Err(FrameError::Content),
            }
        }
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}
