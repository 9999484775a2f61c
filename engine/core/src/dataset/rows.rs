//! The rows of a table, in chunks that do not know of each other.
//!
//! Each chunk has its own stream of draws, and ids are written out, so that a table is the same
//! however many sessions load it and in whichever order they come to it. sysbench lets the server
//! number the rows, loads a table in one session, and so leaves all but one core idle.

use std::io::Write as _;
use std::ops::RangeInclusive;

use crate::random::{C_FORMAT, Law, PAD_FORMAT, Random};

/// Rows of a chunk: some ten statements, a fraction of a second of work.
pub(super) const CHUNK_ROWS: u32 = 25_000;
/// The longest statement, as in sysbench; every server's `max_allowed_packet` has room for it.
const STATEMENT_BYTES_MAX: usize = 524_288;

/// A stretch of one table's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub table: u32,
    number: u32,
    ids: RangeInclusive<u32>,
}

/// One INSERT.
pub(super) struct Insert<'a> {
    pub sql: &'a str,
    pub ids: RangeInclusive<u32>,
}

impl Chunk {
    /// How many chunks `rows` make.
    pub(super) fn count(rows: u32) -> u32 {
        rows.div_ceil(CHUNK_ROWS)
    }

    /// Chunk `number` (from 0) of a table with `rows`.
    pub(super) fn new(table: u32, number: u32, rows: u32) -> Self {
        let first = number * CHUNK_ROWS + 1;
        let last = rows.min(number.saturating_add(1).saturating_mul(CHUNK_ROWS));
        Self { table, number, ids: first..=last }
    }

    /// Hands the chunk's INSERTs to `send`, one after the other.
    ///
    /// # Errors
    /// The first of `send`; the rest of the chunk is not drawn.
    pub(super) fn inserts<E>(
        &self,
        seed: u64,
        k: &Law,
        mut send: impl FnMut(Insert<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Tables count from 1, so that no stream is one of a run's connections.
        let mut random =
            Random::for_stream(seed, u64::from(self.table) << 32 | u64::from(self.number));
        let head = format!("INSERT INTO sbtest{}(id, k, c, pad) VALUES", self.table);
        let mut sql = Vec::with_capacity(STATEMENT_BYTES_MAX);
        sql.extend_from_slice(head.as_bytes());
        let mut row = Vec::with_capacity(256);
        let mut first = *self.ids.start();
        for id in self.ids.clone() {
            write_row(id, k, &mut random, &mut row);
            if sql.len() + row.len() >= STATEMENT_BYTES_MAX {
                send(Insert { sql: text(&sql), ids: first..=id - 1 })?;
                sql.truncate(head.len());
                first = id;
            }
            if sql.len() > head.len() {
                sql.push(b',');
            }
            sql.extend_from_slice(&row);
        }
        send(Insert { sql: text(&sql), ids: first..=*self.ids.end() })
    }
}

/// Draws in the order of sysbench: c, pad, k.
fn write_row(id: u32, k: &Law, random: &mut Random, row: &mut Vec<u8>) {
    let (mut c, mut pad) = (*C_FORMAT, *PAD_FORMAT);
    random.fill_string(C_FORMAT, &mut c);
    random.fill_string(PAD_FORMAT, &mut pad);
    let k = k.draw(random);
    row.clear();
    write!(row, "({id}, {k}, '").expect("writing to memory does not fail");
    row.extend_from_slice(&c);
    row.extend_from_slice(b"', '");
    row.extend_from_slice(&pad);
    row.extend_from_slice(b"')");
}

fn text(sql: &[u8]) -> &str {
    std::str::from_utf8(sql).expect("rows are digits and dashes")
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_ROWS, Chunk, STATEMENT_BYTES_MAX};
    use crate::random::Distribution;
    use std::convert::Infallible;

    #[test]
    fn chunks_cover_a_table_without_gap_or_overlap() {
        for rows in [1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 3 * CHUNK_ROWS] {
            let chunks = (0..Chunk::count(rows)).map(|number| Chunk::new(1, number, rows));
            let ids: Vec<u32> = chunks.flat_map(|chunk| chunk.ids).collect();
            assert_eq!(ids, (1..=rows).collect::<Vec<_>>());
        }
        assert_eq!(Chunk::count(0), 0);
    }

    #[test]
    fn the_last_chunk_of_the_largest_table_ends_with_it() {
        let rows = i32::MAX as u32;
        assert_eq!(*Chunk::new(1, Chunk::count(rows) - 1, rows).ids.end(), rows);
    }

    #[test]
    fn statements_are_as_long_as_allowed_and_no_longer() {
        let k = Distribution::Uniform {}.over(1, 6000);
        let mut lengths = Vec::new();
        let mut next = 1;
        Chunk::new(7, 0, 6000)
            .inserts(1, &k, |insert| {
                assert!(insert.sql.starts_with("INSERT INTO sbtest7(id, k, c, pad) VALUES("));
                assert!(insert.sql.ends_with("')"));
                assert_eq!(
                    insert.sql.matches("),(").count() as u32 + 1,
                    insert.ids.clone().count() as u32
                );
                assert_eq!(*insert.ids.start(), next);
                next = insert.ids.end() + 1;
                lengths.push(insert.sql.len());
                Ok::<(), Infallible>(())
            })
            .expect("nothing fails");
        assert_eq!(next, 6001);
        let (last, full) = lengths.split_last().expect("several statements");
        assert!(
            full.iter().all(|it| (STATEMENT_BYTES_MAX - 210..=STATEMENT_BYTES_MAX).contains(it))
        );
        assert!(*last < STATEMENT_BYTES_MAX);
    }

    #[test]
    fn a_refused_statement_ends_the_chunk() {
        let k = Distribution::Uniform {}.over(1, CHUNK_ROWS);
        let mut calls = 0;
        let outcome = Chunk::new(1, 0, CHUNK_ROWS).inserts(1, &k, |_| {
            calls += 1;
            Err("no")
        });
        assert_eq!((outcome, calls), (Err("no"), 1));
    }
}
