//! Reactor on `io_uring`: a single system call per round for any number of sockets.
//!
//! Each socket has a receive request that stays armed (multishot) and takes a buffer from a shared
//! pool only for received bytes. Requests are copied into their slot's memory and sent by the same
//! call that waits for replies. Completions run only inside this call (`DEFER_TASKRUN`), so they do
//! not interrupt the worker in between.
//!
//! A small request reports failures only (`SKIP_SUCCESS`): its success would end the wait at once
//! and cost a second system call. Its memory is an arena that is never moved or freed while the
//! ring lives, so even a server that answers unread requests cannot make the kernel read anything
//! but requests. Large requests report back before their memory is reused.
//!
//! A replaced socket may still have completions on their way. Each completion carries the
//! generation of its slot; those of an older generation are dropped.

use super::buffers::BufferRing;
use super::ring::{BUFFER_GROUP, explained, open_ring};
use super::{Arrival, ArrivalKind, OpenReactor, Reactor};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::net::{Shutdown, shutdown};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

const SLOT_MASK: u64 = u32::MAX as u64;
const RECEIVE: u64 = 1 << 32;
const SEND_LARGE: u64 = 1 << 33;
const TICK: u64 = 1 << 34;
const GENERATION_SHIFT: u32 = 40;
const GENERATION_MASK: u32 = (1 << 24) - 1;
const SMALL_BYTES: usize = 512;

/// Large request; its memory must stay until the kernel reports it sent.
#[derive(Default)]
struct LargeRequest {
    bytes: Vec<u8>,
    on_its_way: bool,
}

/// The `io_uring` reactor. The ring is the first field: it must be closed before its memory is
/// freed.
pub struct Uring {
    ring: IoUring,
    sockets: Vec<OwnedFd>,
    small: Vec<u8>,
    large: Vec<LargeRequest>,
    buffers: BufferRing,
    unarmed: Vec<u32>,
    /// Replacements of each slot's socket, modulo the 24 bits available in a completion.
    generations: Vec<u32>,
    /// Large requests of replaced sockets, possibly still read by the kernel.
    retired: Vec<(u64, Vec<u8>)>,
    max_wait: Box<types::Timespec>,
    ticking: bool,
}

impl OpenReactor for Uring {
    fn open(sockets: Vec<OwnedFd>, max_wait: Duration) -> io::Result<Self> {
        let count = sockets.len();
        let (ring, buffers) = open_ring(count).map_err(|error| explained(&error))?;
        if count > 0 {
            let numbers: Vec<RawFd> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
            ring.submitter().register_files(&numbers)?;
        }
        let small = vec![0; count * SMALL_BYTES];
        let large = (0..count).map(|_| LargeRequest::default()).collect();
        let unarmed = (0..u32::try_from(count).map_err(io::Error::other)?).collect();
        let max_wait = Box::new(types::Timespec::from(max_wait));
        Ok(Self {
            ring,
            sockets,
            small,
            large,
            buffers,
            unarmed,
            generations: vec![0; count],
            retired: Vec::new(),
            max_wait,
            ticking: false,
        })
    }
}

impl Reactor for Uring {
    const NAME: &'static str = "io_uring";

    #[inline]
    fn send(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > SMALL_BYTES {
            return self.send_large(slot, bytes);
        }
        let name = self.name(slot, 0);
        let start = slot as usize * SMALL_BYTES;
        let place = &mut self.small[start..start + bytes.len()];
        place.copy_from_slice(bytes);
        let entry = send_entry(slot, place).flags(squeue::Flags::SKIP_SUCCESS).user_data(name);
        self.push(&entry)
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        while let Some(slot) = self.unarmed.pop() {
            let entry = opcode::RecvMulti::new(types::Fixed(slot), BUFFER_GROUP)
                .build()
                .user_data(self.name(slot, RECEIVE));
            self.push(&entry)?;
        }
        if !self.ticking {
            self.ticking = true;
            let max_wait: *const types::Timespec = &raw const *self.max_wait;
            self.push(&opcode::Timeout::new(max_wait).build().user_data(TICK))?;
        }
        let Some(at_most) = at_most else { return passing(self.ring.submit_and_wait(1)) };
        let time = types::Timespec::from(at_most);
        let limits = types::SubmitArgs::new().timespec(&time);
        passing(self.ring.submitter().submit_with_args(1, &limits))
    }

