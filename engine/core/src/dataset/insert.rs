//! Rows as multi-row INSERT statements, which every server takes.

use std::ops::RangeInclusive;

use super::rows::{Chunk, Form};
use crate::random::Sampler;

/// Longest statement, as in sysbench; within every server's `max_allowed_packet`.
const STATEMENT_BYTES_MAX: usize = 524_288;
/// Upper bound of a row's length: ids and `k` have at most ten digits.
const ROW_BYTES_MAX: usize = 256;
const FORM: Form = Form {
    begin: b"(",
    between_numbers: b", ",
    before_text: b", '",
    between_texts: b"', '",
    end: b"')",
};

/// One INSERT statement and the ids of its rows.
pub(super) struct Insert<'a> {
    pub sql: &'a str,
    pub ids: RangeInclusive<u32>,
}

/// Passes the chunk's INSERT statements to `send` in order.
///
/// # Errors
/// The first of `send`; the rest of the chunk is not drawn.
pub(super) fn inserts<E>(
    chunk: &Chunk,
    seed: u64,
    k: &Sampler,
    mut send: impl FnMut(Insert<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let head = format!("INSERT INTO {}(id, k, c, pad) VALUES", chunk.table_name());
    let mut rows = chunk.rows(seed, k);
    let mut sql = Vec::with_capacity(STATEMENT_BYTES_MAX);
    let mut next = *chunk.ids.start();
    while next <= *chunk.ids.end() {
        let first = next;
        sql.clear();
        sql.extend_from_slice(head.as_bytes());
        while sql.len() < STATEMENT_BYTES_MAX - ROW_BYTES_MAX {
            let Some(id) = rows.write_next(&FORM, &mut sql) else { break };
            sql.push(b',');
            next = id + 1;
        }
        sql.pop(); // the last comma
        send(Insert { sql: text(&sql), ids: first..=next - 1 })?;
    }
    Ok(())
}

fn text(sql: &[u8]) -> &str {
    std::str::from_utf8(sql).expect("rows are ASCII")
}

#[cfg(test)]
mod tests {
    use super::{ROW_BYTES_MAX, STATEMENT_BYTES_MAX, inserts};
    use crate::dataset::Layout;
    use crate::dataset::rows::{CHUNK_ROWS, Chunk};
    use crate::random::Distribution;
    use std::convert::Infallible;

    #[test]
    fn statements_are_as_long_as_allowed_and_no_longer() {
        let k = Distribution::Uniform {}.over(1, 6000);
        let mut lengths = Vec::new();
        let mut next = 1;
        let chunk = Chunk::new(Layout::Oltp, 7, 0, 6000);
        inserts(&chunk, 1, &k, |insert| {
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
        let fits = STATEMENT_BYTES_MAX - ROW_BYTES_MAX - 1..STATEMENT_BYTES_MAX;
        assert!(full.iter().all(|length| fits.contains(length)));
        assert!(*last < STATEMENT_BYTES_MAX);
    }

    #[test]
    fn the_longest_row_fits_where_a_row_is_begun() {
        let rows = i32::MAX as u32;
        let k = Distribution::Uniform {}.over(rows, rows);
        let chunk = Chunk::new(Layout::Oltp, 1, Chunk::count(rows) - 1, rows);
        let mut row = Vec::new();
        chunk.rows(1, &k).write_next(&super::FORM, &mut row).expect("a row");
        assert!(row.len() < ROW_BYTES_MAX, "{}", row.len());
    }

    #[test]
    fn a_refused_statement_ends_the_chunk() {
        let k = Distribution::Uniform {}.over(1, CHUNK_ROWS);
        let mut calls = 0;
        let outcome = inserts(&Chunk::new(Layout::Oltp, 1, 0, CHUNK_ROWS), 1, &k, |_| {
            calls += 1;
            Err("no")
        });
        assert_eq!((outcome, calls), (Err("no"), 1));
    }
}
