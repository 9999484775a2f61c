//! One thread over `epoll`: a `recv` and a `send` for each reply.

use crate::load::{Load, Tally};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

const EVENTS_AT_ONCE: usize = 512;

/// Level-triggered: as the engine does it.
pub fn drive(sockets: Vec<OwnedFd>, load: &Load, tally: &Tally) {
    converse(&sockets, load, tally, libc::EPOLLIN);
}

/// Edge-triggered: the kernel does not put a socket back into its list.
pub fn drive_edge(sockets: Vec<OwnedFd>, load: &Load, tally: &Tally) {
    converse(&sockets, load, tally, libc::EPOLLIN | libc::EPOLLET);
}

fn converse(sockets: &[OwnedFd], load: &Load, tally: &Tally, interest: i32) {
    // SAFETY: no memory is handed over.
    let queue = unsafe { libc::epoll_create1(0) };
    let mut number = 0;
    for socket in sockets {
        let socket = socket.as_raw_fd();
        let events = interest.cast_unsigned();
        let mut event = libc::epoll_event { events, u64: u64::from(socket.unsigned_abs()) };
        // SAFETY: the kernel copies `event`, which lives through the call.
        let status = unsafe { libc::epoll_ctl(queue, libc::EPOLL_CTL_ADD, socket, &raw mut event) };
        assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
        ask(socket, load.request(number));
        number += 1;
    }
    let mut ready = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_AT_ONCE];
    let mut buffer = vec![0; 256 * 1024];
    let mut replies = 0;
    while !tally.is_over() {
        let room = i32::try_from(EVENTS_AT_ONCE).expect("a small constant");
        // SAFETY: the kernel writes at most `room` events into an array of that length.
        let count = unsafe { libc::epoll_wait(queue, ready.as_mut_ptr(), room, -1) };
        for event in &ready[..usize::try_from(count).unwrap_or(0)] {
            let socket = RawFd::try_from(event.u64).expect("descriptors are 32 bits");
            // SAFETY: the kernel writes at most `buffer.len()` bytes into it.
            let length = unsafe {
                libc::recv(socket, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
            };
            load.packets(&buffer[..usize::try_from(length).expect("the server answers")]);
            replies += 1;
            tally.set(replies);
            ask(socket, load.request(number));
            number += 1;
        }
    }
}

fn ask(socket: RawFd, request: &[u8]) {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the kernel reads `request`, which lives through the call.
    let sent = unsafe { libc::send(socket, request.as_ptr().cast(), request.len(), flags) };
    assert_eq!(usize::try_from(sent), Ok(request.len()), "a small request fits");
}
