//! What becomes of a refused statement, of a lost connection, and of one whose time has come by plan.
//!
//! A lost connection ends the run, unless the errors that say so are ignored: then another session
//! is opened beside the loop, its socket takes the slot of the old one, and the event begins again with
//! new draws, while its latency goes on. When the run's time is over nobody waits any more for a server
//! that has not come back: such an event stays unfinished.

use super::{Worker, broken, slot_number};
use crate::error::{CANNOT_CONNECT, Failure, is_loss};
use crate::opening::{Opened, Opener};
use crate::reactor::Reactor;
use crate::spec::RunSpec;
use dbdyno_wire::mysql::command;
use dbdyno_wire::mysql::scanner::ServerError;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Whether and how sessions are replaced.
#[derive(Default)]
pub struct Revival {
    diallers: Option<Diallers>,
    survives_loss: bool,
    /// Events after which a session is replaced; 0 for never.
    every: u32,
    /// Slots that wait for a session.
    awaiting: Vec<usize>,
}

impl Revival {
    /// Sessions are replaced after every so many events (0 for never), and when they are lost if
    /// `survives_loss`.
    #[must_use]
    pub const fn new(diallers: Diallers, survives_loss: bool, every: u32) -> Self {
        Self { diallers: Some(diallers), survives_loss, every, awaiting: Vec::new() }
    }

    /// Whether sessions are replaced by plan.
    #[inline]
    pub(super) const fn is_planned(&self) -> bool {
        self.every > 0
    }

    #[inline]
    pub(super) const fn is_awaited(&self) -> bool {
        !self.awaiting.is_empty()
    }
}

impl<R: Reactor> Worker<'_, R> {
    /// A statement failed: an ignorable error begins the event again, as sysbench does, with new
    /// draws and without a ROLLBACK, and its latency goes on. Any other error ends the run. Unlike
    /// sysbench, the time limit is kept even if the error never goes away.
    #[cold]
    pub(super) fn refused(&mut self, slot: usize, error: &ServerError) -> Result<(), Failure> {
        self.read_the_clock();
        let connection = &self.connections[slot];
        let is_ignored = self.orders.ignored.contains(error.code);
        let failure = || {
            connection.placed(Failure {
                code: Some(error.code),
                sqlstate: String::from_utf8_lossy(&error.sqlstate).into_owned(),
                statement: connection.statement().kind.name().to_owned(),
                ..Failure::new("run", &*error.message)
            })
        };
        if is_ignored && is_loss(error.code) {
            let failure = failure();
            return self.lost(slot, failure);
        }
        self.recorder.refused(error.code, self.now_ns);
        if !is_ignored {
            return Err(failure());
        }
        if self.is_over() || connection.is_leaving() {
            return self.leave(slot);
        }
        self.begin_again(slot)
    }

    /// Begins the event of the connection again, with new draws; its latency goes on.
    #[cold]
    fn begin_again(&mut self, slot: usize) -> Result<(), Failure> {
        self.recorder.restart();
        let due_ns = self.connections[slot].due_ns;
        if self.draw(slot, due_ns) {
            return self.send(slot);
        }
        self.complete(slot);
        self.go_on(slot)
    }

    /// The connection broke in the middle of an event.
    #[cold]
    pub(super) fn lost(&mut self, slot: usize, failure: Failure) -> Result<(), Failure> {
        let Some(code) = failure.code.filter(|&code| is_loss(code) && self.revival.survives_loss)
        else {
            return Err(self.connections[slot].placed(failure));
        };
        self.read_the_clock();
        if self.is_over() || self.connections[slot].is_leaving() {
            self.recorder.error(code, self.now_ns);
            self.connections[slot].lose();
            self.rest(slot);
            return Ok(());
        }
        self.ask_for_another_session(slot);
        Ok(())
    }

    /// The connection's event has ended; true when its session is to be replaced before the event counts
    /// as complete.
    #[cold]
    pub(super) fn replace_by_plan(&mut self, slot: usize) -> Result<bool, Failure> {
        let events = self.connections[slot].count_event();
        if !events.is_multiple_of(self.revival.every) || self.is_over() {
            return Ok(false);
        }
        let mut packet = Vec::new();
        command::quit(&mut packet);
        let goodbye = self.connections[slot].goodbye(&packet);
        self.reactor.send(slot_number(slot), goodbye).map_err(|error| broken(&error))?;
        self.flush()?;
        self.ask_for_another_session(slot);
        Ok(true)
    }

    fn ask_for_another_session(&mut self, slot: usize) {
        self.connections[slot].lose();
        if let Some(diallers) = &self.revival.diallers {
            diallers.ask(slot, self.connections[slot].number());
            self.revival.awaiting.push(slot);
        }
    }

    /// Takes in the sessions that have been opened since; none is waited for when the run is over.
    #[cold]
    pub(super) fn attend_to_the_lost(&mut self) -> Result<(), Failure> {
        self.read_the_clock();
        while let Some(Attempt { slot, outcome }) =
            self.revival.diallers.as_ref().and_then(Diallers::next)
        {
            match outcome {
                Ok(opened) => self.revive(slot, opened)?,
                Err(failure) if self.revival.survives_loss => {
                    self.recorder.error(failure.code.unwrap_or(CANNOT_CONNECT), self.now_ns);
                }
                Err(failure) => return Err(failure),
            }
        }
        if self.is_over() {
            for slot in std::mem::take(&mut self.revival.awaiting) {
                if self.connections[slot].has_ended() {
                    self.complete(slot);
                }
                self.rest(slot);
            }
        }
        Ok(())
    }

    fn revive(&mut self, slot: usize, opened: Opened) -> Result<(), Failure> {
        self.revival.awaiting.retain(|&waiting| waiting != slot);
        let socket = self.connections[slot].reopened(opened);
        self.reactor.replace(slot_number(slot), socket).map_err(|error| broken(&error))?;
        self.recorder.reconnect(self.now_ns);
        if self.connections[slot].has_ended() {
            self.complete(slot);
            return self.go_on(slot);
        }
        self.begin_again(slot)
    }
}

