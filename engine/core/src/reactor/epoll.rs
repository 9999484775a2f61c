//! Reactor on `epoll`, available on every Linux.
//!
//! It is level-triggered on purpose: a single `recv` per reply, without a second call to find the
//! socket empty. Requests are sent at once; bytes beyond a socket's buffer are kept and sent when
//! the kernel reports room.

use super::{Arrival, ArrivalKind, OpenReactor, Reactor};
use crate::system::{receive_now, send_now};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

const RECEIVE_BYTES: usize = 256 * 1024;
const EVENTS_AT_ONCE: usize = 512;
/// Event name of the timer; other names are slots.
const TICK: u64 = u64::MAX;

/// The `epoll` reactor.
pub struct Epoll {
    queue: OwnedFd,
    timer: OwnedFd,
    sockets: Vec<OwnedFd>,
    unsent: Vec<Vec<u8>>,
    ready: Vec<Event>,
    next: usize,
    failed: Vec<(u32, i32)>,
    received: Vec<u8>,
}

impl OpenReactor for Epoll {
    fn open(sockets: Vec<OwnedFd>, max_wait: Duration) -> io::Result<Self> {
        let queue = epoll::create(CreateFlags::CLOEXEC)?;
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
            reactor.watch(slot)?;
        }
        epoll::add(&reactor.queue, &reactor.timer, EventData::new_u64(TICK), EventFlags::IN)?;
        Ok(reactor)
    }
}

impl Reactor for Epoll {
    const NAME: &'static str = "epoll";

    fn send(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()> {
        let index = slot as usize;
        if !self.unsent[index].is_empty() {
            return Err(io::Error::other("a reply came before its request had left"));
        }
        match send_now(&self.sockets[index], bytes) {
            Ok(sent) if sent == bytes.len() => Ok(()),
            Ok(sent) => {
                self.unsent[index].extend_from_slice(&bytes[sent..]);
                self.change(index, EventFlags::IN | EventFlags::OUT)
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
        let mut waits = self.failed.is_empty();
        if let Some(at_most) = at_most {
            if waits {
                self.wait_until_readable(at_most);
            }
            waits = false;
        }
        let at_once = Timespec::default();
        let limit = if waits { None } else { Some(&at_once) };
        match epoll::wait(&self.queue, spare_capacity(&mut self.ready), limit) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn replace(&mut self, slot: u32, socket: OwnedFd) -> io::Result<()> {
        let index = slot as usize;
        // The queue has forgotten the old socket if it was found dead.
        let _ = epoll::delete(&self.queue, &self.sockets[index]);
        self.unsent[index].clear();
        self.failed.retain(|&(failed, _)| failed != slot);
        self.sockets[index] = socket;
        self.watch(index)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        if let Some((slot, number)) = self.failed.pop() {
            return Some(Arrival { slot, kind: ArrivalKind::Failed(number), buffer: 0, length: 0 });
        }
        while let Some(event) = self.ready.get(self.next).copied() {
            self.next += 1;
            let name = event.data.u64();
            if name == TICK {
                // The number of expirations is irrelevant.
                let _ = read(&self.timer, &mut [0; 8]);
                continue;
            }
            let slot = u32::try_from(name).expect("slots are 32 bits");
            let flags = event.flags;
            if flags.contains(EventFlags::OUT) {
                self.send_rest(slot);
            }
            if flags != EventFlags::OUT
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
        if arrival.kind != ArrivalKind::Bytes {
            // A dead socket stays readable for ever: stop watching it.
            let _ = epoll::delete(&self.queue, &self.sockets[arrival.slot as usize]);
        }
    }
}

impl Epoll {
    fn watch(&self, slot: usize) -> io::Result<()> {
        let name = EventData::new_u64(slot as u64);
        Ok(epoll::add(&self.queue, &self.sockets[slot], name, EventFlags::IN)?)
    }

    fn change(&self, slot: usize, interest: EventFlags) -> io::Result<()> {
        let name = EventData::new_u64(slot as u64);
        Ok(epoll::modify(&self.queue, &self.sockets[slot], name, interest)?)
    }

    /// Waits on the queue itself, which is pollable like any file. This is as precise as the clock
    /// and works on kernels without `epoll_pwait2`, which also lack `io_uring`.
    fn wait_until_readable(&self, at_most: Duration) {
        let mut queue = [PollFd::new(&self.queue, PollFlags::IN)];
        // Whatever the outcome, readable sockets are asked for next.
        let _ = poll(&mut queue, Some(&timespec(at_most)));
    }

    fn receive(&mut self, slot: u32) -> Option<Arrival> {
        let socket = &self.sockets[slot as usize];
        let arrival = |kind, length| Some(Arrival { slot, kind, buffer: 0, length });
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
        match send_now(&self.sockets[index], &self.unsent[index]) {
            Ok(sent) => {
                self.unsent[index].drain(..sent);
                if self.unsent[index].is_empty() {
                    let _ = self.change(index, EventFlags::IN);
                }
            }
            Err(number) => self.failed.push((slot, number)),
        }
    }
}

/// A timer that becomes readable every `period`.
fn ticking(period: Duration) -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let time = timespec(period);
    let setting = Itimerspec { it_interval: time, it_value: time };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &setting)?;
    Ok(timer)
}

fn timespec(time: Duration) -> Timespec {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() }
}
