//! A blocking stream to a server, over TCP or a Unix socket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::Endpoint;

/// The stream of a session.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects; `timeout` also limits every later read and write, until [`Self::wait_forever`].
    pub(crate) fn connect(endpoint: &Endpoint, timeout: Duration) -> io::Result<Self> {
        match endpoint {
            Endpoint::Tcp { host, port } => {
                let stream = connect_tcp(host, *port, timeout)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                Ok(Self::Tcp(stream))
            }
            Endpoint::Unix { path } => {
                let stream = connect_unix(path, timeout)?;
                stream.set_read_timeout(Some(timeout))?;
                Ok(Self::Unix(stream))
            }
        }
    }

    /// Lifts the time limits: statements may take as long as they need.
    pub(crate) fn wait_forever(&self) -> io::Result<()> {
        self.limit_waits(None)
    }

    /// Limits the time of each later read and write; None for no limit.
    pub(crate) fn limit_waits(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
        }
    }

    /// Lets a write end early, with what was written, when the server does not read for so long.
    pub(crate) fn limit_writes(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(limit),
            Self::Unix(stream) => stream.set_write_timeout(limit),
        }
    }

    /// Whether something can be read, even if only the end of the stream.
    pub(crate) fn is_readable(&self) -> io::Result<bool> {
        let socket = match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        };
        let mut watched = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        Ok(poll(&mut watched, Some(&Timespec::default()))? > 0)
    }

    /// A second handle of the same stream.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    /// Ends the stream in both directions, for all its handles; one that has ended stays so.
    pub(crate) fn shut_down(&self) {
        drop(match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        });
    }

    /// Whether nobody can eavesdrop: a Unix socket.
    pub(crate) const fn is_private(&self) -> bool {
        matches!(self, Self::Unix(_))
    }
}

/// Tries every address of the host; the error is that of the last.
fn connect_tcp(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The standard library would wait for ever when the server's backlog is full; with a write timeout, set
/// before, the kernel gives up with `EAGAIN`.
fn connect_unix(path: &str, timeout: Duration) -> io::Result<UnixStream> {
    let (unix, close) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
    let stream = UnixStream::from(socket_with(unix, SocketType::STREAM, close, None)?);
    stream.set_write_timeout(Some(timeout))?;
    // Too long, or with a NUL in it.
    let address = SocketAddrUnix::new(path).map_err(|_| io::ErrorKind::InvalidInput)?;
    retry_on_intr(|| connect(&stream, &address))?;
    Ok(stream)
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
        }
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        match socket {
            Socket::Tcp(stream) => stream.into(),
            Socket::Unix(stream) => stream.into(),
        }
    }
}
