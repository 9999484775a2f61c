//! Kills long statements of a load that was stopped (`KILL QUERY`).
//!
//! An index of a large table takes minutes, and the server would go on with it after its client has
//! left.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::target::{Connect, Target};
use crate::error::Failure;

/// How long statements may go on after a stop: most end by themselves, with rows that are kept.
const GRACE: Duration = Duration::from_millis(500);
/// What the server says of a statement that was ended by `KILL QUERY`.
const INTERRUPTED: u16 = 1317;

/// The sessions of one piece of work.
pub(super) struct Sessions<'a> {
    stop: &'a AtomicBool,
    /// Our own number of each, and the server's.
    open: Mutex<Vec<(u32, u32)>>,
    count: AtomicU32,
}

impl<'a> Sessions<'a> {
    pub(super) fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, open: Mutex::new(Vec::new()), count: AtomicU32::new(0) }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Opens one more session.
    pub(super) fn connect(&self, connect: &Connect<'_>) -> Result<Box<dyn Target>, Failure> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let target = connect(number)?;
        let id = target.connection_id();
        self.open.lock().expect("no session panics with the lock").push((number, id));
        Ok(target)
    }

    /// Takes what the sessions tell until they have all ended; after a stop it has the server end
    /// what they still wait for.
    pub(super) fn receive<T>(
        &self,
        arriving: &Receiver<T>,
        connect: &Connect<'_>,
        mut take: impl FnMut(T),
    ) {
        let mut has_killed = false;
        loop {
            match arriving.recv_timeout(GRACE) {
                Ok(news) => take(news),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if self.is_stopped() && !has_killed => {
                    has_killed = true;
                    // Without a session for it the statements end when they end.
                    drop(self.kill(connect));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn kill(&self, connect: &Connect<'_>) -> Result<(), Failure> {
        for (number, id) in self.open.lock().expect("no session panics with the lock").iter() {
            // At its own server; one that has ended is unknown to it, which is as well.
            drop(connect(*number)?.execute(&format!("KILL QUERY {id}")));
        }
        Ok(())
    }

    /// A statement that was ended here was stopped, and did not fail.
    pub(super) fn explained(&self, failure: Failure) -> Failure {
        if failure.code == Some(INTERRUPTED) && self.is_stopped() {
            return Failure::new(failure.stage, "stopped");
        }
        failure
    }
}
