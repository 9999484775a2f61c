//! sysbench's `rand.unique()`: 2^32 distinct values in a pseudorandom order.
//!
//! Preshing, "How to generate a sequence of unique random integers": for a prime `p` with `p mod 4
//! = 3`, `x → x² mod p` mirrored at `p/2` is a bijection, and so is applying it twice.

use std::sync::atomic::{AtomicU32, Ordering};

use super::GlibcRandom;

/// Largest prime below 2^32 that is 3 modulo 4.
const PRIME: u32 = 4_294_967_291;

/// Sequence shared by all threads of a run.
#[derive(Debug)]
pub struct UniqueSequence {
    index: AtomicU32,
    offset: u32,
    step: u32,
}

impl UniqueSequence {
    /// Takes two values of the C library's `random()`, after the four of the main thread.
    ///
    /// The offset is seeded first, as in sysbench built by gcc.
    pub fn from_glibc(random: &mut GlibcRandom) -> Self {
        let offset_seed = random.next_u31();
        let index_seed = random.next_u31();
        Self {
            index: AtomicU32::new(permute(permute(index_seed).wrapping_add(0x682f_0161))),
            offset: permute(permute(offset_seed).wrapping_add(0x4679_0905)),
            step: 1,
        }
    }

    /// Restricts the sequence to value `first`, counted from 0, and every `step`th after it, so
    /// several generators draw distinct values.
    #[must_use]
    pub fn every(self, first: u32, step: u32) -> Self {
        let index = self.index.into_inner().wrapping_add(first);
        Self { index: AtomicU32::new(index), step, ..self }
    }

    /// Next value; distinct over 2^32 calls from any threads.
    pub fn draw(&self) -> u32 {
        let index = self.index.fetch_add(self.step, Ordering::Relaxed);
        permute(permute(index).wrapping_add(self.offset) ^ 0x5bf0_3635)
    }
}

/// A bijection of the 32-bit integers.
fn permute(value: u32) -> u32 {
    if value >= PRIME {
        return value;
    }
    let square = u64::from(value) * u64::from(value) % u64::from(PRIME);
    let residue = u32::try_from(square).expect("a residue is below the prime");
    if value <= PRIME / 2 { residue } else { PRIME - residue }
}
