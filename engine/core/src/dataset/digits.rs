//! Digits of random numbers, many at a time.
//!
//! sysbench draws each of the 165 digits of a row by itself. Eleven digits that are each uniform and
//! independent are one uniform number below 10^11, so one draw gives a whole group, by the same law.

use crate::random::Random;

/// Digits of a group.
const GROUP: usize = 11;
const BELOW: u128 = 100_000_000_000;
/// `00` to `99`, one behind the other.
const PAIRS: [u8; 200] = pairs();

const fn pairs() -> [u8; 200] {
    let mut pairs = [b'0'; 200];
    let mut number = 0;
    while number < 100 {
        pairs[2 * number] += (number / 10) as u8;
        pairs[2 * number + 1] += (number % 10) as u8;
        number += 1;
    }
    pairs
}

/// Appends `GROUPS` groups of eleven digits with dashes between them: one draw for each.
pub(super) fn write_groups<const GROUPS: usize>(random: &mut Random, out: &mut Vec<u8>) {
    for number in 0..GROUPS {
        if number > 0 {
            out.push(b'-');
        }
        // The upper half of the product is uniform below 10^11; what is left over is 5 in 10^9.
        let drawn = ((u128::from(random.next_u64()) * BELOW) >> 64) as u64;
        out.extend_from_slice(&group(drawn));
    }
}

/// A number below 10^11, with leading zeros.
fn group(number: u64) -> [u8; GROUP] {
    let mut digits = [b'0'; GROUP];
    let mut rest = number;
    for place in [9, 7, 5, 3, 1] {
        digits[place..place + 2].copy_from_slice(pair((rest % 100) as usize));
        rest /= 100;
    }
    digits[0] += rest as u8;
    digits
}

/// Appends `number` without leading zeros.
pub(super) fn write_number(number: u32, out: &mut Vec<u8>) {
    let digits = group(number.into());
    let first = digits.iter().position(|&digit| digit != b'0').unwrap_or(GROUP - 1);
    out.extend_from_slice(&digits[first..]);
}

fn pair(number: usize) -> &'static [u8] {
    &PAIRS[2 * number..2 * number + 2]
}

#[cfg(test)]
mod tests {
    use super::{group, write_groups, write_number};
    use crate::random::Random;

    #[test]
    fn numbers_are_written_as_everywhere() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, 1_000_000, i32::MAX as u32, u32::MAX] {
            let mut out = b"x".to_vec();
            write_number(number, &mut out);
            assert_eq!(String::from_utf8(out).expect("text"), format!("x{number}"));
        }
        for number in [0, 7, 99_999_999_999, 12_345_678_901, 10_000_000_000] {
            assert_eq!(group(number), *format!("{number:011}").as_bytes());
        }
    }

    /// Chi-square of each of the places of a group, with 9 degrees of freedom: above 33.7 by chance
    /// in 1 of 10,000.
    #[test]
    fn every_digit_is_as_likely_at_every_place() {
        const GROUPS: usize = 20_000;
        let (mut random, mut out) = (Random::for_stream(3, 4), Vec::new());
        write_groups::<GROUPS>(&mut random, &mut out);
        let groups: Vec<&[u8]> = out.split(|&byte| byte == b'-').collect();
        assert_eq!(groups.len(), GROUPS);
        for place in 0..11 {
            let mut counts = [0_u32; 10];
            groups.iter().for_each(|group| counts[usize::from(group[place] - b'0')] += 1);
            let expected = GROUPS as f64 / 10.0;
            let off = |&count: &u32| (f64::from(count) - expected).powi(2) / expected;
            let chi_square: f64 = counts.iter().map(off).sum();
            assert!(chi_square < 33.7, "place {place}: {chi_square}");
        }
    }

    /// The same for neighbouring digits together: 99 degrees of freedom.
    #[test]
    fn neighbouring_digits_know_nothing_of_each_other() {
        const GROUPS: usize = 50_000;
        let (mut random, mut out) = (Random::for_stream(5, 6), Vec::new());
        write_groups::<GROUPS>(&mut random, &mut out);
        for place in 0..10 {
            let mut counts = [0_u32; 100];
            for group in out.split(|&byte| byte == b'-') {
                let [high, low] = [group[place], group[place + 1]].map(|it| usize::from(it - b'0'));
                counts[10 * high + low] += 1;
            }
            let expected = GROUPS as f64 / 100.0;
            let off = |&count: &u32| (f64::from(count) - expected).powi(2) / expected;
            let chi_square: f64 = counts.iter().map(off).sum();
            assert!(chi_square < 161.4, "places {place} and the next: {chi_square}");
        }
    }
}
