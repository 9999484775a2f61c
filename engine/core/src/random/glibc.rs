//! The C library's `random()`, the seed of every sysbench generator.
//!
//! sysbench is reproducible only together with glibc's additive feedback generator (`TYPE_3`), so
//! it is implemented here: the same numbers on every machine, and no hidden state shared with other
//! code of the process. Recurrence and warm-up: Peter Selinger, "The GLIBC random number
//! generator".

/// Words of state of `TYPE_3`.
const DEGREE: usize = 31;
/// Distance of the two taps: `r[i] = r[i-3] + r[i-31]`.
const SEPARATION: usize = 3;
/// Values glibc throws away after seeding.
const DISCARDED: usize = 10 * DEGREE;

/// glibc's `random()` after `srandom(seed)`.
#[derive(Clone, Debug)]
pub struct GlibcRandom {
    state: [u32; DEGREE],
    rear: usize,
}

impl GlibcRandom {
    /// The state after `srandom(seed)`; a process that never calls it has seed 1.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        let mut state = [0_u32; DEGREE];
        // glibc treats the word as signed and takes the seed 0 for 1.
        let mut word = i64::from((if seed == 0 { 1 } else { seed }) as i32);
        for slot in &mut state {
            *slot = word as i32 as u32;
            word = (16_807 * word) % 2_147_483_647;
            if word < 0 {
                word += 2_147_483_647;
            }
        }
        let mut random = Self { state, rear: 0 };
        for _ in 0..DISCARDED {
            random.next_u31();
        }
        random
    }

    /// The next value of `random()`, in `0..2^31`.
    pub fn next_u31(&mut self) -> u32 {
        let front = (self.rear + SEPARATION) % DEGREE;
        self.state[front] = self.state[front].wrapping_add(self.state[self.rear]);
        self.rear = (self.rear + 1) % DEGREE;
        self.state[front] >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::GlibcRandom;

    // Not bound by the crate `libc`.
    unsafe extern "C" {
        fn srandom(seed: libc::c_uint);
        fn random() -> libc::c_long;
    }

    #[test]
    fn seed_one_gives_the_numbers_every_c_program_sees() {
        let mut random = GlibcRandom::new(1);
        let first: Vec<u32> = (0..6).map(|_| random.next_u31()).collect();
        assert_eq!(
            first,
            [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793, 424_238_335]
        );
    }

    #[test]
    fn agrees_with_the_c_library_of_this_machine() {
        for seed in [0_u32, 1, 7, 12_345, 2_147_483_647, 2_147_483_648, u32::MAX] {
            let mut ours = GlibcRandom::new(seed);
            // SAFETY: no other test of this crate uses the C library's random state.
            let theirs: Vec<i64> = unsafe {
                srandom(seed);
                (0..100).map(|_| random()).collect()
            };
            let ours: Vec<i64> = (0..100).map(|_| i64::from(ours.next_u31())).collect();
            assert_eq!(ours, theirs, "seed {seed}");
        }
    }
}
