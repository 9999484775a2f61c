//! Reference server: speaks MySQL and behaves exactly as scripted, without a database.
//!
//! It makes a load generator testable against known results. The server takes a known time for each
//! statement, answers with known rows, and fails, stalls, dies or breaks the protocol exactly as
//! its [`Script`] prescribes. It understands no SQL and keeps no data: a `SELECT` with `BETWEEN`
//! gives [`RANGE_ROWS`] rows of [`ROW_LENGTH`] bytes, any other `SELECT` a single row, other
//! statements OK.

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
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
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

/// Longest message of a client: MySQL's own default.
const MESSAGE_LENGTH_MAX: usize = 64 << 20;
/// Polling interval of a listener for a stop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(2);
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Received statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Number of its session, counted from 1 in order of opening.
    pub connection_id: u32,
    /// Id of the prepared statement; `None` for a plain query.
    pub statement_id: Option<u32>,
    /// Text, with placeholders if prepared.
    pub text: String,
    /// Values of the placeholders.
    pub parameters: Vec<Value>,
}

/// State shared by all sessions.
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
    admitted: AtomicUsize,
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
            admitted: AtomicUsize::new(0),
            log: Mutex::new(Vec::new()),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Ends every session at once.
    fn die(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for (_, socket) in locked(&self.open).iter() {
            socket.shut_down();
        }
    }

    /// Takes the place of a session, if one is left.
    fn has_room(&self) -> bool {
        let most = self.script.sessions_max.unwrap_or(usize::MAX);
        let taken = |count: usize| (count < most).then_some(count + 1);
        self.admitted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken).is_ok()
    }

    fn admit(self: &Arc<Self>, socket: Socket) -> io::Result<()> {
        let connection_id = self.connections.fetch_add(1, Ordering::SeqCst) + 1;
        let mut open = locked(&self.open);
        if self.is_stopped() {
            // Earlier sessions have been shut down; later sessions are refused.
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        open.push((connection_id, socket.try_clone()?));
        drop(open);
        let shared = Arc::clone(self);
        let serve = move || {
            // A client leaving in any way ends its session; the server goes on.
            if shared.has_room() {
                drop(session::serve(&shared, connection_id, socket));
                shared.admitted.fetch_sub(1, Ordering::SeqCst);
            } else {
                drop(session::refuse(socket));
            }
            locked(&shared.open).retain(|&(open, _)| open != connection_id);
        };
        // As MySQL 8 names its own: the lab knows threads of sessions by it.
        thread::Builder::new().name("connection".into()).spawn(serve).map(drop)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Running reference server; it stops when dropped.
#[derive(Debug)]
pub struct Reference {
    /// TCP port on 127.0.0.1.
    pub port: u16,
    /// Path of the Unix socket.
    pub socket: PathBuf,
    shared: Arc<Shared>,
    listeners: Vec<JoinHandle<()>>,
}

impl Reference {
    /// Starts a server on a free TCP port and on a Unix socket.
    ///
    /// # Errors
    /// The system's refusal of a port, socket or thread.
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

    /// Address on TCP.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp { host: "127.0.0.1".into(), port: self.port }
    }

    /// Address of the Unix socket.
    #[must_use]
    pub fn socket_endpoint(&self) -> Endpoint {
        Endpoint::Unix { path: self.socket.to_string_lossy().into_owned() }
    }

    /// Accepted login.
    #[must_use]
    pub fn login(&self) -> Login {
        let Script { user, password, .. } = &self.shared.script;
        Login { user: user.clone(), password: password.clone(), database: "sbtest".into() }
    }

    /// Received statements, in order within each session; empty unless the script enables the log.
    #[must_use]
    pub fn log(&self) -> Vec<Statement> {
        locked(&self.shared.log).clone()
    }

    /// Number of received statements.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.shared.statements.load(Ordering::SeqCst)
    }

    /// Sum of the statements' times from arrival until the answer was ready.
    #[must_use]
    pub fn answering(&self) -> Duration {
        Duration::from_nanos(self.shared.answering_ns.load(Ordering::SeqCst))
    }

    /// Planned times of the received statements.
    #[must_use]
    pub fn truth(&self) -> Truth {
        self.shared.workers.truth()
    }

    /// Number of open sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        locked(&self.shared.open).len()
    }

    /// Ends all sessions and closes the listeners.
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
