//! A blocking stream to a server, over TCP or a Unix socket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::Endpoint;
use crate::system::checked;

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

    /// Whether something can be read, be it the end of the stream.
    pub(crate) fn is_readable(&self) -> io::Result<bool> {
        let fd = match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        };
        let mut watched = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid structure is handed over, and the count says one.
        match unsafe { libc::poll(&raw mut watched, 1, 0) } {
            -1 => Err(io::Error::last_os_error()),
            ready => Ok(ready > 0),
        }
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

    /// Whether nobody can listen on the way.
    pub(crate) const fn is_private(&self) -> bool {
        matches!(self, Self::Unix(_))
    }
}

/// Tries every address of the host; the last failure is told.
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

/// The standard library would wait for ever where the server's queue of callers is full; with a time
/// limit for writing, which is set before, the kernel gives up with `EAGAIN`.
fn connect_unix(path: &str, timeout: Duration) -> io::Result<UnixStream> {
    // SAFETY: no memory is handed over; the descriptor is checked, and ours from then on.
    let stream = unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        UnixStream::from(OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_UNIX, kind, 0))?))
    };
    stream.set_write_timeout(Some(timeout))?;
    // SAFETY: an address is numbers and characters only, for which zeros are valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).expect("a small constant");
    if path.len() >= address.sun_path.len() || path.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in address.sun_path.iter_mut().zip(path.bytes()) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    let length = libc::socklen_t::try_from(size_of_val(&address)).expect("some hundred bytes");
    loop {
        // SAFETY: the kernel reads `length` bytes of `address`, which lives through the call.
        let status =
            unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), length) };
        match checked(status) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            connected => return connected.map(|_| stream),
        }
    }
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
