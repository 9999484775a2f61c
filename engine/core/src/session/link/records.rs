//! Bytes into records of TLS and back, in memory.
//!
//! Records may bring no byte for us (a ticket, a wish for new keys): then nothing is handed on, and
//! what TLS wants to answer leaves with the next request. A session that the other end closed gives
//! no more bytes; the end of the socket follows and is told by whoever holds that.

use std::io::{BufRead, Write};

use rustls::Connection as Records;

use super::{LinkError, Sink};

/// Appends `bytes` as records to `out`, behind whatever TLS itself has to say.
pub(super) fn seal(records: &mut Records, bytes: &[u8], out: &mut Vec<u8>) {
    records.writer().write_all(bytes).expect("the buffer has no limit");
    while records.wants_write() {
        records.write_tls(out).expect("memory takes every byte");
    }
}

/// Hands on what the records in `bytes` hold; a record that is cut is kept for the next call.
pub(super) fn open(
    records: &mut Records,
    mut bytes: &[u8],
    sink: &mut Sink<'_>,
) -> Result<(), LinkError> {
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
            return Ok(()); // closed by the other end: whatever follows is nobody's
        }
    }
    Ok(())
}
