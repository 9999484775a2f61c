//! A thread over `io_uring`, in several flavours of the kernel interface.

use crate::load::{Load, Tally};
use io_uring::types::{self, BufRingEntry};
use io_uring::{IoUring, cqueue, opcode, squeue};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU16, Ordering};

const ENTRIES: u32 = 1024;
const BUFFER_BYTES: usize = 16 * 1024;
const RECEIVE: u64 = 1 << 32;
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_NO_IOWAIT: u32 = 1 << 7;

/// Options of the ring.
#[derive(Clone, Copy)]
pub struct Flavour {
    /// Completions run only in the waiting call (`DEFER_TASKRUN`); else at any system call.
    pub deferred: bool,
    /// A receive stays armed; else each reply has its own.
    pub multishot: bool,
    /// Sends go on until all is sent (`MSG_WAITALL`).
    pub wait_all: bool,
    /// A sleeping thread is not counted as waiting for a disk, which changes the depth of a core's
    /// sleep.
    pub no_iowait: bool,
    /// Time to gather completions, µs; 0 for none.
    pub min_wait_us: u32,
    /// Number of completions to wait for, within `min_wait_us`.
    pub wanted: usize,
}

impl Flavour {
    /// Gathers completions for `min_wait_us` µs.
    pub const fn patient(min_wait_us: u32) -> Self {
        Self { min_wait_us, wanted: 64, ..crate::AS_THE_ENGINE }
    }
}

/// The kernel's `io_uring_getevents_arg`.
#[repr(C)]
struct WaitArguments {
    signals: u64,
    signals_bytes: u32,
    min_wait_us: u32,
    timeout: u64,
}

/// Memory for the kernel's choice of receive buffers.
struct Pool {
    entries: Vec<u128>,
    memory: Vec<u8>,
    tail: u16,
}

impl Pool {
    fn new(count: usize) -> Self {
        // Whole pages, used from the first aligned one; an entry has 16 bytes.
        let entries = vec![0; count + 2 * 256];
        let mut pool = Self { entries, memory: vec![0; count * BUFFER_BYTES], tail: 0 };
        (0..count).for_each(|buffer| pool.give_back(buffer));
        pool
    }

    fn count(&self) -> usize {
        self.memory.len() / BUFFER_BYTES
    }

    fn ring(&self) -> *mut BufRingEntry {
        let start = self.entries.as_ptr() as usize;
        start.next_multiple_of(4096) as *mut BufRingEntry
    }

