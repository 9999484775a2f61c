//! Timeouts of a session, and the flags to cancel its waits early.
//!
//! A server may trickle, fall silent or never finish a login. So every wait is cut into slices of
//! at most 100 ms, and between them the session checks for cancellation and for a limit passed.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Longest slice of a wait before the next check for cancellation.
const LOOK: Duration = Duration::from_millis(100);

/// Time limits of a session, and the flags to cancel its waits.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// For connecting and the login together.
    pub login: Duration,
    /// For the next byte of an answer, if limited; not in force during the login.
    pub silence: Option<Duration>,
    /// End of every wait of the session.
    pub until: Option<Instant>,
    /// Set from another thread to cancel the wait for a login.
    pub no_login: Arc<AtomicBool>,
    /// Set from another thread to cancel every wait.
    pub given_up: Arc<AtomicBool>,
}

impl Timeouts {
    /// Limits the login alone.
    #[must_use]
    pub fn of_login(login: Duration) -> Self {
        let (no_login, given_up) = Default::default();
        Self { login, silence: None, until: None, no_login, given_up }
    }
}

/// Reason for the early end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WaitEnd {
    /// The time limit of the login, or of all answers together, has passed.
    #[error("no answer within the time limit")]
    Late,
    /// No byte has come for too long.
    #[error("the server has said nothing for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The wait was cancelled from another thread.
    #[error("the wait was given up")]
    GivenUp,
}

impl From<WaitEnd> for io::Error {
    fn from(end: WaitEnd) -> Self {
        // Not `Interrupted`: it is taken for a signal, and the call would be retried.
        let kind = match end {
            WaitEnd::Late | WaitEnd::Silent(_) => io::ErrorKind::TimedOut,
            WaitEnd::GivenUp => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, end)
    }
}

/// Running timeouts of a session; the login's limit holds until [`Clock::logged_in`].
#[derive(Debug)]
pub(crate) struct Clock {
    pub(super) timeouts: Timeouts,
    login_ends: Option<Instant>,
}

impl Clock {
    pub(crate) fn start(timeouts: &Timeouts) -> Self {
        Self { timeouts: timeouts.clone(), login_ends: Some(Instant::now() + timeouts.login) }
    }

    /// A clock for the next of `attempts` attempts, with an equal share of the time left.
    pub(super) fn share(&self, attempts: u32) -> Self {
        let now = Instant::now();
        let ends = [self.timeouts.until, self.login_ends].into_iter().flatten().min();
        let login_ends = ends.map(|end| now + end.saturating_duration_since(now) / attempts);
        Self { timeouts: self.timeouts.clone(), login_ends }
    }

    /// The login is over: its limits no longer hold.
    pub(super) const fn logged_in(&mut self) {
        self.login_ends = None;
    }

    /// Waits until `socket` is ready for the `wanted` events, or has ended.
    pub(crate) fn wait(&self, socket: impl AsFd, wanted: PollFlags) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            let length = self.next_wait(begun)?;
            let time = Timespec { tv_sec: 0, tv_nsec: length.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&socket, wanted)], Some(&time)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Length of the next slice, below a second, of a wait since `begun`.
    pub(crate) fn next_wait(&self, begun: Instant) -> Result<Duration, WaitEnd> {
        let Timeouts { silence, until, no_login, given_up, .. } = &self.timeouts;
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if is_set(given_up) || (self.login_ends.is_some() && is_set(no_login)) {
            return Err(WaitEnd::GivenUp);
        }
        let (now, mut length) = (Instant::now(), LOOK);
        for end in [*until, self.login_ends].into_iter().flatten() {
            let left = end.checked_duration_since(now).filter(|left| !left.is_zero());
            length = length.min(left.ok_or(WaitEnd::Late)?);
        }
        if let (Some(limit), None) = (*silence, self.login_ends) {
            let left = limit.checked_sub(now - begun).filter(|left| !left.is_zero());
            length = length.min(left.ok_or(WaitEnd::Silent(limit))?);
        }
        Ok(length)
    }
}
