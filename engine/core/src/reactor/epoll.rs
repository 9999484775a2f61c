//! The reactor on `epoll`, which every Linux has.
//!
//! Level-triggered on purpose: one `recv` for each reply, and no second one that only finds nothing
//! left. Requests are sent at once; what does not fit into a socket's buffer is kept and sent when
//! the kernel reports room.

use super::{Arrival, ArrivalKind, Reactor};
use crate::system::{checked, receive_now, send_now};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

const RECEIVE_BYTES: usize = 256 * 1024;
const EVENTS_AT_ONCE: usize = 512;
/// Stands for the timer where slots stand for sockets.
const TICK: u64 = u64::MAX;

/// The `epoll` reactor.
pub struct Epoll {
    queue: OwnedFd,
    timer: OwnedFd,
    sockets: Vec<OwnedFd>,
    unsent: Vec<Vec<u8>>,
    ready: Vec<libc::epoll_event>,
    next: usize,
    failed: Vec<(u32, i32)>,
    received: Vec<u8>,
}

impl Reactor for Epoll {
    const NAME: &'static str = "epoll";

    fn open(sockets: Vec<OwnedFd>, max_wait: Duration) -> io::Result<Self> {
        // SAFETY: no memory is handed over; the number returned is checked and owned by us.
        let queue = unsafe {
            let number = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            OwnedFd::from_raw_fd(checked(number)?)
        };
        let unsent = vec![Vec::new(); sockets.len()];
        let reactor = Self {
            queue,
            timer: ticking(max_wait)?,
            sockets,
            unsent,
            ready: Vec::with_capacity(EVENTS_AT_ONCE),
            next: 0,
            failed: Vec::new(),
            received: vec![0; RECEIVE_BYTES],
        };
        for slot in 0..reactor.sockets.len() {
            reactor.watch(slot, libc::EPOLL_CTL_ADD, libc::EPOLLIN)?;
        }
        control(&reactor.queue, &reactor.timer, TICK, libc::EPOLL_CTL_ADD, libc::EPOLLIN)?;
        Ok(reactor)
    }

