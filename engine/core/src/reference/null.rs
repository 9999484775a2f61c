//! The null responder: a server that holds very many sessions in little memory and answers at once.
//!
//! The scripted [`super::Reference`] has a thread for each session, enough for some thousands. This
//! one is a single thread over `epoll` with ready-made answers, so that the cost of a generator at
//! 50,000 connections can be measured without a database. It accepts every login, and answers a
//! statement by its first words only: one row, [`super::RANGE_ROWS`] rows, or OK.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use dbdyno_wire::mysql::handshake::HandshakeResponse;
use dbdyno_wire::mysql::packet::{HEADER_LENGTH, Header};
use dbdyno_wire::mysql::{capability, response};

use super::login;
use super::ready_made::{self, ReadyMade};
use super::script::Script;
use crate::system::{checked, receive_now, send_now};

const EVENTS_AT_ONCE: usize = 512;
/// A session that sends more before a command is complete is ended.
const COMMAND_LENGTH_MAX: usize = 1 << 20;
const RECEIVE_BYTES: usize = 64 * 1024;

/// One client; no longer than a cache line, since there are very many.
struct Session {
    stream: OwnedFd,
    logged_in: bool,
    deprecate_eof: bool,
    /// A command of which only the beginning has arrived.
    begun: Vec<u8>,
}

/// A server that answers everything at once, from one thread.
pub struct NullResponder {
    queue: OwnedFd,
    listeners: Vec<OwnedFd>,
    addresses: Vec<SocketAddr>,
    /// By the number of their descriptor.
    sessions: Vec<Option<Session>>,
    greeting: Vec<u8>,
    answers: [ReadyMade; 2],
    received: Vec<u8>,
    sending: Vec<u8>,
}

