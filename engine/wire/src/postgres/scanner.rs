//! Follows the reply of a request to its ReadyForQuery, counting rows and skipping their content.
//!
//! It is fed the bytes received, cut at any place. A row completely in the buffer costs a look at
//! its five bytes of header. Of whole messages only the fields of an error are copied; of a cut
//! message, all but rows.

use super::message::{HEADER_LENGTH, ServerError};
use crate::Summary;

/// The outcome of a reply. A prepared statement does not report its columns: they count as 1 if it
/// gave rows or could have.
pub type Outcome = crate::Outcome<ServerError>;

/// A reply out of step with the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// A message out of place in a reply, or an invalid length.
    #[error("wanted a message of a reply, found one of type 0x{kind:02x} and length {length}")]
    Content {
        /// Its type.
        kind: u8,
        /// The length in its header.
        length: u32,
    },
    /// The reply is longer than the limit.
    #[error("a reply longer than {} MiB", REPLY_LENGTH_MAX >> 20)]
    Endless,
    /// Bytes came after the end of the reply, or before a request.
    #[error("wanted nothing after the end of the reply, found {count} bytes")]
    Trailing {
        /// Number of bytes in this buffer.
        count: usize,
    },
}

const REPLY_LENGTH_MAX: u64 = 1 << 30;
/// Longest message other than a row.
const NOT_ROW_LENGTH_MAX: u32 = 1 << 20;
/// Most bytes kept of a message.
const KEPT_LENGTH_MAX: usize = 4096;

/// Follows the replies of a single connection.
#[derive(Debug, Default)]
pub struct Scanner {
    is_awaited: bool,
    summary: Summary,
    error: Option<ServerError>,
    header: [u8; HEADER_LENGTH],
    header_filled: usize,
    /// Payload bytes of the current message still to come.
    missing: usize,
    /// The payload kept of a cut message.
    kept: Vec<u8>,
}

impl Scanner {
    /// Prepares for the reply to a request just sent and forgets the reply before.
    pub fn begin(&mut self) {
        self.is_awaited = true;
        self.summary = Summary::default();
        self.error = None;
        self.header_filled = 0;
    }

