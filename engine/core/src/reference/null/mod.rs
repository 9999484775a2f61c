//! Null responder: a server that holds very many sessions in little memory and answers at once.
//!
//! The scripted [`super::Reference`] has a thread per session, enough for some thousands. The null
//! responder is a single thread over `epoll` with ready-made answers, to measure a generator's cost
//! at 50,000 connections without a database. It accepts every login, and answers a statement by its
//! first words only: a row, [`super::RANGE_ROWS`] rows, or OK.

mod mysql;
mod postgres;

use std::io;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{SocketFlags, accept_with, listen};

use self::mysql::Mysql;
use self::postgres::Postgres;
use super::answer::Shape;
use crate::driver::Driver;
use crate::system::{receive_now, send_now};

const EVENTS_AT_ONCE: usize = 512;
/// Largest size of an incomplete command; beyond it the session is ended.
const COMMAND_LENGTH_MAX: usize = 1 << 20;
const RECEIVE_BYTES: usize = 64 * 1024;

/// Ready-made answers of a protocol.
trait ReadyMade: Send {
    /// Bytes sent before the client's first message.
    fn greeting(&self) -> &[u8];

    /// Appends the answers to all complete commands in `bytes` and returns their length; `None` if
    /// the client leaves or breaks the protocol.
    fn answer(&self, client: &mut Client, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize>;
}

/// State of a client.
#[derive(Default)]
struct Client {
    is_logged_in: bool,
    /// True if MySQL's rows end with OK.
    deprecate_eof: bool,
    /// Answers of PostgreSQL's prepared statements, by the client's statement number.
    prepared: Vec<Shape>,
    /// Answer of PostgreSQL's bound statement.
    bound: Shape,
}

/// Session of a client; fits a cache line, since there are very many.
struct Session {
    stream: OwnedFd,
    client: Client,
    /// Beginning of an incomplete command.
    begun: Vec<u8>,
}

/// Single-threaded server that answers everything at once.
pub struct NullResponder {
    queue: OwnedFd,
    listeners: Vec<OwnedFd>,
    port: u16,
    /// Sessions by descriptor number.
    sessions: Vec<Option<Session>>,
    driver: Driver,
    ready: Box<dyn ReadyMade>,
    received: Vec<u8>,
    sending: Vec<u8>,
}

impl NullResponder {
    /// Serves clients of `driver` on a free TCP port of 127.0.0.1, and on a Unix socket at `socket`
    /// if given.
    ///
    /// # Errors
    /// Failures of the operating system.
    pub fn bind(driver: Driver, socket: Option<&Path>) -> io::Result<Self> {
        let tcp = TcpListener::bind(("127.0.0.1", 0))?;
        tcp.set_nonblocking(true)?;
        let port = tcp.local_addr()?.port();
        let mut listeners = vec![OwnedFd::from(tcp)];
        if let Some(path) = socket {
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true)?;
            listeners.push(listener.into());
        }
        for listener in &listeners {
            // Listen again, with the system's longest backlog.
            listen(listener, i32::from(i16::MAX))?;
        }
        Self::over(driver, listeners, port)
    }

    /// Another responder on the same listeners, for another thread with a file table of its own.
    /// Each admits clients until its file table is full.
    ///
    /// # Errors
    /// Failures of the operating system.
    pub fn sibling(&self) -> io::Result<Self> {
        let listeners = self.listeners.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
        Self::over(self.driver, listeners, self.port)
    }

    fn over(driver: Driver, listeners: Vec<OwnedFd>, port: u16) -> io::Result<Self> {
        let queue = epoll::create(CreateFlags::CLOEXEC)?;
        for listener in &listeners {
            watch(&queue, listener)?;
        }
        Ok(Self {
            queue,
            listeners,
            port,
            sessions: Vec::new(),
            driver,
            ready: match driver {
                Driver::Mysql => Box::new(Mysql::new()),
                Driver::Pgsql => Box::new(Postgres::new()),
            },
            received: vec![0; RECEIVE_BYTES],
            sending: Vec::new(),
        })
    }

    /// TCP port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Number of open sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.iter().flatten().count()
    }

    /// Serves pending events, waiting at most `milliseconds` for them (for ever, if negative).
    ///
    /// # Errors
    /// Failures of the operating system; trouble with a session ends that session only.
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
            let greeting = self.ready.greeting();
            if send_now(&stream, greeting) != Ok(greeting.len()) {
                continue;
            }
            let place = stream.as_raw_fd().unsigned_abs() as usize;
            if self.sessions.len() <= place {
                self.sessions.resize_with(place + 1, || None);
            }
            let (client, begun) = (Client::default(), Vec::new());
            self.sessions[place] = Some(Session { stream, client, begun });
        }
    }

    /// Stops accepting at a full file table; a sibling may accept the waiting clients.
    fn admit_no_more(&self) -> io::Result<()> {
        for listener in &self.listeners {
            match epoll::delete(&self.queue, listener) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Answers a session's bytes; None when it is over.
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
        let taken = self.ready.answer(&mut session.client, bytes, &mut self.sending)?;
        bytes = &bytes[taken..];
        if bytes.len() > COMMAND_LENGTH_MAX {
            return None;
        }
        session.begun = bytes.to_vec();
        // Drop a client that asks without reading: bytes its socket does not take are not kept.
        let sent = send_now(&session.stream, &self.sending);
        (sent == Ok(self.sending.len())).then_some(())
    }
}

fn watch(queue: &OwnedFd, file: &OwnedFd) -> io::Result<()> {
    let name = EventData::new_u64(u64::from(file.as_raw_fd().unsigned_abs()));
    Ok(epoll::add(queue, file, name, EventFlags::IN)?)
}