    fn give_back(&mut self, buffer: usize) {
        let address = self.memory[buffer * BUFFER_BYTES..].as_mut_ptr() as u64;
        let place = usize::from(self.tail) & (self.count() - 1);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the place lies within the ring, and the kernel looks at it only after the new tail.
        unsafe {
            let entry = &mut *self.ring().add(place);
            entry.set_addr(address);
            entry.set_len(u32::try_from(BUFFER_BYTES).expect("16 KiB fits"));
            entry.set_bid(u16::try_from(buffer).expect("at most 256"));
            let tail = BufRingEntry::tail(self.ring()).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

/// Drives the load until the tally is over.
pub fn drive(sockets: Vec<OwnedFd>, load: &Load, tally: &Tally, flavour: Flavour) {
    let mut pool = Pool::new(sockets.len().next_power_of_two().clamp(8, 256));
    let mut ring = open(&sockets, &pool, flavour);
    let mut number = 0;
    for slot in 0..u32::try_from(sockets.len()).expect("few sockets") {
        push(&mut ring, &receive(slot, flavour));
        push(&mut ring, &request(slot, load.request(number), flavour));
        number += 1;
    }
    let mut replies = 0;
    while !tally.is_over() {
        wait(&mut ring, flavour);
        loop {
            let Some(completion) = ring.completion().next() else { break };
            let slot = completion.user_data() as u32;
            let more = cqueue::more(completion.flags());
            if completion.result() == -libc::ENOBUFS {
                push(&mut ring, &receive(slot, flavour));
                continue;
            }
            let length = usize::try_from(completion.result()).expect("the server answers");
            let buffer = cqueue::buffer_select(completion.flags()).expect("a buffer");
            let start = usize::from(buffer) * BUFFER_BYTES;
            load.packets(&pool.memory[start..start + length]);
            pool.give_back(usize::from(buffer));
            replies += 1;
            tally.set(replies);
            if !more {
                push(&mut ring, &receive(slot, flavour));
            }
            push(&mut ring, &request(slot, load.request(number), flavour));
            number += 1;
        }
    }
}

fn open(sockets: &[OwnedFd], pool: &Pool, flavour: Flavour) -> IoUring {
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_submit_all().setup_clamp().setup_cqsize(1 << 16);
    if flavour.deferred {
        builder.setup_defer_taskrun();
    } else {
        builder.setup_coop_taskrun();
    }
    let ring = builder.build(ENTRIES).expect("io_uring is allowed");
    let numbers: Vec<RawFd> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&numbers).expect("files can be registered");
    // SAFETY: the pool outlives the ring's use: both are locals of `drive`.
    unsafe {
        let count = u16::try_from(pool.count()).expect("at most 256");
        ring.submitter()
            .register_buf_ring_with_flags(pool.ring() as u64, count, 0, 0)
            .expect("buffers can be registered");
    }
    ring
}

fn receive(slot: u32, flavour: Flavour) -> squeue::Entry {
    let user_data = u64::from(slot) | RECEIVE;
    if flavour.multishot {
        return opcode::RecvMulti::new(types::Fixed(slot), 0).build().user_data(user_data);
    }
    let length = u32::try_from(BUFFER_BYTES).expect("16 KiB fits");
    opcode::Recv::new(types::Fixed(slot), std::ptr::null_mut(), length)
        .buf_group(0)
        // A reply cannot be there yet: wait at once, without a look.
        .ioprio(1)
        .build()
        .flags(squeue::Flags::BUFFER_SELECT)
        .user_data(user_data)
}

fn request(slot: u32, bytes: &[u8], flavour: Flavour) -> squeue::Entry {
    let wait_all = if flavour.wait_all { libc::MSG_WAITALL } else { 0 };
    let length = u32::try_from(bytes.len()).expect("a small request");
    opcode::Send::new(types::Fixed(slot), bytes.as_ptr(), length)
        .flags(libc::MSG_NOSIGNAL | wait_all)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(u64::from(slot))
}

fn push(ring: &mut IoUring, entry: &squeue::Entry) {
    // SAFETY: requests lie in the load, which outlives the ring; receives write into the pool only.
    while unsafe { ring.submission().push(entry) }.is_err() {
        ring.submit().expect("the kernel takes requests");
    }
}

fn wait(ring: &mut IoUring, flavour: Flavour) {
    let to_submit = {
        let mut submission = ring.submission();
        submission.sync();
        u32::try_from(submission.len()).expect("at most the ring's length")
    };
    let iowait = if flavour.no_iowait { ENTER_NO_IOWAIT } else { 0 };
    let wanted = u32::try_from(flavour.wanted).expect("a small constant");
    let arguments = WaitArguments {
        signals: 0,
        signals_bytes: 0,
        min_wait_us: flavour.min_wait_us,
        timeout: 0,
    };
    // SAFETY: the kernel reads the arguments, which live through the call.
    let result = unsafe {
        if flavour.min_wait_us > 0 {
            let flags = ENTER_GETEVENTS | ENTER_EXT_ARG | iowait;
            ring.submitter().enter(to_submit, wanted, flags, Some(&arguments))
        } else {
            ring.submitter().enter::<WaitArguments>(
                to_submit,
                wanted,
                ENTER_GETEVENTS | iowait,
                None,
            )
        }
    };
    match result.map_err(|error| (error.raw_os_error(), error)) {
        Ok(_) | Err((Some(libc::EINTR | libc::EBUSY | libc::EAGAIN | libc::ETIME), _)) => {}
        Err((_, error)) => panic!("the wait failed: {error}"),
    }
}
