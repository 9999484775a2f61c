//! How long a session waits for its server, and what ends a wait early.
//!
//! A server may trickle, fall silent or never let anybody in. So every wait is cut into short ones,
//! and between them the session looks whether somebody gave it up and whether a limit has passed.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How often a session that waits looks whether it was given up.
const LOOK: Duration = Duration::from_millis(100);

/// How long a session waits, for what.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// For connecting and the login together.
    pub login: Duration,
    /// For the next byte of an answer; None for no limit.
    pub silence: Option<Duration>,
    /// For everything: nothing is waited for beyond this moment.
    pub until: Option<Instant>,
    /// Set by somebody else: a login is not waited for any more.
    pub no_login: Arc<AtomicBool>,
    /// Set by somebody else: nothing is waited for any more.
    pub given_up: Arc<AtomicBool>,
}

impl Timeouts {
    /// Only the login is limited.
    #[must_use]
    pub fn of_login(login: Duration) -> Self {
        let (no_login, given_up) = Default::default();
        Self { login, silence: None, until: None, no_login, given_up }
    }
}

/// Why something is not waited for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WaitEnd {
    /// A limit of the time for several answers together has passed.
    #[error("no answer within the time limit")]
    Late,
    /// No byte has come for too long.
    #[error("the server has said nothing for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// Whoever wanted the answer has given it up.
    #[error("the wait was given up")]
    GivenUp,
}

impl From<WaitEnd> for io::Error {
    fn from(end: WaitEnd) -> Self {
        // Not `Interrupted`: that is taken for a signal, after which one tries again.
        let kind = match end {
            WaitEnd::Late | WaitEnd::Silent(_) => io::ErrorKind::TimedOut,
            WaitEnd::GivenUp => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, end)
    }
}

/// The timeouts of one session, which begin with those of its login.
#[derive(Debug)]
pub(crate) struct Clock {
    pub(super) timeouts: Timeouts,
    login_ends: Option<Instant>,
}

impl Clock {
    pub(crate) fn start(timeouts: &Timeouts) -> Self {
        Self { timeouts: timeouts.clone(), login_ends: Some(Instant::now() + timeouts.login) }
    }

    /// The same clock for the next of so many attempts: it has its share of the time that is left.
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

    /// Waits until `socket` is ready for what is `wanted`, or has ended.
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

    /// How long to wait before the next look, below a second, in a wait that has `begun` then.
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
