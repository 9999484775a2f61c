//! The reference server: it speaks MySQL, behaves exactly as scripted, and is no database.
//!
//! A load generator can only be trusted against something whose truth is known. This server takes a
//! known time for each statement, answers with known rows, and fails, stalls, dies or breaks the
//! protocol exactly when its [`Script`] says so. It understands no SQL and keeps no data: a
//! `SELECT` with `BETWEEN` gives [`RANGE_ROWS`] rows of [`ROW_LENGTH`] bytes, any other `SELECT`
//! one row, everything else OK.

mod answer;
mod file;
mod login;
mod null;
mod script;
mod service;
mod session;

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dbdyno_wire::mysql::parameter::Value;

use self::service::Workers;
use crate::session::socket::Socket;
use crate::session::{Endpoint, Login};

pub use self::answer::{RANGE_ROWS, ROW_LENGTH};
pub use self::null::NullResponder;
pub use self::script::{Fail, Files, Malformed, Script};
pub use self::service::{Service, Slowdown, Stall, Truth};

/// The longest message of a client: MySQL's own default.
const MESSAGE_LENGTH_MAX: usize = 64 << 20;
/// How often a listener looks whether it should stop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(2);
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A statement that arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The session it came by, counted from 1 in the order of their opening.
    pub connection_id: u32,
    /// The number it was prepared under; `None` for a plain query.
    pub statement_id: Option<u32>,
    /// Its text, with placeholders when prepared.
    pub text: String,
    /// The values of the placeholders.
    pub parameters: Vec<Value>,
}

/// What all sessions share.
#[derive(Debug)]
struct Shared {
    script: Script,
    stopped: AtomicBool,
    connections: AtomicU32,
    statements: AtomicU64,
    failable: AtomicU64,
    answering_ns: AtomicU64,
    workers: Workers,
    open: Mutex<Vec<(u32, Socket)>>,
    log: Mutex<Vec<Statement>>,
}

impl Shared {
    fn new(script: Script) -> Self {
        Self {
            workers: script.workers(),
            script,
            stopped: AtomicBool::new(false),
            connections: AtomicU32::new(0),
            statements: AtomicU64::new(0),
            failable: AtomicU64::new(0),
            answering_ns: AtomicU64::new(0),
            open: Mutex::new(Vec::new()),
            log: Mutex::new(Vec::new()),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Ends every session in the middle of what it does.
    fn die(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for (_, socket) in locked(&self.open).iter() {
            socket.shut_down();
        }
    }

    fn admit(self: &Arc<Self>, socket: Socket) -> io::Result<()> {
        let connection_id = self.connections.fetch_add(1, Ordering::SeqCst) + 1;
        let mut open = locked(&self.open);
        if self.is_stopped() {
            // Whoever was let in before has been shut down; nobody is afterwards.
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        open.push((connection_id, socket.try_clone()?));
        drop(open);
        let shared = Arc::clone(self);
        let serve = move || {
            // A client that leaves in any way ends its session; the server goes on.
            drop(session::serve(&shared, connection_id, socket));
            locked(&shared.open).retain(|&(open, _)| open != connection_id);
        };
        thread::Builder::new().name("reference".into()).spawn(serve).map(drop)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running reference server; it stops when dropped.
#[derive(Debug)]
pub struct Reference {
    /// Its TCP port on 127.0.0.1.
    pub port: u16,
    /// Its Unix socket.
    pub socket: PathBuf,
    shared: Arc<Shared>,
    listeners: Vec<JoinHandle<()>>,
}

impl Reference {
    /// Starts a server on a free TCP port and on a Unix socket.
    ///
    /// # Errors
    /// Those of the operating system, when it gives no port, socket or thread.
    pub fn start(script: Script) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(script));
        let tcp = TcpListener::bind(("127.0.0.1", 0))?;
        let port = tcp.local_addr()?.port();
        let number = STARTED.fetch_add(1, Ordering::SeqCst);
        let name = format!("dbdyno-reference-{}-{number}.sock", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let unix = UnixListener::bind(&socket)?;
        tcp.set_nonblocking(true)?;
        unix.set_nonblocking(true)?;
        let accept_tcp = move || {
            let (stream, _) = tcp.accept()?;
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            Ok(Socket::Tcp(stream))
        };
        let accept_unix = move || {
            let (stream, _) = unix.accept()?;
            stream.set_nonblocking(false)?;
            Ok(Socket::Unix(stream))
        };
        let listeners = vec![listen(&shared, accept_tcp)?, listen(&shared, accept_unix)?];
        Ok(Self { port, socket, shared, listeners })
    }

    /// Where it listens on TCP.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp { host: "127.0.0.1".into(), port: self.port }
    }

    /// Where it listens on a Unix socket.
    #[must_use]
    pub fn socket_endpoint(&self) -> Endpoint {
        Endpoint::Unix { path: self.socket.to_string_lossy().into_owned() }
    }

    /// The login it accepts.
    #[must_use]
    pub fn login(&self) -> Login {
        let Script { user, password, .. } = &self.shared.script;
        Login { user: user.clone(), password: password.clone(), database: "sbtest".into() }
    }

    /// The statements that arrived, each session's in its order; empty unless the script wants a log.
    #[must_use]
    pub fn log(&self) -> Vec<Statement> {
        locked(&self.shared.log).clone()
    }

    /// How many statements arrived.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.shared.statements.load(Ordering::SeqCst)
    }

    /// How long statements took from their arrival until their answers were ready, added up.
    #[must_use]
    pub fn answering(&self) -> Duration {
        Duration::from_nanos(self.shared.answering_ns.load(Ordering::SeqCst))
    }

    /// What was planned for all statements that arrived.
    #[must_use]
    pub fn truth(&self) -> Truth {
        self.shared.workers.truth()
    }

    /// How many sessions are open now.
    #[must_use]
    pub fn sessions(&self) -> usize {
        locked(&self.shared.open).len()
    }

    /// Ends all sessions and listens no longer.
    pub fn stop(&mut self) {
        self.shared.die();
        for listener in self.listeners.drain(..) {
            // A listener that panicked has stopped as well.
            drop(listener.join());
        }
        drop(std::fs::remove_file(&self.socket));
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.stop();
    }
}

fn listen(
    shared: &Arc<Shared>,
    accept: impl Fn() -> io::Result<Socket> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let admit_all = move || {
        while !shared.is_stopped() {
            match accept() {
                Ok(socket) => drop(shared.admit(socket)),
                Err(_) => thread::sleep(ACCEPT_PAUSE),
            }
        }
    };
    thread::Builder::new().name("reference-listener".into()).spawn(admit_all)
}
