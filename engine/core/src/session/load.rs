//! `LOAD DATA LOCAL INFILE` from memory: rows are streamed as they are made, no file is ever
//! opened.

use std::io;

use dbdyno_wire::mysql::local_infile::{FileRequest, write_end};
use dbdyno_wire::mysql::packet::{begin_packet, end_packet, packets_in};
use dbdyno_wire::mysql::response::{self, ServerError};
use dbdyno_wire::mysql::{command, local_infile};

use super::error::Problem;
use super::stream::WatchedSocket;
use super::{ROWS_LENGTH_MAX, Session, SessionError, frame};

/// The file's name in statements; a request for any other file is refused.
pub const FILE_NAME: &str = "rows made by dbdyno";

impl Session {
    /// Runs `sql`, a `LOAD DATA LOCAL INFILE` of [`FILE_NAME`], with the rows from `next`.
    ///
    /// Each call of `next` appends a part of the rows and gives their number; 0 ends the load.
    ///
    /// # Errors
    /// [`SessionError`] when the server refuses, at once or in the middle, takes another number of
    /// rows, or asks for another file; and when the session broke. After a failure in the middle
    /// the session cannot be used.
    pub fn load(
        &mut self,
        sql: &str,
        next: &mut dyn FnMut(&mut Vec<u8>) -> u64,
    ) -> Result<(), SessionError> {
        self.request.clear();
        command::query(&mut self.request, sql);
        self.stream_file(next).map_err(|problem| self.failed(sql, problem))
    }

    fn stream_file(&mut self, next: &mut dyn FnMut(&mut Vec<u8>) -> u64) -> Result<(), Problem> {
        self.stream.request(&self.request)?;
        let mut sequence = packets_in(self.request.len());
        self.next_payload(&mut sequence)?;
        if self.payload.first() != Some(&local_infile::REQUEST) {
            return Err(Problem::NoFileWanted);
        }
        if !FileRequest::parse(&self.payload)?.is_for(FILE_NAME) {
            return Err(Problem::LocalInfile);
        }
        let sent = self.send_parts(&mut sequence, next)?;
        self.next_payload(&mut sequence)?;
        let ok = response::Ok::parse(&self.payload)?;
        if ok.affected_rows != sent {
            let (taken, warnings) = (ok.affected_rows, ok.warnings);
            return Err(Problem::RowsLost { sent, taken, warnings });
        }
        Ok(())
    }

    /// Sends all parts and the end; gives the number of rows in them.
    fn send_parts(
        &mut self,
        sequence: &mut u8,
        next: &mut dyn FnMut(&mut Vec<u8>) -> u64,
    ) -> Result<u64, Problem> {
        let mut sent = 0;
        loop {
            self.request.clear();
            let start = begin_packet(&mut self.request, *sequence);
            let rows = next(&mut self.request);
            if rows == 0 {
                self.request.clear();
                write_end(&mut self.request, sequence);
                return self.send_while_heard().map(|()| sent);
            }
            *sequence = end_packet(&mut self.request, start);
            self.send_while_heard()?;
            sent += rows;
        }
    }

    /// Sends the request's next bytes, unless the server sends an error in the middle.
    fn send_while_heard(&mut self) -> Result<(), Problem> {
        let bytes = self.stream.link.more(&self.request);
        match write_while_unheard(&mut self.stream.socket, bytes) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(self.interruption()),
            Err(error) => {
                match self.stream.socket.socket.is_readable().map(|_| self.interruption()) {
                    Ok(why @ Problem::Server(_)) => Err(why),
                    _ => Err(error.into()),
                }
            }
        }
    }

    /// Reads the server's error after an interrupted send.
    fn interruption(&mut self) -> Problem {
        if let Err(error) =
            frame::read_payload_of_any_number(&mut self.stream, ROWS_LENGTH_MAX, &mut self.payload)
        {
            return error.into();
        }
        match ServerError::parse(&self.payload) {
            Ok(error) => Problem::Server(error),
            Err(malformed) => malformed.into(),
        }
    }
}

/// Writes `bytes` until there is something to read; gives the number written.
pub(super) fn write_while_unheard(socket: &mut WatchedSocket, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        if socket.socket.is_readable()? {
            break;
        }
        written += socket.write_now(&bytes[written..])?;
        if written < bytes.len() {
            socket.wait_for_either()?;
        }
    }
    Ok(written)
}
