//! A blocking stream of packets: a socket and its link.
//!
//! Over a plain link no byte is read ahead, so the socket alone can be handed over. Any other link
//! keeps the bytes read ahead, and is handed over with the socket.

use std::io::{self, Read, Write};

use dbdyno_wire::kept::Kept;
use rustix::event::PollFlags;

use super::socket::Socket;
use super::timeouts::Clock;
use crate::session::link::Link;
use crate::system::{receive_now, send_now};

const READ_LENGTH: usize = 16 * 1024;

/// The stream of a session.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) socket: WatchedSocket,
    pub(crate) link: Link,
    /// Bytes of packets read ahead, from `taken` on.
    ready: Kept,
    taken: usize,
}

impl Stream {
    pub(crate) fn new(socket: WatchedSocket) -> Self {
        Self { socket, link: Link::Plain, ready: Kept::default(), taken: 0 }
    }

    /// Sends the packets of a new request.
    pub(crate) fn request(&mut self, packets: &[u8]) -> io::Result<()> {
        self.socket.write_all(self.link.request(packets))
    }

    fn read_on(&mut self) -> io::Result<usize> {
        self.ready.clear();
        self.taken = 0;
        let mut buffer = [0; READ_LENGTH];
        let length = self.socket.read(&mut buffer)?;
        let ready = &mut self.ready;
        let decoded = self.link.decode(&buffer[..length], &mut |bytes| Ok(ready.append(bytes)?));
        decoded.map_err(|error| {
            // The stream is out of step: a later request must find it ended and not wait.
            self.socket.socket.shut_down();
            io::Error::new(io::ErrorKind::InvalidData, error)
        })?;
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

/// Continues the request begun by [`Stream::request`].
impl Write for Stream {
    fn write(&mut self, packets: &[u8]) -> io::Result<usize> {
        self.socket.write_all(self.link.more(packets))?;
        Ok(packets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// A socket with reads and writes within the time limits of a session.
#[derive(Debug)]
pub(crate) struct WatchedSocket {
    pub(super) socket: Socket,
    pub(super) clock: Clock,
}

impl WatchedSocket {
    /// Writes as much as the socket takes at once, possibly 0 bytes; gives the number.
    pub(super) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        send_now(&self.socket, bytes).map_err(io::Error::from_raw_os_error)
    }

    /// Waits until the socket can be read or written.
    pub(super) fn wait_for_either(&self) -> io::Result<()> {
        self.clock.wait(&self.socket, PollFlags::IN | PollFlags::OUT)
    }
}

impl Read for WatchedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.clock.wait(&self.socket, PollFlags::IN)?;
            match receive_now(&self.socket, buffer) {
                Err(libc::EAGAIN | libc::EINTR) => {}
                received => return received.map_err(io::Error::from_raw_os_error),
            }
        }
    }
}

impl Write for WatchedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.write_now(bytes)? {
                0 if !bytes.is_empty() => self.clock.wait(&self.socket, PollFlags::OUT)?,
                written => return Ok(written),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Timeouts;
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn a_session_that_is_out_of_step_has_ended() {
        let (here, mut there) = UnixStream::pair().expect("a pair");
        let clock = Clock::start(&Timeouts::of_login(Duration::from_secs(10)));
        let mut stream = Stream::new(WatchedSocket { socket: Socket::Unix(here), clock });
        stream.link.compress();
        there.write_all(b"\x01\0\0\x09\0\0\0x").expect("a frame of a wrong number");
        let mut buffer = [0; 8];
        let error = stream.read(&mut buffer).expect_err("a refusal");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(stream.read(&mut buffer).expect("its end"), 0);
    }
}
