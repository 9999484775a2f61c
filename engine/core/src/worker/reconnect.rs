//! Refused statements, lost connections, and planned new sessions: retry and reconnect.
//!
//! A lost connection ends the run, unless its error code is among the ignored. If it is, a thread
//! beside the loop, which must not wait for a login, opens another session. The new socket takes
//! the slot of the old, and the event is retried with new draws, while its latency goes on. The end
//! of the run does not wait for a server still down: such an event counts as unfinished.

use super::{Worker, broken, slot_number};
use crate::error::{CANNOT_CONNECT, CONNECTION_LOST, ErrorCode, Failure, is_loss};
use crate::opening::{Opened, Opener};
use crate::reactor::Reactor;
use crate::script::Reaction;
use crate::spec::RunSpec;
use dbdyno_wire::mysql::scanner::ServerError;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Delay between two attempts to reconnect; sysbench has 1 ms, which keeps a starting server busy.
const RETRY_DELAY: Duration = Duration::from_millis(20);
const THREADS_MAX: usize = 16;

/// A worker's rule for reconnecting; by default never.
#[derive(Default)]
pub struct Reconnect {
    sessions: Option<Box<dyn Sessions>>,
    survives_loss: bool,
    /// Events after which a session is replaced; 0 for never.
    every: u32,
    /// Slots without a session, a new session requested.
    pending: Vec<usize>,
}

impl Reconnect {
    /// Reconnects after `every` events of a session (0 for never), and if `survives_loss` also when
    /// a session is lost.
    #[must_use]
    pub fn new(sessions: impl Sessions + 'static, survives_loss: bool, every: u32) -> Self {
        Self { sessions: Some(Box::new(sessions)), survives_loss, every, pending: Vec::new() }
    }

    /// True if sessions are renewed by plan.
    #[inline]
    pub(super) const fn is_planned(&self) -> bool {
        self.every > 0
    }

    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Slots without a session, a new session requested.
    #[cfg(test)]
    pub(super) fn pending(&self) -> &[usize] {
        &self.pending
    }
}

/// A source of new sessions, which opens them while the worker goes on.
pub trait Sessions {
    /// Requests another session for `slot`, the run's connection `number`.
    fn request(&self, slot: usize, number: u32);

    /// Returns the next attempt that has ended, if any.
    fn next(&self) -> Option<Attempt>;
}

impl<R: Reactor> Worker<'_, R> {
    /// Handles a statement refused by the server. After an ignored error the event is retried, as
    /// in sysbench, with new draws, and its latency goes on: on MySQL without a ROLLBACK, on
    /// PostgreSQL after a ROLLBACK not counted as a statement. Any other error ends the run. Unlike
    /// in sysbench, the time limit holds even if the error never goes away.
    #[cold]
    pub(super) fn refused(&mut self, slot: usize, error: &ServerError) -> Result<(), Failure> {
        self.read_the_clock();
        let connection = &self.connections[slot];
        let code = ErrorCode::of(error);
        let is_ignored = self.orders.ignored.contains(code);
        let failure = || connection.refusal(error, self.orders.workload);
        if is_ignored && code.is_loss() {
            let failure = failure();
            let code = failure.code.or(Some(CONNECTION_LOST));
            return self.lost(slot, Failure { code, ..failure });
        }
        if connection.statement().reply.is_counted() {
            self.recorder.refused(code, self.now_ns);
        }
        let is_scripted = connection.is_scripted();
        if !is_ignored && !is_scripted {
            return Err(failure());
        }
        if !is_scripted && (self.is_over() || connection.is_leaving()) {
            return self.leave(slot);
        }
        if is_ignored && self.connections[slot].roll_back(error) {
            return self.send(slot);
        }
        self.rolled_back(slot, error)
    }

    /// Goes on after the transaction of a refused statement has ended.
    #[cold]
    pub(super) fn rolled_back(&mut self, slot: usize, error: &ServerError) -> Result<(), Failure> {
        if self.connections[slot].is_scripted() {
            return self.follow(slot, &Reaction::Refused(error));
        }
        if self.is_over() { self.leave(slot) } else { self.retry(slot) }
    }

    /// Retries the connection's event with new draws; its latencies go on.
    #[cold]
    fn retry(&mut self, slot: usize) -> Result<(), Failure> {
        self.recorder.restart();
        let due_ns = self.connections[slot].due_ns;
        if self.draw(slot, due_ns) {
            return self.send(slot);
        }
        self.complete(slot);
        self.go_on(slot)
    }

    /// Handles a connection lost in the middle of an event.
    #[cold]
    pub(super) fn lost(&mut self, slot: usize, failure: Failure) -> Result<(), Failure> {
        let Some(code) = failure.code.filter(|&code| is_loss(code) && self.reconnect.survives_loss)
        else {
            return Err(self.connections[slot].placed(failure));
        };
        self.read_the_clock();
        if self.is_over() || self.connections[slot].is_leaving() {
            self.recorder.error(code.into(), self.now_ns);
            self.connections[slot].lose();
            self.retire(slot);
            return Ok(());
        }
        self.connections[slot].was_lost = true;
        self.reconnect_slot(slot);
        Ok(())
    }

    /// Counts the connection's ended event; true if its session is renewed before the event counts
    /// as complete.
    #[cold]
    pub(super) fn reconnect_by_plan(&mut self, slot: usize) -> Result<bool, Failure> {
        let events = self.connections[slot].count_event();
        if !events.is_multiple_of(self.reconnect.every) || self.is_over() {
            return Ok(false);
        }
        self.renew(slot)?;
        Ok(true)
    }

    /// Logs out and requests another session.
    pub(super) fn renew(&mut self, slot: usize) -> Result<(), Failure> {
        self.hang_up(slot)?;
        self.reconnect_slot(slot);
        Ok(())
    }

    /// Logs out, unless the server has closed the session already.
    pub(super) fn hang_up(&mut self, slot: usize) -> Result<(), Failure> {
        if self.connections[slot].is_gone() {
            return Ok(());
        }
        let logout = self.connections[slot].logout();
        self.reactor.send(slot_number(slot), logout).map_err(|error| broken(&error))?;
        self.connections[slot].lose();
        self.flush()
    }

    pub(super) fn reconnect_slot(&mut self, slot: usize) {
        self.connections[slot].lose();
        if let Some(sessions) = &self.reconnect.sessions {
            sessions.request(slot, self.connections[slot].number());
            self.reconnect.pending.push(slot);
        }
    }

    /// Takes over the sessions opened meanwhile. After the end of the run, slots still without a
    /// session are retired.
    #[cold]
    pub(super) fn finish_reconnects(&mut self) -> Result<(), Failure> {
        self.read_the_clock();
        while let Some(Attempt { slot, outcome }) =
            self.reconnect.sessions.as_ref().and_then(|sessions| sessions.next())
        {
            if !self.reconnect.pending.contains(&slot) {
                continue; // it was retired when the run was over
            }
            match outcome {
                Ok(opened) => self.reconnected(slot, opened)?,
                Err(failure) if self.reconnect.survives_loss => {
                    let code = failure.error_code().unwrap_or(CANNOT_CONNECT.into());
                    self.recorder.error(code, self.now_ns);
                }
                Err(failure) => return Err(failure),
            }
        }
        if self.is_over() {
            for slot in std::mem::take(&mut self.reconnect.pending) {
                let connection = &self.connections[slot];
                if connection.has_ended() && !connection.is_scripted() {
                    self.complete(slot);
                }
                self.retire(slot);
            }
        }
        Ok(())
    }

    fn reconnected(&mut self, slot: usize, opened: Opened) -> Result<(), Failure> {
        self.reconnect.pending.retain(|&waiting| waiting != slot);
        let deprecate_eof = opened.deprecate_eof;
        let socket = self.connections[slot].reopened(opened);
        self.reactor.replace(slot_number(slot), socket).map_err(|error| broken(&error))?;
        self.recorder.reconnect(self.now_ns);
        let was_lost = std::mem::take(&mut self.connections[slot].was_lost);
        if self.connections[slot].is_scripted() {
            return self.follow(slot, &Reaction::Renewed { was_lost, deprecate_eof });
        }
        if self.connections[slot].has_ended() {
            self.complete(slot);
            return self.go_on(slot);
        }
        self.retry(slot)
    }
}

