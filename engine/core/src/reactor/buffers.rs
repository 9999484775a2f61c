//! Receive buffers selected by the kernel (a "provided buffer ring").
//!
//! A pool serves all sockets of a worker. An idle connection holds no receive memory, so ten
//! thousand connections are cheap. The pool is small, so that the buffers stay in the CPU's cache.

use io_uring::types::BufRingEntry;
use rustix::param::page_size;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Size of a buffer; it holds the reply to a range query (100 rows).
pub const BUFFER_BYTES: usize = 16 * 1024;

/// Ring shared with the kernel, and the memory of its entries.
pub struct BufferRing {
    entries: NonNull<BufRingEntry>,
    layout: Layout,
    memory: Vec<u8>,
    count: u16,
    tail: u16,
}

impl BufferRing {
    /// A pool of `count` buffers (a power of two), all free.
    ///
    /// # Errors
    /// If the memory cannot be laid out.
    pub fn new(count: u16) -> io::Result<Self> {
        assert!(count.is_power_of_two(), "the kernel wants a power of two");
        let bytes = usize::from(count) * size_of::<BufRingEntry>();
        let layout = Layout::from_size_align(bytes, page_size()).map_err(io::Error::other)?;
        // SAFETY: the layout has a size above 0, as count is at least 1.
        let raw = unsafe { alloc_zeroed(layout) }.cast::<BufRingEntry>();
        let Some(entries) = NonNull::new(raw) else { handle_alloc_error(layout) };
        let memory = vec![0; usize::from(count) * BUFFER_BYTES];
        let mut ring = Self { entries, layout, memory, count, tail: 0 };
        (0..count).for_each(|id| ring.push(id));
        ring.publish();
        Ok(ring)
    }

    /// Address of the shared ring, for its registration.
    pub fn address(&self) -> u64 {
        self.entries.as_ptr() as u64
    }

    /// Number of buffers.
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// Bytes written by the kernel into buffer `id`.
    pub fn bytes(&self, id: u16, length: u32) -> &[u8] {
        let start = usize::from(id) * BUFFER_BYTES;
        &self.memory[start..start + (length as usize).min(BUFFER_BYTES)]
    }

    /// Returns buffer `id` to the kernel.
    pub fn give_back(&mut self, id: u16) {
        self.push(id);
        self.publish();
    }

    fn push(&mut self, id: u16) {
        let start = usize::from(id) * BUFFER_BYTES;
        let address = self.memory[start..].as_mut_ptr() as u64;
        let place = usize::from(self.tail & (self.count - 1));
        // SAFETY: `place` is below `count`, so the entry lies in our allocation; the kernel reads
        // an entry only after the tail that covers it was published.
        let entry = unsafe { &mut *self.entries.as_ptr().add(place) };
        entry.set_addr(address);
        entry.set_len(u32::try_from(BUFFER_BYTES).expect("16 KiB fits"));
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the ring's base is valid; its tail field is only written by us, and read by the
        // kernel with acquire semantics, hence the release store through an atomic.
        unsafe {
            let tail = BufRingEntry::tail(self.entries.as_ptr()).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.entries.as_ptr().cast(), self.layout) }
    }
}
