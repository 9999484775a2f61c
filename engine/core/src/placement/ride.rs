//! One connection in a closed loop: the engine thread rides on the core of the server's thread.
//!
//! With one connection either the engine works or the server does, never both. Left to itself the
//! kernel puts them on two cores, and each request and each reply wakes a core from idleness: on two
//! virtual cores 26 µs of client CPU a query and 15,000 queries a second, against 9.7 µs and 41,000 when
//! both take turns on one. Which of the two a run gets was chance, and made runs of one connection
//! incomparable.
//!
//! So the engine thread goes where the server's thread last ran, and looks again every few
//! milliseconds. As an **idle** thread it does not count as a reason to put the server's thread
//! elsewhere, and gives way to it at once.
//!
//! An idle thread starves where others want its core all the time. Then a [`Rescue`] makes it a batch
//! thread for the rest of the run, after a fraction of a second; a thread that may not come back from
//! idleness (an ordinary user below `ulimit -e 20`) does not ride at all. Nor does one whose server is
//! on another machine.

use super::rescue::Rescue;
use super::whereabouts::Server;
use super::{THIS_THREAD, allow, allowed_cores, stay_on};
use crate::system::{checked, limit};
use std::fs;
use std::os::fd::BorrowedFd;

/// Between two looks at where the server's thread runs.
const LOOK_NS: u64 = 20_000_000;
/// A nice value of 0, as `RLIMIT_NICE` counts.
const NICE_OF_A_NORMAL_THREAD: libc::rlim_t = 20;
const CAP_SYS_NICE: u32 = 23;

/// A thread that rides.
pub struct Ride {
    server: Server,
    /// Where the thread was allowed to run.
    home: libc::cpu_set_t,
    core: Option<usize>,
    look_ns: u64,
    rescue: Rescue,
}

impl Ride {
    /// Lets the calling thread ride on the server behind `socket`; None where it cannot. `is_alone` says
    /// that no other connection works the server's threads.
    #[must_use]
    pub fn begin(socket: BorrowedFd<'_>, is_alone: bool) -> Option<Self> {
        if !may_come_back() {
            return None;
        }
        let server = Server::behind(socket, is_alone)?;
        let home = allowed_cores().ok()?;
        let rescue = Rescue::of_this_thread(home).ok()?;
        let (idle, nothing) = (libc::SCHED_IDLE, libc::sched_param { sched_priority: 0 });
        // SAFETY: `nothing` lives through the call.
        checked(unsafe { libc::sched_setscheduler(THIS_THREAD, idle, &raw const nothing) }).ok()?;
        let mut ride = Self { server, home, core: None, look_ns: 0, rescue };
        ride.follow();
        Some(ride)
    }

    /// Follows the server's thread if it is time; false when the ride is over, because others want
    /// the core too.
    #[inline]
    pub fn goes_on(&mut self, now_ns: u64) -> bool {
        if now_ns < self.look_ns {
            return true;
        }
        self.look_ns = now_ns + LOOK_NS;
        if self.rescue.has_come() {
            // Once more: this thread may have followed the server while it was being rescued.
            allow(THIS_THREAD, &self.home);
            return false;
        }
        self.follow();
        true
    }

    fn follow(&mut self) {
        let core = self.server.core();
        // SAFETY: reads the set only; CPU_ISSET checks the number against its length.
        let is_allowed = |&core: &usize| unsafe { libc::CPU_ISSET(core, &self.home) };
        if core != self.core
            && let Some(core) = core.filter(is_allowed)
        {
            stay_on(core);
            self.core = Some(core);
        }
    }
}

/// Whether an idle thread of this process may become a normal one again.
fn may_come_back() -> bool {
    let told = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = told.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    bits & (1 << CAP_SYS_NICE) != 0
        || limit(libc::RLIMIT_NICE).is_ok_and(|nice| nice.rlim_cur >= NICE_OF_A_NORMAL_THREAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    fn policy() -> i32 {
        // SAFETY: asks about the calling thread only.
        unsafe { libc::sched_getscheduler(0) }
    }

    /// A server's thread on core `core` that answers each byte, and the client's end.
    fn echo(core: usize) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        std::thread::spawn(move || {
            stay_on(core);
            let mut byte = [0];
            while server.read_exact(&mut byte).is_ok() && server.write_all(&byte).is_ok() {}
        });
        client
    }

    fn cores() -> Vec<usize> {
        let home = allowed_cores().unwrap();
        // SAFETY: reads the set only.
        (0..1024).filter(|&core| unsafe { libc::CPU_ISSET(core, &home) }).collect()
    }

    #[test]
    fn the_thread_goes_where_the_server_s_thread_is() {
        for core in cores() {
            std::thread::spawn(move || {
                let mut client = echo(core);
                let mut byte = [7];
                client.write_all(&byte).unwrap();
                client.read_exact(&mut byte).unwrap();
                let Some(mut ride) = Ride::begin(client.as_fd(), false) else {
                    return assert!(!may_come_back(), "it may, and does not");
                };
                let found = (policy(), cores(), ride.goes_on(LOOK_NS));
                // Beside other tests the ride may be over by now; that end has its own test.
                if !ride.rescue.has_come() {
                    assert_eq!(found, (libc::SCHED_IDLE, vec![core], true));
                }
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn a_thread_that_others_keep_waiting_rides_no_more() {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let rider = scope.spawn(|| {
                let client = echo(cores()[0]);
                let Some(mut ride) = Ride::begin(client.as_fd(), true) else { return };
                let (home, began) = (cores(), Instant::now());
                while ride.goes_on(u64::try_from(began.elapsed().as_nanos()).unwrap()) {
                    assert!(began.elapsed() < Duration::from_secs(60), "nobody came");
                }
                assert_eq!(policy(), libc::SCHED_BATCH);
                assert!(cores().len() >= home.len());
            });
            let ended = rider.join();
            over.store(true, Ordering::Relaxed);
            ended.unwrap();
        });
    }
}
