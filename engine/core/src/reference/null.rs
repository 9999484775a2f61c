//! The null responder: a server that holds very many sessions in little memory and answers at once.
//!
//! The scripted [`super::Reference`] has a thread for each session, enough for some thousands. This
//! one is a single thread over `epoll` with ready-made answers, so that the cost of a generator at
//! 50,000 connections can be measured without a database. It accepts every login, and answers a
//! statement by its first words only: one row, [`super::RANGE_ROWS`] rows, or OK.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{SocketFlags, accept_with, listen};

use dbdyno_wire::mysql::handshake::HandshakeResponse;
use dbdyno_wire::mysql::packet::{HEADER_LENGTH, Header};
use dbdyno_wire::mysql::{capability, response};

use super::login;
use super::ready_made::{self, ReadyMade};
use super::script::Script;
use crate::system::{receive_now, send_now};

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
            listener.set_nonblocking(true)?;
            addresses.push(listener.local_addr()?);
            listeners.push(OwnedFd::from(listener));
        }
        if let Some(path) = socket {
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true)?;
            listeners.push(listener.into());
        }
        for listener in &listeners {
            // Again, with the longest backlog that the system allows.
            listen(listener, i32::from(i16::MAX))?;
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
        let queue = epoll::create(CreateFlags::CLOEXEC)?;
        for listener in &listeners {
            watch(&queue, listener)?;
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
        let limit = u64::try_from(milliseconds).ok().map(Duration::from_millis);
        let limit = limit.map(|limit| Timespec::try_from(limit).expect("a short time"));
        let mut room = [const { MaybeUninit::<Event>::uninit() }; EVENTS_AT_ONCE];
        let ready = match epoll::wait(&self.queue, &mut room, limit.as_ref()) {
            Ok((ready, _)) => ready,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in ready {
            let number = RawFd::try_from(event.data.u64()).expect("descriptors are 32 bits");
            let is_it = |listener: &OwnedFd| listener.as_raw_fd() == number;
            if let Some(listener) = self.listeners.iter().position(is_it) {
                self.admit_all(listener)?;
            } else if self.answer(number).is_none() {
                self.sessions[number.unsigned_abs() as usize] = None;
            }
        }
        Ok(())
    }

    fn admit_all(&mut self, listener: usize) -> io::Result<()> {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let stream = match accept_with(&self.listeners[listener], flags) {
                Ok(stream) => stream,
                Err(Errno::MFILE) => return self.admit_no_more(),
                Err(_) => return Ok(()),
            };
            // A Unix socket has no such option.
            let _ = set_tcp_nodelay(&stream, true);
            watch(&self.queue, &stream)?;
            if send_now(&stream, &self.greeting) != Ok(self.greeting.len()) {
                continue;
            }
            let place = stream.as_raw_fd().unsigned_abs() as usize;
            if self.sessions.len() <= place {
                self.sessions.resize_with(place + 1, || None);
            }
            let begun = Vec::new();
            self.sessions[place] =
                Some(Session { stream, logged_in: false, deprecate_eof: false, begun });
        }
    }

    /// The table of open files is full: clients that wait are accepted by a sibling, or not at all.
    fn admit_no_more(&self) -> io::Result<()> {
        for listener in &self.listeners {
            match epoll::delete(&self.queue, listener) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Answers what a session has sent; None when it is over.
    fn answer(&mut self, number: RawFd) -> Option<()> {
        let session = self.sessions.get_mut(number.unsigned_abs() as usize)?.as_mut()?;
        let length = match receive_now(&session.stream, &mut self.received) {
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
        let sent = send_now(&session.stream, &self.sending);
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

fn watch(queue: &OwnedFd, file: &OwnedFd) -> io::Result<()> {
    let name = EventData::new_u64(u64::from(file.as_raw_fd().unsigned_abs()));
    Ok(epoll::add(queue, file, name, EventFlags::IN)?)
}