impl NullResponder {
    /// Listens on so many free TCP ports of 127.0.0.1 (each has the client's 28,000 ports to itself)
    /// and on a Unix socket at `socket`.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn bind(ports: usize, socket: Option<&Path>) -> io::Result<Self> {
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        for _ in 0..ports {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            addresses.push(listener.local_addr()?);
            listeners.push(OwnedFd::from(listener));
        }
        if let Some(path) = socket {
            listeners.push(UnixListener::bind(path)?.into());
        }
        for listener in &listeners {
            // SAFETY: these calls touch no memory. The longest queue the system allows.
            unsafe {
                checked(libc::listen(listener.as_raw_fd(), i32::from(i16::MAX)))?;
                checked(libc::fcntl(listener.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK))?;
            }
        }
        Self::over(listeners, addresses)
    }

    /// Another one that admits from the same listeners, for another thread: each takes what it comes to
    /// first, and leaves the rest to the other when its table of open files is full.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn sibling(&self) -> io::Result<Self> {
        let listeners = self.listeners.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
        Self::over(listeners, self.addresses.clone())
    }

    fn over(listeners: Vec<OwnedFd>, addresses: Vec<SocketAddr>) -> io::Result<Self> {
        // SAFETY: no memory is handed over; the number is checked, and ours from then on.
        let queue =
            unsafe { OwnedFd::from_raw_fd(checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        for listener in &listeners {
            watch(&queue, listener.as_raw_fd())?;
        }
        Ok(Self {
            queue,
            listeners,
            addresses,
            sessions: Vec::new(),
            greeting: login::greeting_packet(&Script::default()),
            answers: [ReadyMade::new(false), ReadyMade::new(true)],
            received: vec![0; RECEIVE_BYTES],
            sending: Vec::new(),
        })
    }

    /// Where it listens on TCP.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How many sessions are open.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.iter().flatten().count()
    }

    /// Serves what is there, waiting for it `milliseconds` at most (for ever, if negative).
    ///
    /// # Errors
    /// Those of the operating system; trouble with one session ends that session only.
    pub fn serve(&mut self, milliseconds: i32) -> io::Result<()> {
        let mut ready = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_AT_ONCE];
        let room = i32::try_from(EVENTS_AT_ONCE).expect("a small constant");
        // SAFETY: the kernel writes at most `room` events into an array of that length.
        let count = unsafe {
            libc::epoll_wait(self.queue.as_raw_fd(), ready.as_mut_ptr(), room, milliseconds)
        };
        let count = match checked(count) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other?.unsigned_abs() as usize,
        };
        for event in &ready[..count] {
            let number = RawFd::try_from(event.u64).expect("descriptors are 32 bits");
            if self.listeners.iter().any(|listener| listener.as_raw_fd() == number) {
                self.admit_all(number)?;
            } else if self.answer(number).is_none() {
                self.sessions[number.unsigned_abs() as usize] = None;
            }
        }
        Ok(())
    }

    fn admit_all(&mut self, listener: RawFd) -> io::Result<()> {
        loop {
            let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            // SAFETY: no address is asked for, so no memory is handed over.
            let number = unsafe {
                libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags)
            };
            if number < 0 {
                return match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EMFILE) => self.admit_no_more(),
                    _ => Ok(()),
                };
            }
            // SAFETY: the kernel has just given us this descriptor.
            let stream = unsafe { OwnedFd::from_raw_fd(number) };
            without_delay(number);
            watch(&self.queue, number)?;
            if send_now(number, &self.greeting) != Ok(self.greeting.len()) {
                continue;
            }
            let place = number.unsigned_abs() as usize;
            if self.sessions.len() <= place {
                self.sessions.resize_with(place + 1, || None);
            }
            let begun = Vec::new();
            self.sessions[place] =
                Some(Session { stream, logged_in: false, deprecate_eof: false, begun });
        }
    }

    /// The table of open files is full: who waits to be let in is another's, or is not answered.
    fn admit_no_more(&self) -> io::Result<()> {
        for listener in &self.listeners {
            let (queue, number) = (self.queue.as_raw_fd(), listener.as_raw_fd());
            // SAFETY: no memory is handed over.
            let gone = unsafe {
                libc::epoll_ctl(queue, libc::EPOLL_CTL_DEL, number, std::ptr::null_mut())
            };
            match checked(gone) {
                Err(error) if error.raw_os_error() != Some(libc::ENOENT) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Answers what a session has sent; None when it is over.
    fn answer(&mut self, number: RawFd) -> Option<()> {
        let session = self.sessions.get_mut(number.unsigned_abs() as usize)?.as_mut()?;
        let length = match receive_now(session.stream.as_raw_fd(), &mut self.received) {
            Ok(0) => return None,
            Ok(length) => length,
            Err(libc::EAGAIN | libc::EINTR) => return Some(()),
            Err(_) => return None,
        };
        self.sending.clear();
        let mut bytes = &self.received[..length];
        let mut joined = std::mem::take(&mut session.begun);
        if !joined.is_empty() {
            joined.extend_from_slice(bytes);
            bytes = &joined;
        }
        while let Some((sequence, payload, rest)) = first_packet(bytes) {
            bytes = rest;
            if session.logged_in {
                ready_made::answer(
                    &self.answers,
                    session.deprecate_eof,
                    payload,
                    &mut self.sending,
                )?;
            } else {
                let agreed = HandshakeResponse::parse(payload).ok()?.capabilities;
                session.deprecate_eof = agreed & capability::DEPRECATE_EOF != 0;
                session.logged_in = true;
                response::Ok::default().write(&mut self.sending, &mut sequence.wrapping_add(1));
            }
        }
        if bytes.len() > COMMAND_LENGTH_MAX {
            return None;
        }
        session.begun = bytes.to_vec();
        // Who asks and does not read is let go: what its socket does not take is not kept.
        let sent = send_now(session.stream.as_raw_fd(), &self.sending);
        (sent == Ok(self.sending.len())).then_some(())
    }
}

/// The first packet of `bytes`, if it is there completely: its number, its payload, what follows.
fn first_packet(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LENGTH>()?;
    let header = Header::parse(*header);
    let (payload, later) = rest.split_at_checked(header.length)?;
    Some((header.sequence, payload, later))
}

fn watch(queue: &OwnedFd, number: RawFd) -> io::Result<()> {
    let events = libc::EPOLLIN.cast_unsigned();
    let mut event = libc::epoll_event { events, u64: u64::from(number.unsigned_abs()) };
    let (queue, add) = (queue.as_raw_fd(), libc::EPOLL_CTL_ADD);
    // SAFETY: `event` lives through the call; the kernel copies it.
    checked(unsafe { libc::epoll_ctl(queue, add, number, &raw mut event) }).map(|_| ())
}

/// On a Unix socket the system refuses this, which does no harm.
fn without_delay(number: RawFd) {
    let on: i32 = 1;
    let length = libc::socklen_t::try_from(size_of::<i32>()).expect("4 fits");
    // SAFETY: the kernel reads 4 bytes of `on`, which lives through the call.
    unsafe {
        let value = (&raw const on).cast();
        libc::setsockopt(number, libc::IPPROTO_TCP, libc::TCP_NODELAY, value, length);
    }
}
