//! A blocking stream of packets: a socket and its link.
//!
//! Over a plain link no byte is read ahead, so the socket alone can be handed over. Any other link
//! keeps what it has read ahead, and is handed over with the socket.

use std::io::{self, Read, Write};

use super::socket::Socket;
use crate::session::link::Link;

const READ_LENGTH: usize = 16 * 1024;

/// The stream of a session.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) socket: Socket,
    pub(crate) link: Link,
    /// Bytes of packets that were read ahead, from `taken` on.
    ready: Vec<u8>,
    taken: usize,
}

impl Stream {
    pub(crate) const fn new(socket: Socket) -> Self {
        Self { socket, link: Link::Plain, ready: Vec::new(), taken: 0 }
    }

    /// Sends the packets of a new request.
    pub(crate) fn request(&mut self, packets: &[u8]) -> io::Result<()> {
        self.socket.write_all(self.link.request(packets))
    }

    /// Whether nobody can eavesdrop: a Unix socket, or TLS.
    pub(crate) fn is_private(&self) -> bool {
        self.socket.is_private() || self.link.is_encrypted()
    }

    fn read_on(&mut self) -> io::Result<usize> {
        self.ready.clear();
        self.taken = 0;
        let mut buffer = [0; READ_LENGTH];
        let length = self.socket.read(&mut buffer)?;
        let ready = &mut self.ready;
        let decoded = self.link.decode(&buffer[..length], &mut |bytes| {
            ready.extend_from_slice(bytes);
            Ok(())
        });
        decoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(length)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if matches!(self.link, Link::Plain) {
            return self.socket.read(buffer);
        }
        while self.taken == self.ready.len() {
            if self.read_on()? == 0 {
                return Ok(0);
            }
        }
        let length = (&self.ready[self.taken..]).read(buffer)?;
        self.taken += length;
        Ok(length)
    }
}

/// Continues the request that was begun by [`Stream::request`].
impl Write for Stream {
    fn write(&mut self, packets: &[u8]) -> io::Result<usize> {
        self.socket.write_all(self.link.more(packets))?;
        Ok(packets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
