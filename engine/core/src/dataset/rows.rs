//! Rows of a table, drawn in independent chunks.
//!
//! Each chunk has its own random stream and writes ids explicitly, so a table is the same however
//! many sessions load it and in any order. (sysbench lets the server number the rows and loads a
//! table in one session, which leaves all but one core idle.)
//!
//! Digits are drawn eleven at a time. sysbench draws each of the 165 digits of a row by itself;
//! eleven independent uniform digits are one uniform number below 10^11, so the distribution is the
//! same.

use super::Layout;
use crate::random::{Random, Sampler};
use std::ops::RangeInclusive;

/// Rows of a chunk: a fraction of a second of work.
pub(super) const CHUNK_ROWS: u32 = 25_000;
/// Groups of eleven digits in the columns `c` and `pad`.
const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;
/// `pad` of every row in sysbench 0.4.
const CONSTANT_PAD: &[u8; 50] = b"qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt";

/// Range of one table's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    layout: Layout,
    pub table: u32,
    number: u32,
    pub ids: RangeInclusive<u32>,
}

/// Text before, between and after the values of a row.
pub(super) struct Form {
    pub begin: &'static [u8],
    pub between_numbers: &'static [u8],
    pub before_text: &'static [u8],
    pub between_texts: &'static [u8],
    pub end: &'static [u8],
}

/// Generator of a chunk's rows, in order.
pub(super) struct Rows<'a> {
    ids: RangeInclusive<u32>,
    k: &'a Sampler,
    /// None for [`Layout::LegacyOne`], whose rows are constant.
    random: Option<Random>,
}

impl Chunk {
    pub(super) fn count(rows: u32) -> u32 {
        rows.div_ceil(CHUNK_ROWS)
    }

    /// Chunk `number`, counted from 0, of a table with `rows` rows.
    pub(super) fn new(layout: Layout, table: u32, number: u32, rows: u32) -> Self {
        let first = number * CHUNK_ROWS + 1;
        let last = rows.min(number.saturating_add(1).saturating_mul(CHUNK_ROWS));
        Self { layout, table, number, ids: first..=last }
    }

    pub(super) fn table_name(&self) -> String {
        self.layout.table_name(self.table)
    }

    /// Rows in order of their ids; the same for each call.
    pub(super) fn rows<'a>(&self, seed: u64, k: &'a Sampler) -> Rows<'a> {
        // Tables count from 1, so these streams differ from those of a run's connections.
        let stream = u64::from(self.table) << 32 | u64::from(self.number);
        let is_drawn = self.layout != Layout::LegacyOne;
        let random = is_drawn.then(|| Random::for_stream(seed, stream));
        Rows { ids: self.ids.clone(), k, random }
    }
}

impl Rows<'_> {
    /// Appends the next row and returns its id; None after the last.
    pub(super) fn write_next(&mut self, form: &Form, out: &mut Vec<u8>) -> Option<u32> {
        let id = self.ids.next()?;
        out.extend_from_slice(form.begin);
        write_number(id, out);
        out.extend_from_slice(form.between_numbers);
        match &mut self.random {
            Some(random) => {
                write_number(self.k.draw(random), out);
                out.extend_from_slice(form.before_text);
                write_groups::<C_GROUPS>(random, out);
                out.extend_from_slice(form.between_texts);
                write_groups::<PAD_GROUPS>(random, out);
            }
            None => {
                out.push(b'0');
                out.extend_from_slice(form.before_text);
                out.push(b' ');
                out.extend_from_slice(form.between_texts);
                out.extend_from_slice(CONSTANT_PAD);
            }
        }
        out.extend_from_slice(form.end);
        Some(id)
    }
}

/// Digits of a group.
const GROUP: usize = 11;
const BELOW: u128 = 100_000_000_000;
/// `00` to `99`, concatenated.
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

/// Appends `GROUPS` dash-separated groups of eleven digits, one draw per group.
fn write_groups<const GROUPS: usize>(random: &mut Random, out: &mut Vec<u8>) {
    for number in 0..GROUPS {
        if number > 0 {
            out.push(b'-');
        }
        // The upper half of the product is uniform below 10^11, up to a bias of 5 in 10^9.
        let drawn = ((u128::from(random.next_u64()) * BELOW) >> 64) as u64;
        out.extend_from_slice(&group(drawn));
    }
}

/// Formats a number below 10^11 with leading zeros.
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
fn write_number(number: u32, out: &mut Vec<u8>) {
    let digits = group(number.into());
    let first = digits.iter().position(|&digit| digit != b'0').unwrap_or(GROUP - 1);
    out.extend_from_slice(&digits[first..]);
}

fn pair(number: usize) -> &'static [u8] {
    &PAIRS[2 * number..2 * number + 2]
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_ROWS, Chunk, Form, group, write_groups, write_number};
    use crate::dataset::Layout;
    use crate::random::{Distribution, Random};

    const FORM: Form = Form {
        begin: b"<",
        between_numbers: b",",
        before_text: b",[",
        between_texts: b"][",
        end: b"]>",
    };

    fn texts(layout: Layout, table: u32, rows: u32) -> Vec<String> {
        let k = Distribution::Uniform {}.over(1, rows);
        let mut drawn = Chunk::new(layout, table, 0, rows).rows(9, &k);
        let next = || {
            let mut out = Vec::new();
            drawn.write_next(&FORM, &mut out)?;
            Some(String::from_utf8(out).expect("text"))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn chunks_cover_a_table_without_gap_or_overlap() {
        for rows in [1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 3 * CHUNK_ROWS] {
            let chunks =
                (0..Chunk::count(rows)).map(|number| Chunk::new(Layout::Oltp, 1, number, rows));
            let ids: Vec<u32> = chunks.flat_map(|chunk| chunk.ids).collect();
            assert_eq!(ids, (1..=rows).collect::<Vec<_>>());
        }
        assert_eq!(Chunk::count(0), 0);
    }

    #[test]
    fn the_last_chunk_of_the_largest_table_ends_with_it() {
        let rows = i32::MAX as u32;
        let last = Chunk::new(Layout::Oltp, 1, Chunk::count(rows) - 1, rows);
        assert_eq!(*last.ids.end(), rows);
    }

    /// A change of rows must raise `ROWS_CHANGED` in the lab's `experiment/dataset.py`.
    #[test]
    fn the_rows_of_a_seed_never_change() {
        let rows = texts(Layout::Oltp, 1, 3);
        assert_eq!(rows, texts(Layout::Legacy, 1, 3));
        let c = "40570165749-01003889436-71645002549-35821265333-68575606949-80899617567-\
                 83534748533-91653828186-33617783166-70846215693";
        let pad = "01083889390-88016729403-15592914881-92967996643-29560322163";
        assert_eq!(rows[2], format!("<3,2,[{c}][{pad}]>"));
    }

    #[test]
    fn tables_differ() {
        assert_ne!(texts(Layout::Oltp, 1, 3), texts(Layout::Oltp, 2, 3));
    }

    #[test]
    fn all_rows_of_the_oldest_layout_are_the_same() {
        let pad = "qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt";
        let expected = [1, 2].map(|id| format!("<{id},0,[ ][{pad}]>"));
        assert_eq!(texts(Layout::LegacyOne, 1, 2), expected);
    }

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

    /// Chi-square at each place of a group, 9 degrees of freedom: exceeds 33.7 by chance in 1 of
    /// 10,000.
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

    /// Chi-square of neighbouring digits, 99 degrees of freedom.
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
