//! Opens the connections of a run and prepares its statements on each, before the clock starts.
//!
//! Several detached threads log in with blocking sessions. The first session of each server goes
//! ahead alone and checks the server's limits. A stop returns at once: threads waiting for a server
//! end soon after, a thread in a name look-up when the look-up ends.

pub mod limits;

use crate::driver::Driver;
use crate::error::Failure;
use crate::session::link::Link;
use crate::session::{PostgresSession, SILENCE_MAX, Session, Timeouts, Transport};
use crate::spec::RunSpec;
use crate::workload::{ConnectionRange, Workload};
use limits::{Demand, ServerLimits, raise_open_files_limit};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Least number of threads: a login takes several round trips.
const THREADS_LEAST: usize = 16;
/// More threads would only queue up at the server.
const THREADS_MOST: usize = 128;
const CONNECTIONS_OF_A_THREAD: usize = 64;
/// Polling interval for a stop.
const POLL: Duration = Duration::from_millis(20);

/// Connection after login, with prepared statements.
pub struct Opened {
    /// The socket.
    pub socket: OwnedFd,
    /// Compression and TLS, if any.
    pub link: Link,
    /// The server's ids of the workload's statements, in order.
    pub statement_ids: Vec<u32>,
    /// Protocol of the connection.
    pub driver: Driver,
    /// True if MySQL's result sets end with OK instead of EOF.
    pub deprecate_eof: bool,
    /// Version reported by the server.
    pub server_version: String,
}

/// Outcome for a connection, with its place in the range.
type Attempt = (u32, Result<Opened, Failure>);

/// Opens all connections of this process, in order.
///
/// # Errors
/// The failure of the connection with the lowest number, or `limits` if the system or the server
/// does not allow so many. All opened connections are closed.
pub fn open_all(spec: &RunSpec, stop: &AtomicBool) -> Result<Vec<Opened>, Failure> {
    raise_open_files_limit(u64::from(spec.own_connections()))
        .map_err(|message| Failure::new("limits", message))?;
    open_range(spec, spec.own(), stop)
}

/// Opens a range of connections, in order, in the calling thread's file table, which must have room
/// for them.
///
/// # Errors
/// As [`open_all`].
pub fn open_range(
    spec: &RunSpec,
    range: ConnectionRange,
    stop: &AtomicBool,
) -> Result<Vec<Opened>, Failure> {
    let (next, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    let (count, given_up) = (range.count(spec.connections), Arc::default());
    let opener = Opener::new(spec, Arc::clone(&given_up))?;
    let shared = Arc::new(OpenerThreads { opener, range, count, next, is_over });
    let opened = open_together(&shared, stop);
    shared.is_over.store(true, Ordering::Relaxed);
    given_up.store(true, Ordering::Relaxed);
    opened
}

fn open_together(shared: &Arc<OpenerThreads>, stop: &AtomicBool) -> Result<Vec<Opened>, Failure> {
    let (finished, arriving) = channel();
    shared.start(1, &finished)?;
    let (_, first) = next_attempt(&arriving, stop)?;
    let mut opened = vec![first?];
    let count = shared.count as usize;
    let threads = (count / CONNECTIONS_OF_A_THREAD).clamp(THREADS_LEAST, THREADS_MOST).min(count);
    shared.start(threads - 1, &finished)?;
    drop(finished);
    collect(&mut opened, count, &arriving, stop).map(|()| opened)
}

/// Appends arriving connections in order, behind the first.
fn collect(
    opened: &mut Vec<Opened>,
    count: usize,
    arriving: &Receiver<Attempt>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let mut others: Vec<Option<Opened>> = (1..count).map(|_| None).collect();
    let mut failed: Option<(u32, Failure)> = None;
    for _ in 1..count {
        match next_attempt(arriving, stop) {
            Ok((place, Ok(connection))) => others[place as usize - 1] = Some(connection),
            Ok((place, Err(failure))) => {
                if failed.as_ref().is_none_or(|(lowest, _)| place < *lowest) {
                    failed = Some((place, failure));
                }
            }
            // After a failure, each thread ends with its current connection.
            Err(failure) => return Err(failed.map_or(failure, |(_, first)| first)),
        }
    }
    opened.extend(others.into_iter().flatten());
    failed.map_or(Ok(()), |(_, failure)| Err(failure))
}

/// Waits for the next opened or failed connection.
fn next_attempt(arriving: &Receiver<Attempt>, stop: &AtomicBool) -> Result<Attempt, Failure> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::new("connect", "stopped before all connections were open"));
        }
        match arriving.recv_timeout(POLL) {
            Ok(attempt) => return Ok(attempt),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::new("connect", "not all connections could be opened"));
            }
        }
    }
}

/// State shared by the opening threads.
struct OpenerThreads {
    opener: Opener,
    range: ConnectionRange,
    count: u32,
    next: AtomicU32,
    is_over: AtomicBool,
}

impl OpenerThreads {
    fn start(self: &Arc<Self>, threads: usize, finished: &Sender<Attempt>) -> Result<(), Failure> {
        for _ in 0..threads {
            let (shared, finished) = (Arc::clone(self), finished.clone());
            std::thread::Builder::new()
                .name("opening".into())
                .spawn(move || shared.open(&finished))
                .map_err(|error| Failure::new("connect", format!("no thread: {error}")))?;
        }
        Ok(())
    }

