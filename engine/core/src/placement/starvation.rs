//! Ends following the server when other programs keep the engine thread from running.
//!
//! An idle thread (`SCHED_IDLE`) beside a busy one may get the core for a moment every few seconds
//! only, too rarely to notice that itself: with eight busy loops on two cores a run of 0.2 s took
//! 99 s. So a normal thread watches it, and makes it a batch thread when in several checks in a row
//! it was ready to run and did not run.

use super::set_policy;
use rustix::thread::{CpuSet, Pid, gettid, sched_setaffinity};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Between two checks: rare enough to cost nothing.
const CHECK: Duration = Duration::from_millis(50);
/// So many checks that found the thread waiting, less those that did not, are borne.
const WAITING_MOST: u32 = 3;

/// Watches the thread that made it, for as long as it lives.
pub(super) struct StarvationGuard {
    has_acted: Arc<AtomicBool>,
    _watched: Sender<()>,
}

impl StarvationGuard {
    /// Watches the calling thread, which must still be a normal one; `home` is where it may run
    /// afterwards.
    ///
    /// # Errors
    /// The system's, when it has no thread to spare or does not say which threads run.
    pub(super) fn of_this_thread(home: CpuSet) -> io::Result<Self> {
        let thread = WatchedThread::this_thread()?;
        let has_acted = Arc::new(AtomicBool::new(false));
        let (watched, left) = channel();
        let acted = Arc::clone(&has_acted);
        std::thread::Builder::new().name("starvation".into()).spawn(move || {
            if thread.starves(&left) {
                set_policy(Some(thread.id), libc::SCHED_BATCH);
                let _ = sched_setaffinity(Some(thread.id), &home);
                acted.store(true, Ordering::Release);
            }
        })?;
        Ok(Self { has_acted, _watched: watched })
    }

    /// Whether the thread is a batch thread again.
    #[inline]
    pub(super) fn has_acted(&self) -> bool {
        self.has_acted.load(Ordering::Acquire)
    }
}

/// The thread that is watched.
struct WatchedThread {
    id: Pid,
    /// Its state, behind its name.
    stat: File,
    /// How long it has run, in nanoseconds.
    schedstat: File,
}

impl WatchedThread {
    fn this_thread() -> io::Result<Self> {
        let id = gettid();
        let file =
            |name: &str| File::open(format!("/proc/self/task/{}/{name}", id.as_raw_nonzero()));
        let thread = Self { id, stat: file("stat")?, schedstat: file("schedstat")? };
        thread.state()?;
        Ok(thread)
    }

    /// Waits until the thread starves, and gives true, or is watched no more.
    fn starves(&self, left: &Receiver<()>) -> bool {
        let (mut before_ns, mut waiting) = (0, 0_u32);
        while left.recv_timeout(CHECK) == Err(RecvTimeoutError::Timeout) {
            let Ok((wants_to_run, ran_ns)) = self.state() else { return false };
            let is_waiting = wants_to_run && ran_ns == before_ns;
            waiting = if is_waiting { waiting + 1 } else { waiting.saturating_sub(1) };
            if waiting > WAITING_MOST {
                return true;
            }
            before_ns = ran_ns;
        }
        false
    }

    /// Whether the thread runs or wants to, and for how many nanoseconds it has run.
    fn state(&self) -> io::Result<(bool, u64)> {
        let (mut stat, mut schedstat) = ([0; 64], [0; 64]);
        let stat = read_start(&self.stat, &mut stat)?;
        let schedstat = read_start(&self.schedstat, &mut schedstat)?;
        let wants_to_run = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'));
        let ran_ns = schedstat.split(' ').next().and_then(|ns| ns.parse().ok());
        Ok((wants_to_run, ran_ns.ok_or(io::ErrorKind::InvalidData)?))
    }
}

/// The beginning of a file of /proc, as it is now.
fn read_start<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a str> {
    let length = file.read_at(buffer, 0)?;
    std::str::from_utf8(&buffer[..length]).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;
    use std::time::Instant;

    #[test]
    fn who_sleeps_or_runs_is_let_alone() {
        std::thread::spawn(|| {
            let starvation =
                StarvationGuard::of_this_thread(sched_getaffinity(None).unwrap()).unwrap();
            std::thread::sleep(CHECK * (2 * WAITING_MOST));
            assert!(!starvation.has_acted(), "a thread that sleeps wants nothing");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_a_thread_has_run_is_told_in_nanoseconds() {
        std::thread::spawn(|| {
            let thread = WatchedThread::this_thread().unwrap();
            let (runs, before_ns) = thread.state().unwrap();
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(20) {}
            let (_, after_ns) = thread.state().unwrap();
            assert!(runs && after_ns > before_ns, "{before_ns} {after_ns}");
        })
        .join()
        .unwrap();
    }
}