    fn replace(&mut self, slot: u32, socket: OwnedFd) -> io::Result<()> {
        let index = slot as usize;
        // Queued requests must go to their own socket.
        passing(self.ring.submit())?;
        self.ring.submitter().register_files_update(slot, &[socket.as_raw_fd()])?;
        let old = std::mem::replace(&mut self.sockets[index], socket);
        shut_down(&old);
        let request = std::mem::take(&mut self.large[index]);
        if request.on_its_way {
            self.retired.push((self.name(slot, SEND_LARGE), request.bytes));
        }
        self.generations[index] = (self.generations[index] + 1) & GENERATION_MASK;
        if !self.unarmed.contains(&slot) {
            self.unarmed.push(slot);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        passing(self.ring.submit())
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        loop {
            let completion = self.ring.completion().next()?;
            if let Some(arrival) = self.translate(&completion) {
                return Some(arrival);
            }
        }
    }

    fn bytes(&self, arrival: &Arrival) -> &[u8] {
        self.buffers.bytes(arrival.buffer, arrival.length)
    }

    fn give_back(&mut self, arrival: Arrival) {
        if arrival.kind == ArrivalKind::Bytes {
            self.buffers.give_back(arrival.buffer);
        }
    }
}

impl Uring {
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: a send points at its slot of the arena or at a large request that is kept until
        // its completion; a receive writes only into the registered buffers; the timer's timespec
        // is boxed and outlives the ring.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    fn translate(&mut self, completion: &cqueue::Entry) -> Option<Arrival> {
        if completion.user_data() & TICK != 0 {
            self.ticking = false;
            return None;
        }
        let slot = u32::try_from(completion.user_data() & SLOT_MASK).expect("masked to 32 bits");
        if completion.user_data() >> GENERATION_SHIFT != self.generation(slot) {
            self.drop_stale(completion);
            return None;
        }
        if completion.user_data() & RECEIVE == 0 {
            let large = completion.user_data() & SEND_LARGE != 0;
            return self.request_left(slot, large, completion.result());
        }
        let (result, flags) = (completion.result(), completion.flags());
        // A dead socket would complete each new receive at once: report it once and do not re-arm.
        if !cqueue::more(flags) && (result > 0 || result == -libc::ENOBUFS) {
            self.unarmed.push(slot);
        }
        let arrival = |kind, buffer, length| Some(Arrival { slot, kind, buffer, length });
        match (result, cqueue::buffer_select(flags)) {
            (length @ 1.., Some(buffer)) => {
                arrival(ArrivalKind::Bytes, buffer, length.unsigned_abs())
            }
            (0, _) => arrival(ArrivalKind::Closed, 0, 0),
            // The pool was empty for a moment; the next wait arms the receive again.
            (error, _) if error == -libc::ENOBUFS => None,
            (error, _) => arrival(ArrivalKind::Failed(error.abs()), 0, 0),
        }
    }

    fn generation(&self, slot: u32) -> u64 {
        self.generations[slot as usize].into()
    }

    /// Name of a slot's completions, with the generation of its socket.
    fn name(&self, slot: u32, kind: u64) -> u64 {
        u64::from(slot) | kind | self.generation(slot) << GENERATION_SHIFT
    }

    /// Drops a completion of a replaced socket.
    #[cold]
    fn drop_stale(&mut self, completion: &cqueue::Entry) {
        self.retired.retain(|(name, _)| *name != completion.user_data());
        if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
            self.buffers.give_back(buffer);
        }
    }

    fn send_large(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()> {
        let name = self.name(slot, SEND_LARGE);
        let request = &mut self.large[slot as usize];
        if request.on_its_way {
            return Err(io::Error::other("a reply came before its request had left"));
        }
        request.bytes.clear();
        request.bytes.extend_from_slice(bytes);
        request.on_its_way = true;
        let entry = send_entry(slot, &request.bytes).user_data(name);
        self.push(&entry)
    }

    fn request_left(&mut self, slot: u32, large: bool, result: i32) -> Option<Arrival> {
        let request = &mut self.large[slot as usize];
        let whole = large && usize::try_from(result).is_ok_and(|n| n == request.bytes.len());
        request.on_its_way &= !large;
        let number = if result < 0 { result.abs() } else { libc::EPIPE };
        (!whole).then_some(Arrival {
            slot,
            kind: ArrivalKind::Failed(number),
            buffer: 0,
            length: 0,
        })
    }
}

fn send_entry(slot: u32, bytes: &[u8]) -> squeue::Entry {
    let length = u32::try_from(bytes.len()).expect("requests are far below 4 GiB");
    opcode::Send::new(types::Fixed(slot), bytes.as_ptr(), length)
        .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
        .build()
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Armed requests would keep the sockets open: shut them down, so that the server sees the
        // connections end now.
        self.sockets.iter().for_each(shut_down);
    }
}

fn shut_down(socket: &OwnedFd) {
    // A dead socket needs no shutdown.
    let _ = shutdown(socket, Shutdown::Both);
}

/// Passes over interruptions and timeouts of a wait.
fn passing(result: io::Result<usize>) -> io::Result<()> {
    match result.map_err(|error| (error.raw_os_error(), error)) {
        Ok(_) | Err((Some(libc::EINTR | libc::EBUSY | libc::EAGAIN | libc::ETIME), _)) => Ok(()),
        Err((_, error)) => Err(error),
    }
}
