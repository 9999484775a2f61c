//! Ends a ride whose thread others keep from running.
//!
//! An idle thread beside a busy one may get the core for a moment every few seconds only, so it cannot
//! be left to notice that itself: with eight busy loops on two cores a run of 0.2 s took 99 s. A normal
//! thread looks at it instead, a few times a second, and makes it a batch thread when look after look
//! it wanted to run and did not.

use super::{allow, waiting_its_turn};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Between two looks: rare enough to cost nothing beside a load that mostly waits.
const LOOK: Duration = Duration::from_millis(50);
/// Looks that found the thread hungry, less those that did not, which end a ride.
const HUNGRY_MOST: u32 = 3;

/// Watches the thread that made it, for as long as it lives.
pub(super) struct Rescue {
    has_come: Arc<AtomicBool>,
    _watched: Sender<()>,
}

impl Rescue {
    /// Watches the calling thread, which must still be a normal one; `home` is where it may run after
    /// a rescue.
    ///
    /// # Errors
    /// The system's, when it has no thread to spare or does not tell who runs.
    pub(super) fn of_this_thread(home: libc::cpu_set_t) -> io::Result<Self> {
        let rider = Rider::this_thread()?;
        let has_come = Arc::new(AtomicBool::new(false));
        let (watched, left) = channel();
        let told = Arc::clone(&has_come);
        std::thread::Builder::new().name("rescue".into()).spawn(move || {
            if rider.starves(&left) {
                waiting_its_turn(rider.id);
                allow(rider.id, &home);
                told.store(true, Ordering::Release);
            }
        })?;
        Ok(Self { has_come, _watched: watched })
    }

    /// Whether the thread is a batch thread again.
    #[inline]
    pub(super) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Acquire)
    }
}

/// The thread that is watched.
struct Rider {
    id: i32,
    /// Its state, behind its name.
    stat: File,
    /// How long it has run, in nanoseconds.
    schedstat: File,
}

impl Rider {
    fn this_thread() -> io::Result<Self> {
        // SAFETY: takes nothing and touches no memory.
        let id = unsafe { libc::gettid() };
        let file = |name: &str| File::open(format!("/proc/self/task/{id}/{name}"));
        let rider = Self { id, stat: file("stat")?, schedstat: file("schedstat")? };
        rider.look()?;
        Ok(rider)
    }

    /// Waits until the thread starves, and gives true, or is watched no more.
    fn starves(&self, left: &Receiver<()>) -> bool {
        let (mut before_ns, mut hungry) = (0, 0_u32);
        while left.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let Ok((wants_to_run, ran_ns)) = self.look() else { return false };
            let is_hungry = wants_to_run && ran_ns == before_ns;
            hungry = if is_hungry { hungry + 1 } else { hungry.saturating_sub(1) };
            if hungry > HUNGRY_MOST {
                return true;
            }
            before_ns = ran_ns;
        }
        false
    }

    /// Whether the thread runs or wants to, and for how many nanoseconds it has run.
    fn look(&self) -> io::Result<(bool, u64)> {
        let (mut stat, mut schedstat) = ([0; 64], [0; 64]);
        let stat = told(&self.stat, &mut stat)?;
        let schedstat = told(&self.schedstat, &mut schedstat)?;
        let wants_to_run = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'));
        let ran_ns = schedstat.split(' ').next().and_then(|ns| ns.parse().ok());
        Ok((wants_to_run, ran_ns.ok_or(io::ErrorKind::InvalidData)?))
    }
}

/// The beginning of a file of /proc, as it is now.
fn told<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a str> {
    let length = file.read_at(buffer, 0)?;
    std::str::from_utf8(&buffer[..length]).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::super::allowed_cores;
    use super::*;
    use std::time::Instant;

    #[test]
    fn who_sleeps_or_runs_is_let_alone() {
        std::thread::spawn(|| {
            let rescue = Rescue::of_this_thread(allowed_cores().unwrap()).unwrap();
            std::thread::sleep(LOOK * (2 * HUNGRY_MOST));
            assert!(!rescue.has_come(), "a thread that sleeps wants nothing");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_a_thread_has_run_is_told_in_nanoseconds() {
        std::thread::spawn(|| {
            let rider = Rider::this_thread().unwrap();
            let (runs, before_ns) = rider.look().unwrap();
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(20) {}
            let (_, after_ns) = rider.look().unwrap();
            assert!(runs && after_ns > before_ns, "{before_ns} {after_ns}");
        })
        .join()
        .unwrap();
    }
}
