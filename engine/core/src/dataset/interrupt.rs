//! Stops a load soon, whatever the server does.
//!
//! 1. Pending logins are given up at once.
//! 2. Statements may end by themselves during a grace period.
//! 3. The server is then asked to end them (`KILL QUERY`, `pg_cancel_backend`): it would go on
//!    indexing a large table for minutes after its client has left.
//! 4. Sessions still waiting are closed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::target::{Connect, Target};
use crate::error::Failure;
use crate::session::{CONNECT_TIMEOUT, Timeouts};

/// Grace period of statements after a stop: most end by themselves and keep their rows.
const GRACE: Duration = Duration::from_millis(500);
/// Time limit for the requests to end statements, all together.
const KILLS_MAX: Duration = Duration::from_millis(500);
/// Time limit of statements to end after the request.
const KILLED_MAX: Duration = Duration::from_millis(200);
const KILL_THREADS_MAX: usize = 8;
/// Polling interval for a stop.
const LOOK: Duration = Duration::from_millis(50);
/// MySQL's error for an interrupted statement.
const INTERRUPTED: u16 = 1317;
/// PostgreSQL's SQLSTATE for the same.
const CANCELED: &str = "57014";

/// Sessions of one load, prewarm or cleanup.
pub(super) struct Sessions<'a> {
    stop: &'a AtomicBool,
    timeouts: Timeouts,
    /// Pairs of our session number and the server's connection id.
    open: Mutex<Vec<(u32, u32)>>,
    count: AtomicU32,
}

impl<'a> Sessions<'a> {
    pub(super) fn new(stop: &'a AtomicBool, silence: Option<Duration>) -> Self {
        let timeouts = Timeouts { silence, ..Timeouts::of_login(CONNECT_TIMEOUT) };
        Self { stop, timeouts, open: Mutex::new(Vec::new()), count: AtomicU32::new(0) }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn connect(&self, connect: &Connect<'_>) -> Result<Box<dyn Target>, Failure> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let target = connect(number, &self.timeouts).map_err(|failure| self.explained(failure))?;
        let id = target.connection_id();
        self.open.lock().expect("no session panics with the lock").push((number, id));
        Ok(target)
    }

    /// Passes on messages of the sessions until all have ended; after a stop, ends pending
    /// statements.
    pub(super) fn receive<T>(
        &self,
        arriving: &Receiver<T>,
        connect: &Connect<'_>,
        mut take: impl FnMut(T),
    ) {
        let (mut stopped_at, mut killed_at) = (None, None);
        loop {
            if self.is_stopped() {
                self.timeouts.no_login.store(true, Ordering::Relaxed);
                let stopped_at = *stopped_at.get_or_insert_with(Instant::now);
                if stopped_at.elapsed() >= GRACE && killed_at.is_none() {
                    self.kill(connect);
                    killed_at = Some(Instant::now());
                }
                if killed_at.is_some_and(|at| at.elapsed() >= KILLED_MAX) {
                    self.timeouts.given_up.store(true, Ordering::Relaxed);
                }
            }
            match arriving.recv_timeout(LOOK) {
                Ok(news) => take(news),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks each server to end the statements of its sessions. Ids of ended sessions are unknown to
    /// it and do no harm.
    fn kill(&self, connect: &Connect<'_>) {
        let end = Instant::now() + KILLS_MAX;
        let timeouts = Timeouts { until: Some(end), ..Timeouts::of_login(KILLS_MAX) };
        let open = self.open.lock().expect("no session panics with the lock").clone();
        let next = AtomicUsize::new(0);
        let kill = || {
            while let Some((number, id)) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                if Instant::now() >= end {
                    return;
                }
                // No session for the request: the statement is given up later.
                drop(connect(*number, &timeouts).and_then(|mut at| at.end_statement(*id)));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..open.len().min(KILL_THREADS_MAX) {
                scope.spawn(kill);
            }
        });
    }

    /// Replaces the failure of an interrupted or abandoned statement by "stopped".
    pub(super) fn explained(&self, failure: Failure) -> Failure {
        let is_given_up = || {
            let Timeouts { no_login, given_up, .. } = &self.timeouts;
            let flag = if failure.stage == "connect" { no_login } else { given_up };
            failure.error_code().is_none() && flag.load(Ordering::Relaxed)
        };
        let is_ended = failure.code == Some(INTERRUPTED) || failure.sqlstate == CANCELED;
        if self.is_stopped() && (is_ended || is_given_up()) {
            return Failure::new(failure.stage, "stopped");
        }
        failure
    }
}
