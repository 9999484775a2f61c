//! Buffers for a server's bytes, each with its own limit and all of a process with a common limit.
//!
//! A server gone wrong goes wrong on every connection at once, and thousands of buffers, each
//! within its limit, would still fill the machine's memory.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Uncounted first bytes of a buffer: hardly any buffer needs more.
const UNCOUNTED: usize = 64 * 1024;
/// Most counted bytes in all buffers of this process together.
const TOGETHER_MAX: usize = 256 << 20;

/// Counted bytes in all buffers now.
static TOGETHER: AtomicUsize = AtomicUsize::new(0);

/// A buffer for a server's bytes until they are read, or until the rest of their message arrives.
#[derive(Debug, Default)]
pub struct Kept {
    bytes: Vec<u8>,
    counted: usize,
}

/// All buffers together hold as much as they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unread answers of all connections take more than {} MiB", TOGETHER_MAX >> 20)]
pub struct Full;

impl Kept {
    /// The buffer with room for `more` bytes; at most so many may be appended.
    ///
    /// # Errors
    /// [`Full`], and the buffer is as it was.
    #[inline]
    pub fn room(&mut self, more: usize) -> Result<&mut Vec<u8>, Full> {
        let length = self.bytes.len() + more;
        if length > self.bytes.capacity() {
            self.grow(length)?;
        }
        Ok(&mut self.bytes)
    }

    /// Appends these bytes.
    ///
    /// # Errors
    /// As [`Self::room`].
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.room(bytes.len())?.extend_from_slice(bytes);
        Ok(())
    }

    /// Empties the buffer and gives its counted bytes back to the common limit.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        if self.counted > 0 {
            self.bytes.shrink_to(UNCOUNTED);
            self.uncount();
        }
    }

    #[cold]
    fn grow(&mut self, length: usize) -> Result<(), Full> {
        let capacity = length.max(2 * self.bytes.capacity());
        let more = capacity.saturating_sub(UNCOUNTED).saturating_sub(self.counted);
        let within = |all: usize| all.checked_add(more).filter(|&all| all <= TOGETHER_MAX);
        TOGETHER.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).map_err(|_| Full)?;
        self.counted += more;
        self.bytes.reserve_exact(capacity - self.bytes.len());
        Ok(())
    }

    fn uncount(&mut self) {
        TOGETHER.fetch_sub(std::mem::take(&mut self.counted), Ordering::Relaxed);
    }
}

impl Deref for Kept {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.uncount();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_limited_together_and_give_back_what_they_held() {
        let most = TOGETHER_MAX / 4 + UNCOUNTED;
        let mut kept: [Kept; 5] = Default::default();
        for one in &mut kept[..4] {
            one.append(b"row").expect("few bytes");
            one.room(most - 3).expect("a quarter");
        }
        assert_eq!(kept[4].room(UNCOUNTED + 1), Err(Full));
        kept[4].room(UNCOUNTED).expect("what is not counted");
        kept[0].append(b"s").expect("room that is there");
        assert_eq!(&kept[0][..], b"rows");
        kept[0].clear();
        kept[4].room(most).expect("what was cleared");
        kept[0].room(UNCOUNTED + 1).expect_err("a fifth quarter");
        drop(kept);
        assert_eq!(TOGETHER.load(Ordering::Relaxed), 0);
        let words = "unread answers of all connections take more than 256 MiB";
        assert_eq!(Full.to_string(), words);
    }
}
