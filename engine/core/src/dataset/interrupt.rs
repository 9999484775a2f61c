//! Ends what is still waited for when a load is stopped: soon, whatever the server does.
//!
//! Logins are given up at once. Statements may end by themselves for a moment; then the server is
//! asked to end them (`KILL QUERY`, `pg_cancel_backend`), since it would go on with the index of a large
//! table for minutes after its client has left; at last their sessions are given up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::target::{Connect, Target};
use crate::error::Failure;
use crate::session::{CONNECT_TIMEOUT, Timeouts};

/// How long statements may go on after a stop: most end by themselves, with rows that are kept.
const GRACE: Duration = Duration::from_millis(500);
/// How long the server may take to be asked to end them, all together.
const KILLS_MAX: Duration = Duration::from_millis(500);
/// How long statements may take to end after that.
const KILLED_MAX: Duration = Duration::from_millis(200);
const KILL_THREADS_MAX: usize = 8;
/// How often a stop is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// What a MySQL says of a statement that was ended.
const INTERRUPTED: u16 = 1317;
/// What a PostgreSQL says of it.
const CANCELED: &str = "57014";

/// The sessions of one piece of work.
pub(super) struct Sessions<'a> {
    stop: &'a AtomicBool,
    timeouts: Timeouts,
    /// Our own number of each, and the server's.
    open: Mutex<Vec<(u32, u32)>>,
    count: AtomicU32,
}

impl<'a> Sessions<'a> {
    /// Sessions whose server may say nothing for so long; None for no limit.
    pub(super) fn new(stop: &'a AtomicBool, silence: Option<Duration>) -> Self {
        let timeouts = Timeouts { silence, ..Timeouts::of_login(CONNECT_TIMEOUT) };
        Self { stop, timeouts, open: Mutex::new(Vec::new()), count: AtomicU32::new(0) }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Opens one more session.
    pub(super) fn connect(&self, connect: &Connect<'_>) -> Result<Box<dyn Target>, Failure> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let target = connect(number, &self.timeouts).map_err(|failure| self.explained(failure))?;
        let id = target.connection_id();
        self.open.lock().expect("no session panics with the lock").push((number, id));
        Ok(target)
    }

    /// Takes what the sessions tell until they have all ended; after a stop it ends what they still
    /// wait for.
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

    /// Has the server end every statement, each at the server it was sent to; a session that has ended
    /// is unknown there, which is as well.
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
                // Without a session for it, the statement is given up later.
                drop(connect(*number, &timeouts).and_then(|mut at| at.end_statement(*id)));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..open.len().min(KILL_THREADS_MAX) {
                scope.spawn(kill);
            }
        });
    }

    /// What was ended or given up here was stopped, and did not fail.
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