/// Between two attempts; sysbench has 1 ms, and hammers a server that starts.
const PAUSE: Duration = Duration::from_millis(20);
const THREADS_MAX: usize = 16;

/// A wish for another session.
struct Ask {
    slot: usize,
    number: u32,
}

/// How an attempt to open a session ended.
pub struct Attempt {
    /// Whose session it is.
    pub slot: usize,
    /// The session, or why there is none.
    pub outcome: Result<Opened, Failure>,
}

/// The threads that dial for one worker, as the worker sees them.
pub struct Diallers {
    asks: Sender<Ask>,
    attempts: Receiver<Attempt>,
    over: Arc<AtomicBool>,
}

/// What every dialling thread has.
struct Dialler {
    opener: Opener,
    /// Whether it tries until it succeeds.
    persists: bool,
    asks: Mutex<Receiver<Ask>>,
    bell: UnixStream,
    over: Arc<AtomicBool>,
}

impl Diallers {
    /// Starts threads for a worker with `connections` connections, and gives the socket of the bell.
    ///
    /// # Errors
    /// Those of the system, when it gives no socket or thread.
    pub fn start(spec: &RunSpec, connections: usize) -> io::Result<(Self, OwnedFd)> {
        let (asks, asked) = channel();
        let (done, attempts) = channel();
        let (bell, ears) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        let over = Arc::new(AtomicBool::new(false));
        let dialler = Arc::new(Dialler {
            opener: Opener::new(spec).map_err(|failure| io::Error::other(failure.message))?,
            persists: spec.ignore_errors.survives_loss(),
            asks: Mutex::new(asked),
            bell,
            over: Arc::clone(&over),
        });
        for _ in 0..connections.min(THREADS_MAX) {
            let (dialler, done) = (Arc::clone(&dialler), done.clone());
            thread::Builder::new().name("dialler".into()).spawn(move || dialler.serve(&done))?;
        }
        Ok((Self { asks, attempts, over }, ears.into()))
    }

    /// Wishes another session for the run's connection `number`, which has this slot.
    pub fn ask(&self, slot: usize, number: u32) {
        // The threads live as long as this end of the channel.
        let _ = self.asks.send(Ask { slot, number });
    }

    /// An attempt that has ended since.
    pub fn next(&self) -> Option<Attempt> {
        self.attempts.try_recv().ok()
    }
}

impl Drop for Diallers {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Dialler {
    fn serve(&self, done: &Sender<Attempt>) {
        while let Some(Ask { slot, number }) = self.next_ask() {
            loop {
                let outcome = self.opener.open(number);
                let is_last = outcome.is_ok() || !self.persists;
                if done.send(Attempt { slot, outcome }).is_err() {
                    return;
                }
                // A bell that is full of rings has been heard.
                let _ = (&self.bell).write(&[1]);
                if is_last || self.is_over() {
                    break;
                }
                thread::sleep(PAUSE);
            }
        }
    }

    fn next_ask(&self) -> Option<Ask> {
        let asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        asks.recv().ok().filter(|_| !self.is_over())
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}
