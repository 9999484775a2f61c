//! One connection in a closed loop: the engine thread follows the server's thread from core to
//! core.
//!
//! With one connection either the engine works or the server does, never both. The kernel tends to
//! put them on two cores, where each request and each reply has to wake up an idle core: on two
//! virtual cores 26 µs of client CPU per query and 15,000 queries a second, against 9.7 µs and
//! 41,000 when both run on one core in turn. Which of the two happened was chance, and made runs of
//! one connection incomparable.
//!
//! So the engine thread is pinned to the core where the server's thread last ran, and checks every
//! few milliseconds whether that has changed. As an **idle** thread (`SCHED_IDLE`) it gives no
//! reason to move the server's thread away, and yields to it at once.
//!
//! An idle thread starves when other programs need its core all the time. A [`StarvationGuard`]
//! then makes it a batch thread for the rest of the run, within a fraction of a second. A thread
//! that could not become a normal one again (an ordinary user below `ulimit -e 20`) does not
//! follow, nor does one whose server is on another machine.

use super::server_core::Server;
use super::starvation::StarvationGuard;
use super::{contains, pin_to, set_policy};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::os::fd::BorrowedFd;

/// How often the core of the server's thread is checked.
const CHECK_NS: u64 = 20_000_000;
/// A nice value of 0, as `RLIMIT_NICE` counts.
const NICE_OF_A_NORMAL_THREAD: u64 = 20;
const CAP_SYS_NICE: u32 = 23;

/// A thread that follows the server's thread.
pub struct ServerFollower {
    server: Server,
    /// Where the thread was allowed to run.
    home: CpuSet,
    core: Option<usize>,
    next_check_ns: u64,
    starvation: StarvationGuard,
}

impl ServerFollower {
    /// Lets the calling thread follow the thread of the server behind `socket`; None where it cannot.
    /// `is_alone` says that the run has no other connection.
    #[must_use]
    pub fn begin(socket: BorrowedFd<'_>, is_alone: bool) -> Option<Self> {
        if !can_become_normal_again() {
            return None;
        }
        let server = Server::behind(socket, is_alone)?;
        let home = sched_getaffinity(None).ok()?;
        let starvation = StarvationGuard::of_this_thread(home).ok()?;
        if !set_policy(None, libc::SCHED_IDLE) {
            return None;
        }
        let mut follower = Self { server, home, core: None, next_check_ns: 0, starvation };
        follower.follow();
        Some(follower)
    }

    /// Follows the server's thread if it is time to check; false when that is over, because other
    /// programs need the core.
    #[inline]
    pub fn follow_on(&mut self, now_ns: u64) -> bool {
        if now_ns < self.next_check_ns {
            return true;
        }
        self.next_check_ns = now_ns + CHECK_NS;
        if self.starvation.has_acted() {
            // Once more: this thread may have followed the server while the guard acted.
            let _ = sched_setaffinity(None, &self.home);
            return false;
        }
        self.follow();
        true
    }

    fn follow(&mut self) {
        let core = self.server.core();
        if core != self.core
            && let Some(core) = core.filter(|&core| contains(&self.home, core))
        {
            pin_to(core);
            self.core = Some(core);
        }
    }
}

/// Whether an idle thread of this process may become a normal one again.
fn can_become_normal_again() -> bool {
    let told = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = told.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    bits & (1 << CAP_SYS_NICE) != 0
        || getrlimit(Resource::Nice).current.is_none_or(|nice| nice >= NICE_OF_A_NORMAL_THREAD)
}

#[cfg(test)]
mod tests {
    use super::super::tests::policy;
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// A server's thread on core `core` that answers each byte, and the client's end.
    fn echo(core: usize) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        std::thread::spawn(move || {
            pin_to(core);
            let mut byte = [0];
            while server.read_exact(&mut byte).is_ok() && server.write_all(&byte).is_ok() {}
        });
        client
    }

    fn cores() -> Vec<usize> {
        let home = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|&core| home.is_set(core)).collect()
    }

    #[test]
    fn the_thread_goes_where_the_server_s_thread_is() {
        for core in cores() {
            std::thread::spawn(move || {
                let mut client = echo(core);
                let mut byte = [7];
                client.write_all(&byte).unwrap();
                client.read_exact(&mut byte).unwrap();
                let Some(mut follow) = ServerFollower::begin(client.as_fd(), false) else {
                    return assert!(!can_become_normal_again(), "it may, and does not");
                };
                let found = (policy(), cores(), follow.follow_on(CHECK_NS));
                // Beside other tests the follow may be over by now; that end has its own test.
                if !follow.starvation.has_acted() {
                    assert_eq!(found, (libc::SCHED_IDLE, vec![core], true));
                }
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn a_thread_that_others_keep_waiting_follows_no_more() {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let thread = scope.spawn(|| {
                let client = echo(cores()[0]);
                let Some(mut follow) = ServerFollower::begin(client.as_fd(), true) else { return };
                let (home, began) = (cores(), Instant::now());
                while follow.follow_on(u64::try_from(began.elapsed().as_nanos()).unwrap()) {
                    assert!(began.elapsed() < Duration::from_secs(60), "the guard never acted");
                }
                assert_eq!(policy(), libc::SCHED_BATCH);
                assert!(cores().len() >= home.len());
            });
            let ended = thread.join();
            over.store(true, Ordering::Relaxed);
            ended.unwrap();
        });
    }
}