/// A request to open another session.
struct Request {
    slot: usize,
    number: u32,
}

/// An ended attempt to open a session.
pub struct Attempt {
    /// Slot of the request.
    pub slot: usize,
    /// The session, or the reason for the failure.
    pub outcome: Result<Opened, Failure>,
}

/// The worker's handle of its reconnecting threads.
///
/// Requests go through a channel, sessions come back through another, and a byte on a socket
/// watched by the reactor wakes the worker. The threads are detached: a thread waiting for a silent
/// server ends with its time limit, and does not hold up the end of the run.
pub struct ReconnectThreads {
    requests: Sender<Request>,
    attempts: Receiver<Attempt>,
    is_over: Arc<AtomicBool>,
}

/// State shared by the threads that reconnect.
struct Shared {
    opener: Opener,
    /// True to retry until the server accepts the session.
    retries: bool,
    requests: Mutex<Receiver<Request>>,
    waker: UnixStream,
    is_over: Arc<AtomicBool>,
}

impl ReconnectThreads {
    /// Starts threads for a worker with `connections` connections; returns the socket that wakes
    /// the worker, to be watched by its reactor.
    ///
    /// # Errors
    /// The system provides no socket or thread.
    pub fn start(spec: &RunSpec, connections: usize) -> io::Result<(Self, OwnedFd)> {
        let (requests, requested) = channel();
        let (done, attempts) = channel();
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            opener: Opener::new(spec, Arc::clone(&is_over))
                .map_err(|failure| io::Error::other(failure.message))?,
            retries: spec.ignore_errors.survives_loss(),
            requests: Mutex::new(requested),
            waker,
            is_over: Arc::clone(&is_over),
        });
        for _ in 0..connections.min(THREADS_MAX) {
            let (shared, done) = (Arc::clone(&shared), done.clone());
            thread::Builder::new().name("reconnect".into()).spawn(move || shared.serve(&done))?;
        }
        Ok((Self { requests, attempts, is_over }, woken.into()))
    }
}

impl Sessions for ReconnectThreads {
    fn request(&self, slot: usize, number: u32) {
        // The threads live as long as this end of the channel.
        let _ = self.requests.send(Request { slot, number });
    }

    fn next(&self) -> Option<Attempt> {
        self.attempts.try_recv().ok()
    }
}

impl Drop for ReconnectThreads {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn serve(&self, done: &Sender<Attempt>) {
        while let Some(Request { slot, number }) = self.next_request() {
            loop {
                let outcome = self.opener.open(number);
                let is_last = outcome.is_ok() || !self.retries;
                if done.send(Attempt { slot, outcome }).is_err() {
                    return;
                }
                // A full socket already wakes the worker.
                let _ = (&self.waker).write(&[1]);
                if is_last || self.is_over() {
                    break;
                }
                thread::sleep(RETRY_DELAY);
            }
        }
    }

    fn next_request(&self) -> Option<Request> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.recv().ok().filter(|_| !self.is_over())
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}
