//! Opens the connections of a run and prepares its statements on each, before the clock starts.
//!
//! Several detached threads log in with blocking sessions. The first session goes ahead alone, so
//! that a server that is not there is asked once. A stop returns at once: threads waiting for a
//! server end soon after, a thread in a name look-up when the look-up ends.

pub mod limits;

use crate::driver::Driver;
use crate::error::Failure;
use crate::session::link::Link;
use crate::session::{PostgresSession, SILENCE_MAX, Session, Timeouts, Transport};
use crate::spec::RunSpec;
use crate::workload::{ConnectionRange, Workload};
use limits::{Demand, NamedLimits, is_full, raise_open_files_limit};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Least number of threads: a login takes several round trips.
const THREADS_LEAST: usize = 16;
/// More threads would only queue up at the server.
const THREADS_MOST: usize = 128;
const CONNECTIONS_OF_A_THREAD: usize = 64;
/// Polling interval for a stop.
const POLL: Duration = Duration::from_millis(20);
/// Time for a server that refused a connection to name its limits.
const LIMITS_MAX: Duration = Duration::from_secs(1);

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

/// A failed connection.
struct Refused {
    number: u32,
    /// Connections to the same server that were open at the end.
    open: u64,
    failure: Box<Failure>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { number: 0, open: 0, failure: Box::new(failure) }
    }
}

/// Opens all connections of this process, in order.
///
/// # Errors
/// The failure of the connection with the lowest number, or `limits` if the system does not allow
/// so many. All opened connections are closed.
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
    let opened = open_together(&shared, stop).map_err(|refused| shared.explained(refused));
    shared.is_over.store(true, Ordering::Relaxed);
    given_up.store(true, Ordering::Relaxed);
    opened
}

fn open_together(shared: &Arc<OpenerThreads>, stop: &AtomicBool) -> Result<Vec<Opened>, Refused> {
    let (finished, arriving) = channel();
    shared.start(1, &finished)?;
    let (_, first) = next_attempt(&arriving, stop)?;
    let first = first.map_err(|failure| shared.refused(0, &[], failure))?;
    let count = shared.count as usize;
    let threads = (count / CONNECTIONS_OF_A_THREAD).clamp(THREADS_LEAST, THREADS_MOST).min(count);
    shared.start(threads - 1, &finished)?;
    drop(finished);
    collect(shared, first, &arriving, stop)
}

/// Waits for all connections behind the first; gives all in order.
fn collect(
    shared: &OpenerThreads,
    first: Opened,
    arriving: &Receiver<Attempt>,
    stop: &AtomicBool,
) -> Result<Vec<Opened>, Refused> {
    let others = (1..shared.count).map(|_| None);
    let mut opened: Vec<Option<Opened>> = std::iter::once(Some(first)).chain(others).collect();
    let mut failed: Option<(u32, Failure)> = None;
    for _ in 1..shared.count {
        match next_attempt(arriving, stop) {
            Ok((place, Ok(connection))) => opened[place as usize] = Some(connection),
            Ok((place, Err(failure))) => {
                if failed.as_ref().is_none_or(|(lowest, _)| place < *lowest) {
                    failed = Some((place, failure));
                }
            }
            // After a failure, each thread ends with its current connection.
            Err(_) if failed.is_some() => break,
            Err(failure) => return Err(failure.into()),
        }
    }
    match failed {
        Some((place, failure)) => Err(shared.refused(place, &opened, failure)),
        None => Ok(opened.into_iter().flatten().collect()),
    }
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
            thread::Builder::new()
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
            let outcome = self.opener.open(self.range.number(place));
            let failed = outcome.is_err();
            if failed {
                self.is_over.store(true, Ordering::Relaxed);
            }
            if finished.send((place, outcome)).is_err() || failed {
                return;
            }
        }
    }

    /// The failure at a place, with the connections that its server held.
    fn refused(&self, place: u32, opened: &[Option<Opened>], failure: Failure) -> Refused {
        let servers = self.opener.spec.endpoint.count();
        let server_of = |place: u32| self.range.number(place) % servers;
        let held = opened
            .iter()
            .zip(0..)
            .filter(|(one, other)| one.is_some() && server_of(*other) == server_of(place));
        let (number, open) = (self.range.number(place), held.count() as u64);
        Refused { number, open, failure: Box::new(failure) }
    }

    /// The failure, with a remedy if a limit caused it. A part of the connections does not know how
    /// many the others had opened.
    fn explained(&self, refused: Refused) -> Failure {
        let is_whole = self.count == self.opener.spec.connections;
        if is_whole && is_full(&refused.failure) {
            self.opener.explained(refused)
        } else {
            *refused.failure
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
            Driver::Mysql => self.prepare(self.connect(number, &self.timeouts)?),
            Driver::Pgsql => self.prepare_postgres(self.connect_postgres(number, &self.timeouts)?),
        }
    }

    fn explained(&self, refused: Refused) -> Failure {
        let servers = self.spec.endpoint.count();
        let Refused { number, open, failure } = refused;
        let behind = self.spec.connections - number % servers - 1;
        let demand = Demand {
            connections: u64::from(1 + behind / servers),
            open,
            statements: self.workload.statements().len() as u64,
        };
        self.limits_of(number).explain(*failure, &demand)
    }

    /// Limits named by the server of a connection; unknown without an answer. Closed sessions may
    /// take its room for a moment longer.
    fn limits_of(&self, number: u32) -> NamedLimits {
        let ends = Instant::now() + LIMITS_MAX;
        let timeouts = Timeouts { until: Some(ends), ..self.timeouts.clone() };
        while Instant::now() < ends {
            let asked = match self.spec.driver {
                Driver::Mysql => self
                    .connect(number, &timeouts)
                    .map(|mut session| NamedLimits::of_mysql(&mut session)),
                Driver::Pgsql => self
                    .connect_postgres(number, &timeouts)
                    .map(|mut session| NamedLimits::of_postgres(&mut session)),
            };
            if let Ok(known) = asked {
                return known;
            }
            thread::sleep(POLL);
        }
        NamedLimits::default()
    }

    fn connect(&self, number: u32, timeouts: &Timeouts) -> Result<Session, Failure> {
        let spec = &self.spec;
        let endpoint = spec.endpoint.of(number);
        let connect =
            if spec.script.is_some() { Session::connect_script } else { Session::connect_over };
        connect(&endpoint, &spec.login(), &self.transport, timeouts)
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

    fn connect_postgres(
        &self,
        number: u32,
        timeouts: &Timeouts,
    ) -> Result<PostgresSession, Failure> {
        let endpoint = self.spec.endpoint.of(number);
        PostgresSession::connect(&endpoint, &self.spec.login(), &self.transport, timeouts)
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