    /// Takes arrived bytes; gives the outcome with the last byte of the reply.
    ///
    /// # Errors
    /// [`ScanError`] when the bytes break the protocol. The session cannot go on then.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Outcome>, ScanError> {
        self.summary.bytes += bytes.len() as u64;
        let mut result = self.follow(bytes);
        if matches!(result, Ok(None)) && self.summary.bytes > REPLY_LENGTH_MAX {
            result = Err(ScanError::Endless);
        }
        if !matches!(result, Ok(None)) {
            self.is_awaited = false;
        }
        result
    }

    fn follow(&mut self, bytes: &[u8]) -> Result<Option<Outcome>, ScanError> {
        let mut rest = bytes;
        if !self.is_awaited {
            return end(rest).map(|()| None);
        }
        while !rest.is_empty() {
            if self.header_filled == 0 {
                rest = &rest[self.skip_rows(rest)..];
                if let Some((kind, payload, later)) = whole_message(rest) {
                    check(kind, payload.len())?;
                    rest = later;
                    if self.take(kind, payload) {
                        return end(rest).map(|()| Some(self.outcome()));
                    }
                    continue;
                }
            }
            let Some(kind) = self.take_part(&mut rest)? else { continue };
            let kept = std::mem::take(&mut self.kept);
            let is_over = self.take(kind, &kept);
            self.kept = kept;
            self.kept.clear();
            if is_over {
                return end(rest).map(|()| Some(self.outcome()));
            }
        }
        Ok(None)
    }

    /// Counts the complete rows at the front of `bytes`; returns their length.
    fn skip_rows(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        let mut rows = 0;
        while let Some(&[b'D', a, b, c, d]) = rest.first_chunk() {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            let Some(later) = rest.get(1 + length..).filter(|_| length >= 4) else { break };
            rest = later;
            rows += 1;
        }
        self.summary.rows += rows;
        bytes.len() - rest.len()
    }

    /// Takes bytes of a cut message; gives its type once it is complete.
    fn take_part(&mut self, rest: &mut &[u8]) -> Result<Option<u8>, ScanError> {
        if self.header_filled < HEADER_LENGTH {
            let wanted = HEADER_LENGTH - self.header_filled;
            let (now, later) = rest.split_at(wanted.min(rest.len()));
            self.header[self.header_filled..][..now.len()].copy_from_slice(now);
            self.header_filled += now.len();
            *rest = later;
            if self.header_filled < HEADER_LENGTH {
                return Ok(None);
            }
            let [kind, length @ ..] = self.header;
            let length = u32::from_be_bytes(length);
            let payload = length.checked_sub(4).ok_or(ScanError::Content { kind, length })?;
            check(kind, payload as usize)?;
            self.missing = payload as usize;
            self.kept.clear();
        }
        let (now, later) = rest.split_at(self.missing.min(rest.len()));
        *rest = later;
        self.missing -= now.len();
        if self.header[0] != b'D' {
            let room = KEPT_LENGTH_MAX.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&now[..now.len().min(room)]);
        }
        if self.missing > 0 {
            return Ok(None);
        }
        self.header_filled = 0;
        Ok(Some(self.header[0]))
    }

    /// Takes a message; true if it ends the reply.
    fn take(&mut self, kind: u8, payload: &[u8]) -> bool {
        match kind {
            b'D' => self.summary.rows += 1,
            b'T' => {
                let count = payload.first_chunk().map_or(0, |count| u16::from_be_bytes(*count));
                self.summary.columns = u64::from(count);
            }
            b'C' => self.take_tag(payload),
            b'E' => {
                let error = ServerError::parse(payload);
                let is_last = error.is_fatal();
                self.error.get_or_insert(error);
                // The server closes the connection and sends no ReadyForQuery.
                return is_last;
            }
            b'Z' => return true,
            _ => {}
        }
        false
    }

    /// Takes a command's tag: its name and, at the end, its number of rows.
    fn take_tag(&mut self, payload: &[u8]) {
        self.summary.results = self.summary.results.saturating_add(1);
        let tag = payload.strip_suffix(&[0]).unwrap_or(payload);
        let mut words = tag.split(|&byte| byte == b' ');
        let name = words.next().unwrap_or_default();
        match name {
            b"SELECT" | b"FETCH" | b"SHOW" => {
                self.summary.columns = self.summary.columns.max(1);
            }
            _ => {
                let count = words.next_back().and_then(|word| str::from_utf8(word).ok());
                let changed = count.and_then(|word| word.parse().ok()).unwrap_or(0_u64);
                self.summary.affected_rows = self.summary.affected_rows.saturating_add(changed);
                let columns = self.summary.columns.max(1);
                self.summary.columns = if self.summary.rows == 0 { 0 } else { columns };
            }
        }
    }

    fn outcome(&mut self) -> Outcome {
        match self.error.take() {
            Some(error) => Outcome::Failed(error),
            None => Outcome::Done(self.summary),
        }
    }
}

/// Checks the bytes after a reply: only messages allowed at any time, among them an error before
/// the end of the session.
fn end(mut rest: &[u8]) -> Result<(), ScanError> {
    while let Some((b'A' | b'E' | b'N' | b'S', _, later)) = whole_message(rest) {
        rest = later;
    }
    if rest.is_empty() { Ok(()) } else { Err(ScanError::Trailing { count: rest.len() }) }
}

/// Refuses a message out of place in a reply, or too long for its type.
fn check(kind: u8, payload: usize) -> Result<(), ScanError> {
    let is_known = b"123ACDEINSTZnst".contains(&kind);
    let length = u32::try_from(payload + 4).unwrap_or(u32::MAX);
    if !is_known || (kind != b'D' && length > NOT_ROW_LENGTH_MAX) {
        return Err(ScanError::Content { kind, length });
    }
    Ok(())
}

/// Splits off a complete message: type, payload, and the bytes after it.
fn whole_message(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, a, b, c, d], rest) = bytes.split_first_chunk::<HEADER_LENGTH>()?;
    let payload = (u32::from_be_bytes([a, b, c, d]) as usize).checked_sub(4)?;
    let (payload, later) = rest.split_at_checked(payload)?;
    Some((kind, payload, later))
}

#[cfg(test)]
mod tests {
    use super::super::message::from_server;
    use super::*;
    use proptest::prelude::*;

    fn reply(messages: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (kind, payload) in messages {
            from_server(&mut out, *kind, payload);
        }
        out
    }

    fn scanned(bytes: &[u8], cuts: &[usize]) -> Result<Option<Outcome>, ScanError> {
        let mut scanner = Scanner::default();
        scanner.begin();
        let mut rest = bytes;
        for &cut in cuts {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            if let Some(outcome) = scanner.feed(now)? {
                assert!(later.is_empty());
                return Ok(Some(outcome));
            }
            rest = later;
        }
        scanner.feed(rest)
    }

