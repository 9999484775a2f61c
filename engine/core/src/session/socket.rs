//! A blocking stream to a server over TCP or a Unix socket, and its connect.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::Endpoint;
use super::timeouts::Clock;

/// Pause before the retry of a connect to a server with a full backlog.
const BACKLOG_PAUSE: Duration = Duration::from_millis(20);

/// The stream of a session.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects, within the limits of a login.
    pub(super) fn connect(endpoint: &Endpoint, clock: &Clock) -> io::Result<Self> {
        match endpoint {
            Endpoint::Tcp { host, port } => {
                let stream = connect_tcp(host, *port, clock)?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Endpoint::Unix { path } => connect_unix(path, clock).map(Self::Unix),
        }
    }

    /// True if bytes or the end of the stream can be read.
    pub(crate) fn is_readable(&self) -> io::Result<bool> {
        let mut watched = [PollFd::new(self, PollFlags::IN)];
        Ok(poll(&mut watched, Some(&Timespec::default()))? > 0)
    }

    /// A second handle of the same stream.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    /// Shuts the stream down in both directions, for all its handles. A stream already ended stays
    /// ended.
    pub(crate) fn shut_down(&self) {
        drop(match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        });
    }

    /// True for a Unix socket, safe from eavesdroppers.
    pub(crate) const fn is_private(&self) -> bool {
        matches!(self, Self::Unix(_))
    }
}

fn connect_tcp(host: &str, port: u16, clock: &Clock) -> io::Result<TcpStream> {
    connect_to_any(&addresses(host, port, clock)?, clock)
}

/// Tries the addresses in turn, each for an equal share of the time left, because the first may
/// swallow all packets. Gives the error of the last.
fn connect_to_any(addresses: &[SocketAddr], clock: &Clock) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    for (address, left) in addresses.iter().zip((1..=count).rev()) {
        match connect_to(address, &clock.share(left)) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Looks a name up in a separate thread: the call cannot be interrupted, only abandoned.
fn addresses(host: &str, port: u16, clock: &Clock) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    let (found, arriving) = channel();
    let (host, begun) = (host.to_owned(), Instant::now());
    thread::Builder::new().name("name look-up".into()).spawn(move || {
        // The receiver may be gone.
        drop(found.send((&*host, port).to_socket_addrs().map(Iterator::collect)));
    })?;
    loop {
        match arriving.recv_timeout(clock.next_wait(begun)?) {
            Ok(addresses) => return addresses,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn connect_to(address: &SocketAddr, clock: &Clock) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = TcpStream::from(socket_with(family, SocketType::STREAM, flags, None)?);
    match connect(&stream, address) {
        Err(Errno::INPROGRESS | Errno::INTR) => clock.wait(&stream, PollFlags::OUT)?,
        connected => connected?,
    }
    stream.take_error()?.map_or(Ok(()), Err)?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Connects without blocking: a blocking `connect` would wait for ever at a full backlog; here it
/// is retried until the time limit.
fn connect_unix(path: &str, clock: &Clock) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream =
        UnixStream::from(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?);
    // The path is too long, or has a NUL in it.
    let address = SocketAddrUnix::new(path).map_err(|_| io::ErrorKind::InvalidInput)?;
    let begun = Instant::now();
    loop {
        match (retry_on_intr(|| connect(&stream, &address)), clock.next_wait(begun)) {
            (Err(Errno::AGAIN), Ok(length)) => thread::sleep(length.min(BACKLOG_PAUSE)),
            (connected, _) => break connected?,
        }
    }
    stream.set_nonblocking(false)?;
    Ok(stream)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
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

#[cfg(test)]
mod tests {
    use super::super::Timeouts;
    use super::*;
    use rustix::net::listen;
    use std::net::TcpListener;

    #[test]
    fn an_address_that_swallows_all_leaves_time_for_the_next() {
        let bind = || TcpListener::bind("127.0.0.1:0").expect("a port");
        let (silent, open) = (bind(), bind());
        let at = |listener: &TcpListener| listener.local_addr().expect("its address");
        listen(&silent, 0).expect("a short backlog");
        let mut waiting = Vec::new();
        while let Ok(one) = TcpStream::connect_timeout(&at(&silent), Duration::from_millis(100)) {
            waiting.push(one);
        }
        let clock = Clock::start(&Timeouts::of_login(Duration::from_secs(2)));
        let stream = connect_to_any(&[at(&silent), at(&open)], &clock).expect("a connection");
        assert_eq!(stream.peer_addr().expect("its address"), at(&open));
    }
}