    fn open(&self, finished: &Sender<Attempt>) {
        while !self.is_over.load(Ordering::Relaxed) {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            if place >= self.count {
                return;
            }
            let number = self.range.number(place);
            let outcome = if number < self.opener.spec.endpoint.count() {
                self.opener.open_first(number)
            } else {
                self.opener.open(number)
            };
            let failed = outcome.is_err();
            if failed {
                self.is_over.store(true, Ordering::Relaxed);
            }
            if finished.send((place, outcome)).is_err() || failed {
                return;
            }
        }
    }
}

/// Opens connections of a run from any thread; reads certificates once.
pub(crate) struct Opener {
    pub(crate) spec: RunSpec,
    workload: Box<dyn Workload>,
    transport: Transport,
    timeouts: Timeouts,
}

impl Opener {
    /// Setting `given_up` ends all waiting for servers.
    ///
    /// # Errors
    /// Mistakes in `spec`, or an unusable certificate or key.
    pub(crate) fn new(spec: &RunSpec, given_up: Arc<AtomicBool>) -> Result<Self, Failure> {
        let workload =
            spec.workload().map_err(|mistakes| Failure::new("spec", mistakes.join("\n")))?;
        let login = Timeouts::of_login(spec.connect_timeout());
        let timeouts = Timeouts { silence: Some(SILENCE_MAX), given_up, ..login };
        Ok(Self { spec: spec.clone(), workload, transport: spec.transport()?, timeouts })
    }

    /// Opens the run's connection `number`, counted from 0.
    ///
    /// # Errors
    /// At stage `connect` or `prepare`.
    pub(crate) fn open(&self, number: u32) -> Result<Opened, Failure> {
        match self.spec.driver {
            Driver::Mysql => self.prepare(self.connect(number)?),
            Driver::Pgsql => self.prepare_postgres(self.connect_postgres(number)?),
        }
    }

    /// Opens the first connection to a server and checks the server's limits for all connections.
    fn open_first(&self, number: u32) -> Result<Opened, Failure> {
        if self.spec.driver == Driver::Pgsql {
            let mut session = self.connect_postgres(number)?;
            if self.spec.check_limits {
                let timeout = self.spec.connect_timeout();
                limits::allow_postgres(&mut session, &self.demand(number), timeout)?;
            }
            return self.prepare_postgres(session);
        }
        let mut session = self.connect(number)?;
        if self.spec.check_limits {
            match ServerLimits::ask(&mut session, self.spec.connect_timeout()) {
                Ok(known) => known.allow(&self.demand(number))?,
                // A proxy may close a session on an unknown query.
                Err(_) => session = self.connect(number)?,
            }
        }
        self.prepare(session)
    }

    /// Demand on the server whose first connection is `number`.
    fn demand(&self, number: u32) -> Demand {
        let others = self.spec.connections - number - 1;
        Demand {
            connections: u64::from(1 + others / self.spec.endpoint.count()),
            statements: self.workload.statements().len() as u64,
        }
    }

    fn connect(&self, number: u32) -> Result<Session, Failure> {
        let spec = &self.spec;
        let endpoint = spec.endpoint.of(number);
        let connect =
            if spec.script.is_some() { Session::connect_script } else { Session::connect_over };
        connect(&endpoint, &spec.login(), &self.transport, &self.timeouts)
            .map_err(|error| error.into_failure("connect", ""))
    }

    fn prepare(&self, mut session: Session) -> Result<Opened, Failure> {
        let statements = self.workload.statements();
        let mut statement_ids = Vec::with_capacity(statements.len());
        for statement in statements {
            let id = session
                .prepare(&statement.sql)
                .map_err(|error| error.into_failure("prepare", &statement.sql))?;
            statement_ids.push(id);
        }
        let (deprecate_eof, version) =
            (session.deprecate_eof(), session.server_version().to_owned());
        let (socket, link) = session.into_stream();
        let driver = Driver::Mysql;
        Ok(Opened { socket, link, statement_ids, driver, deprecate_eof, server_version: version })
    }

    fn connect_postgres(&self, number: u32) -> Result<PostgresSession, Failure> {
        let endpoint = self.spec.endpoint.of(number);
        PostgresSession::connect(&endpoint, &self.spec.login(), &self.transport, &self.timeouts)
            .map_err(|error| error.into_failure("connect", ""))
    }

    /// Prepares the statements with ids from 1, in order.
    fn prepare_postgres(&self, mut session: PostgresSession) -> Result<Opened, Failure> {
        let mut statement_ids = Vec::new();
        for (id, statement) in (1..).zip(self.workload.statements()) {
            session
                .prepare(id, &statement.sql, &statement.types)
                .map_err(|error| error.into_failure("prepare", &statement.sql))?;
            statement_ids.push(id);
        }
        let server_version = session.server_version().to_owned();
        let (socket, link) = session.into_stream();
        let (driver, deprecate_eof) = (Driver::Pgsql, false);
        Ok(Opened { socket, link, statement_ids, driver, deprecate_eof, server_version })
    }
}
