//! sysbench's random draws, bit for bit: generator, seeding, distributions, row strings.
//!
//! Bit-for-bit equality lets users replay a sysbench run with the same statements, and lets tests
//! check the whole chain against the numbers of the real program.

mod distribution;
mod glibc;
mod sampler;
mod unique;
mod zipf;

pub use distribution::Distribution;
pub use glibc::GlibcRandom;
pub use sampler::Sampler;
pub use unique::UniqueSequence;

use serde::{Deserialize, Serialize};

/// Format of column `c`: ten groups of eleven digits.
pub const C_FORMAT: &[u8; 119] = b"###########-###########-###########-###########-###########-\
###########-###########-###########-###########-###########";

/// Format of column `pad`: five groups of eleven digits.
pub const PAD_FORMAT: &[u8; 59] = b"###########-###########-###########-###########-###########";

/// xoroshiro128+ with the constants of 2016 (55, 14, 36), the generator of every sysbench thread.
///
/// Blackman and Vigna, <https://prng.di.unimi.it/>; the constants were changed in 2018, sysbench
/// kept the older ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 2],
    /// True if each event takes a further value, see [`Self::end_event`].
    counts_events: bool,
}

/// Derivation of the connections' streams from a run's seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Seeding {
    /// An independent stream per connection: [`Random::for_stream`].
    #[default]
    Streams,
    /// sysbench's seeding: four values of glibc's `random()` per thread, in thread order (a race in
    /// sysbench itself, so only its runs with a single thread can be replayed).
    Sysbench,
}

impl Seeding {
    /// Streams of a run's connections, in order, without end.
    ///
    /// sysbench's seed has 32 bits; [`Self::Sysbench`] uses the lower half of a longer seed.
    pub fn streams(self, seed: u64) -> impl Iterator<Item = Random> {
        let mut libc_random = GlibcRandom::new(seed as u32);
        (0_u64..).map(move |stream| match self {
            Self::Streams => Random::for_stream(seed, stream),
            Self::Sysbench => {
                Random { counts_events: true, ..Random::from_glibc(&mut libc_random) }
            }
        })
    }
}

impl Random {
    /// Seeds like a starting sysbench thread: four values of the C library's `random()`.
    pub fn from_glibc(random: &mut GlibcRandom) -> Self {
        let mut word = || u64::from(random.next_u31()) << 32 | u64::from(random.next_u31());
        Self { state: [word(), word()], counts_events: false }
    }

    /// Ends the draws of an event.
    ///
    /// sysbench then takes a further value to choose a slot of its histogram, unless it runs with
    /// `--percentile=0`. A stream of [`Seeding::Sysbench`] does the same, so later events match
    /// too.
    pub fn end_event(&mut self) {
        if self.counts_events {
            self.next_u64();
        }
    }

    /// Stream number `stream` of `seed`: reproducible for any number of threads.
    ///
    /// sysbench's own seeding is a race between threads; unless it has to be repeated, each
    /// connection and each chunk of rows gets its own stream. Two streams of a seed never share a
    /// state, as every step here is a bijection (Steele et al., "Fast splittable pseudorandom
    /// number generators", 2014: splitmix64).
    #[must_use]
    pub fn for_stream(seed: u64, stream: u64) -> Self {
        let mut counter = mix(seed.wrapping_add(GOLDEN)) ^ stream;
        counter = mix(counter);
        let first = mix(counter.wrapping_add(GOLDEN));
        let second = mix(counter.wrapping_add(GOLDEN.wrapping_mul(2)));
        Self { state: [first, second], counts_events: false }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [first, mut second] = self.state;
        let result = first.wrapping_add(second);
        second ^= first;
        self.state = [first.rotate_left(55) ^ second ^ (second << 14), second.rotate_left(36)];
        result
    }

    /// A double in `[0, 1)` from the upper 52 bits.
    #[inline]
    pub fn uniform_double(&mut self) -> f64 {
        f64::from_bits((self.next_u64() >> 12) | (0x3FF << 52)) - 1.0
    }

    /// A uniform integer of `low..=high`.
    ///
    /// The width is taken in 32 bits, as in sysbench: the whole range of `u32` has width 0 and
    /// always gives 0, and a `high` below `low` wraps.
    #[inline]
    pub fn uniform(&mut self, low: u32, high: u32) -> u32 {
        let width = high.wrapping_sub(low).wrapping_add(1);
        truncate(f64::from(low) + self.uniform_double() * f64::from(width))
    }

    /// Fills `out` by `format`: a digit for `#`, a lower-case letter for `@`, a draw for each from
    /// left to right; other bytes are copied.
    ///
    /// # Panics
    /// If the lengths of `out` and `format` differ.
    pub fn fill_string(&mut self, format: &[u8], out: &mut [u8]) {
        assert_eq!(format.len(), out.len(), "a string is as long as its format");
        for (target, &symbol) in out.iter_mut().zip(format) {
            *target = match symbol {
                b'#' => self.character(b'0', b'9'),
                b'@' => self.character(b'a', b'z'),
                other => other,
            };
        }
    }

    #[inline]
    fn character(&mut self, low: u8, high: u8) -> u8 {
        self.uniform(u32::from(low), u32::from(high)) as u8
    }
}

/// The increment of splitmix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of splitmix64, a bijection.
const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Converts a double as C does to `uint32_t` on 64-bit machines: through a 64-bit integer.
#[inline]
fn truncate(value: f64) -> u32 {
    value as i64 as u32
}