    fn send(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()> {
        let index = slot as usize;
        if !self.unsent[index].is_empty() {
            return Err(io::Error::other("a reply came before its request had left"));
        }
        match send_now(self.sockets[index].as_raw_fd(), bytes) {
            Ok(sent) if sent == bytes.len() => Ok(()),
            Ok(sent) => {
                self.unsent[index].extend_from_slice(&bytes[sent..]);
                self.watch(index, libc::EPOLL_CTL_MOD, libc::EPOLLIN | libc::EPOLLOUT)
            }
            Err(number) => {
                self.failed.push((slot, number));
                Ok(())
            }
        }
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.next = 0;
        self.ready.clear();
        let mut milliseconds = if self.failed.is_empty() { -1 } else { 0 };
        if let Some(at_most) = at_most {
            if milliseconds != 0 {
                self.wait_until_readable(at_most);
            }
            milliseconds = 0;
        }
        let room = i32::try_from(EVENTS_AT_ONCE).expect("a small constant");
        // SAFETY: `ready` has room for EVENTS_AT_ONCE events, and exactly as many as the kernel
        // says it wrote are taken as initialised.
        unsafe {
            let queue = self.queue.as_raw_fd();
            match checked(libc::epoll_wait(queue, self.ready.as_mut_ptr(), room, milliseconds)) {
                Ok(count) => self.ready.set_len(count.unsigned_abs() as usize),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn replace(&mut self, slot: u32, socket: OwnedFd) -> io::Result<()> {
        let index = slot as usize;
        // Forgotten by the queue already if the old socket was found dead.
        let _ = self.watch(index, libc::EPOLL_CTL_DEL, 0);
        self.unsent[index].clear();
        self.failed.retain(|&(failed, _)| failed != slot);
        self.sockets[index] = socket;
        self.watch(index, libc::EPOLL_CTL_ADD, libc::EPOLLIN)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        if let Some((slot, number)) = self.failed.pop() {
            return Some(Arrival { slot, what: ArrivalKind::Failed(number), buffer: 0, length: 0 });
        }
        while let Some(event) = self.ready.get(self.next).copied() {
            self.next += 1;
            if event.u64 == TICK {
                self.take_tick();
                continue;
            }
            let slot = u32::try_from(event.u64).expect("slots are 32 bits");
            if event.events & flag(libc::EPOLLOUT) != 0 {
                self.send_rest(slot);
            }
            if event.events & !flag(libc::EPOLLOUT) != 0
                && let Some(arrival) = self.receive(slot)
            {
                return Some(arrival);
            }
        }
        None
    }

    fn bytes(&self, arrival: &Arrival) -> &[u8] {
        &self.received[..arrival.length as usize]
    }

    fn give_back(&mut self, arrival: Arrival) {
        if arrival.what != ArrivalKind::Bytes {
            // A dead socket stays readable for ever: stop watching it.
            let _ = self.watch(arrival.slot as usize, libc::EPOLL_CTL_DEL, 0);
        }
    }
}

impl Epoll {
    fn watch(&self, slot: usize, operation: i32, interest: i32) -> io::Result<()> {
        control(&self.queue, &self.sockets[slot], slot as u64, operation, interest)
    }

    /// A queue can be waited for like any file: that is as precise as the clock and works on kernels
    /// without `epoll_pwait2`, which are those that have no `io_uring` either.
    fn wait_until_readable(&self, at_most: Duration) {
        let mut queue =
            libc::pollfd { fd: self.queue.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = timespec(at_most);
        // SAFETY: both live through the call, and the list has the one entry that is said. However it
        // ends, what is readable is asked for next.
        unsafe { libc::ppoll(&raw mut queue, 1, &raw const time, std::ptr::null()) };
    }

    fn take_tick(&self) {
        let mut expirations = [0_u8; 8];
        // SAFETY: the kernel writes at most 8 bytes into an array of 8.
        unsafe { libc::read(self.timer.as_raw_fd(), expirations.as_mut_ptr().cast(), 8) };
    }

    fn receive(&mut self, slot: u32) -> Option<Arrival> {
        let socket = self.sockets[slot as usize].as_raw_fd();
        let arrival = |what, length| Some(Arrival { slot, what, buffer: 0, length });
        match receive_now(socket, &mut self.received) {
            Ok(0) => arrival(ArrivalKind::Closed, 0),
            Ok(count) => {
                arrival(ArrivalKind::Bytes, u32::try_from(count).expect("at most 256 KiB"))
            }
            Err(libc::EAGAIN | libc::EINTR) => None,
            Err(number) => arrival(ArrivalKind::Failed(number), 0),
        }
    }

    fn send_rest(&mut self, slot: u32) {
        let index = slot as usize;
        match send_now(self.sockets[index].as_raw_fd(), &self.unsent[index]) {
            Ok(sent) => {
                self.unsent[index].drain(..sent);
                if self.unsent[index].is_empty() {
                    let _ = self.watch(index, libc::EPOLL_CTL_MOD, libc::EPOLLIN);
                }
            }
            Err(number) => self.failed.push((slot, number)),
        }
    }
}

fn control(
    queue: &OwnedFd,
    file: &OwnedFd,
    name: u64,
    operation: i32,
    interest: i32,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events: flag(interest), u64: name };
    let (queue, file) = (queue.as_raw_fd(), file.as_raw_fd());
    // SAFETY: `event` lives through the call; the kernel copies it.
    checked(unsafe { libc::epoll_ctl(queue, operation, file, &raw mut event) }).map(|_| ())
}

/// A timer that becomes readable every `period`.
fn ticking(period: Duration) -> io::Result<OwnedFd> {
    let time = timespec(period);
    let setting = libc::itimerspec { it_interval: time, it_value: time };
    // SAFETY: no memory is handed over by the first call, and the number it returns is checked and
    // owned by us; `setting` lives through the second.
    unsafe {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        let number = checked(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?;
        let timer = OwnedFd::from_raw_fd(number);
        checked(libc::timerfd_settime(number, 0, &raw const setting, std::ptr::null_mut()))?;
        Ok(timer)
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

const fn flag(bits: i32) -> u32 {
    bits.cast_unsigned()
}
