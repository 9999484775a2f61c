//! Opens lost connections again, beside the worker, which must not wait for a login.
//!
//! Some threads dial for one worker; it asks through a channel and finds the sessions in another. A byte
//! on a socket that its reactor watches, the bell, tells it to look. The threads are detached: one that
//! waits for a server that does not answer ends with its time limit, and does not hold up the run.

use crate::error::Failure;
use crate::opening::{Opened, Opener};
use crate::spec::RunSpec;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

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