    fn rows(count: usize) -> Vec<u8> {
        let mut messages: Vec<(u8, &[u8])> = vec![(b'2', b"")];
        messages.extend((0..count).map(|_| (b'D', &b"\0\x01\0\0\0\x03abc"[..])));
        messages.extend([(b'C', &b"SELECT 100\0"[..]), (b'Z', b"T")]);
        reply(&messages)
    }

    #[test]
    fn rows_are_counted_and_not_read() {
        let bytes = rows(100);
        let Ok(Some(Outcome::Done(summary))) = scanned(&bytes, &[]) else { panic!("not done") };
        assert_eq!((summary.rows, summary.columns, summary.affected_rows), (100, 1, 0));
        assert_eq!(summary.bytes, bytes.len() as u64);
    }

    #[test]
    fn a_change_tells_its_rows_and_a_command_none() {
        for (tag, affected) in
            [("UPDATE 3\0", 3), ("INSERT 0 2\0", 2), ("DELETE 0\0", 0), ("BEGIN\0", 0)]
        {
            let bytes = reply(&[(b'C', tag.as_bytes()), (b'Z', b"I")]);
            let Ok(Some(Outcome::Done(summary))) = scanned(&bytes, &[]) else { panic!("{tag}") };
            assert_eq!((summary.affected_rows, summary.columns), (affected, 0), "{tag}");
        }
    }

    /// `INSERT … RETURNING` and `EXPLAIN` do not report their columns when executed.
    #[test]
    fn a_prepared_statement_that_gave_rows_has_columns_whatever_its_tag() {
        for (tag, affected) in [("INSERT 0 1\0", 1), ("EXPLAIN\0", 0)] {
            let row = b"\0\x01\0\0\0\x01x";
            let bytes = reply(&[(b'2', b""), (b'D', row), (b'C', tag.as_bytes()), (b'Z', b"I")]);
            let Ok(Some(Outcome::Done(summary))) = scanned(&bytes, &[]) else { panic!("{tag}") };
            assert_eq!((summary.rows, summary.columns, summary.affected_rows), (1, 1, affected));
        }
    }

    #[test]
    fn an_error_ends_with_the_reply_and_a_fatal_one_at_once() {
        let error = b"SERROR\0VERROR\0C23505\0Mduplicate key\0\0";
        let bytes = reply(&[(b'2', b""), (b'E', error), (b'Z', b"E")]);
        let Ok(Some(Outcome::Failed(failed))) = scanned(&bytes, &[]) else { panic!("not failed") };
        assert_eq!((&failed.sqlstate, &failed.message[..]), (b"23505", "duplicate key"));
        let fatal = reply(&[(b'E', b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0")]);
        assert!(matches!(scanned(&fatal, &[]), Ok(Some(Outcome::Failed(_)))));
    }

    #[test]
    fn notices_and_settings_may_come_at_any_time() {
        let bytes = reply(&[
            (b'N', b"SNOTICE\0\0"),
            (b'S', b"TimeZone\0UTC\0"),
            (b'C', b"SET\0"),
            (b'Z', b"I"),
        ]);
        assert!(matches!(scanned(&bytes, &[]), Ok(Some(Outcome::Done(_)))));
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bytes in
            [&b"x\0\0\0\x04"[..], b"C\0\0\0\x03", b"G\0\0\0\x07\0\0\0", b"C\x7f\xff\xff\xff"]
        {
            assert!(matches!(scanned(bytes, &[]), Err(ScanError::Content { .. })), "{bytes:?}");
        }
        let more = [rows(1), b"Z".to_vec()].concat();
        assert_eq!(scanned(&more, &[]), Err(ScanError::Trailing { count: 1 }));
        let last_words = b"E\0\0\0\x0cSFATAL\0\0";
        let behind = [rows(1), last_words.to_vec()].concat();
        assert!(matches!(scanned(&behind, &[]), Ok(Some(Outcome::Done(_)))));
        // In a separate record of TLS.
        assert_eq!(Scanner::default().feed(last_words), Ok(None));
        assert_eq!(Scanner::default().feed(b"Z"), Err(ScanError::Trailing { count: 1 }));
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(count in 0_usize..5, cuts in prop::collection::vec(1_usize..9, 0..80)) {
            let bytes = rows(count);
            prop_assert_eq!(scanned(&bytes, &cuts), scanned(&bytes, &[]));
        }

        #[test]
        fn any_bytes_are_an_outcome_an_error_or_unfinished(
            bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 1_usize..50
        ) {
            let mut scanner = Scanner::default();
            scanner.begin();
            for part in bytes.chunks(cut) {
                if !matches!(scanner.feed(part), Ok(None)) {
                    break;
                }
            }
        }
    }
}
