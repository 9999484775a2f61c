//! Deals chunks of rows out to the sessions of a load.
//!
//! A session keeps to a table of its own, since a server appends fastest where one session writes
//! at the end of each table. Once all tables are begun, a session helps with the table that has
//! most chunks left.

use std::sync::atomic::{AtomicU32, Ordering};

/// Chunks of all tables, each dealt once.
#[derive(Debug)]
pub(super) struct ChunkQueue {
    chunks: u32,
    tables_begun: AtomicU32,
    /// Chunks taken of each table; exceeds `chunks` once sessions have looked for more.
    taken: Vec<AtomicU32>,
}

/// Table of a session, counted from 0; None before its first chunk.
pub(super) type CurrentTable = Option<u32>;

impl ChunkQueue {
    pub(super) fn new(tables: u32, chunks: u32) -> Self {
        let taken = (0..tables).map(|_| AtomicU32::new(0)).collect();
        Self { chunks, tables_begun: AtomicU32::new(0), taken }
    }

    /// Takes the next chunk for a session from the tables below `until`: table and chunk, both
    /// counted from 0.
    pub(super) fn next(&self, until: u32, own: &mut CurrentTable) -> Option<(u32, u32)> {
        loop {
            if let Some(table) = *own
                && let Some(chunk) = self.take(table)
            {
                return Some((table, chunk));
            }
            *own = Some(self.unbegun(until).or_else(|| self.fullest(until))?);
        }
    }

    fn take(&self, table: u32) -> Option<u32> {
        let chunk = self.taken[table as usize].fetch_add(1, Ordering::Relaxed);
        (chunk < self.chunks).then_some(chunk)
    }

    fn unbegun(&self, until: u32) -> Option<u32> {
        let next = |table| (table < until).then_some(table + 1);
        self.tables_begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()
    }

    fn fullest(&self, until: u32) -> Option<u32> {
        let taken = self.taken.iter().take(until as usize);
        let least = taken.map(|taken| taken.load(Ordering::Relaxed)).zip(0..).min()?;
        (least.0 < self.chunks).then_some(least.1)
    }
}

#[cfg(test)]
mod tests {
    use super::{ChunkQueue, CurrentTable};
    use std::collections::BTreeSet;

    #[test]
    fn sessions_keep_to_tables_of_their_own_and_then_help() {
        let chunk_queue = ChunkQueue::new(2, 3);
        let (mut first, mut second): (CurrentTable, CurrentTable) = (None, None);
        assert_eq!(chunk_queue.next(2, &mut first), Some((0, 0)));
        assert_eq!(chunk_queue.next(2, &mut second), Some((1, 0)));
        assert_eq!(chunk_queue.next(2, &mut second), Some((1, 1)));
        assert_eq!(chunk_queue.next(2, &mut second), Some((1, 2)));
        assert_eq!(chunk_queue.next(2, &mut second), Some((0, 1)));
        assert_eq!(chunk_queue.next(2, &mut first), Some((0, 2)));
        assert_eq!(chunk_queue.next(2, &mut first), None);
        assert_eq!(chunk_queue.next(2, &mut second), None);
    }

    #[test]
    fn every_chunk_is_dealt_once() {
        for (tables, chunks, sessions) in [(1, 5, 4), (4, 3, 2), (7, 1, 3), (3, 0, 2)] {
            let chunk_queue = ChunkQueue::new(tables, chunks);
            let work = || {
                let mut own = None;
                std::iter::from_fn(|| chunk_queue.next(tables, &mut own)).collect::<Vec<_>>()
            };
            let dealt: Vec<(u32, u32)> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..sessions).map(|_| scope.spawn(work)).collect();
                threads.into_iter().flat_map(|it| it.join().expect("no panic")).collect()
            });
            let all = (0..tables).flat_map(|table| (0..chunks).map(move |chunk| (table, chunk)));
            assert_eq!(dealt.len(), (tables * chunks) as usize);
            assert_eq!(BTreeSet::from_iter(dealt), BTreeSet::from_iter(all));
        }
    }
}
