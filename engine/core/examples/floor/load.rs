//! The ready-made requests, the counting of replies, and the number that the main thread reads.

use dbdyno_core::driver::Driver;
use dbdyno_core::random::Random;
use dbdyno_wire::Parameter;
use dbdyno_wire::mysql::command::statement_execute;
use dbdyno_wire::postgres::message::{HEADER_LENGTH, execution};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Different requests, so that the server does not answer one row only.
const REQUESTS: usize = 1024;

/// Requests that are ready to be sent.
pub struct Load {
    driver: Driver,
    requests: Vec<Vec<u8>>,
}

impl Load {
    /// Point selects by the statements with these numbers, of ids from 1 to `table_size`.
    pub fn new(driver: Driver, statements: &[u32], table_size: u64) -> Self {
        let mut random = Random::for_stream(1, 1);
        let request = |index: usize| {
            let id = 1 + random.next_u64() % table_size.max(1);
            let id = [Parameter::BigInt(i64::try_from(id).expect("tables are smaller"))];
            let statement = statements[index % statements.len()];
            let mut bytes = Vec::new();
            match driver {
                Driver::Mysql => statement_execute(&mut bytes, statement, &id, true),
                Driver::Pgsql => execution(&mut bytes, statement, &id),
            }
            bytes
        };
        Self { driver, requests: (0..REQUESTS).map(request).collect() }
    }

    /// The request that comes `number`th.
    #[inline]
    pub fn request(&self, number: u64) -> &[u8] {
        &self.requests[number as usize % REQUESTS]
    }

    /// Counts the packets of a reply, or its messages.
    ///
    /// # Panics
    /// When the bytes are not a whole result set: replies of 200 bytes come in one piece on one machine,
    /// and a floor that put pieces together would be an engine.
    #[inline]
    pub fn packets(&self, mut bytes: &[u8]) -> usize {
        let mut count = 0;
        while !bytes.is_empty() {
            let length = match (self.driver, bytes) {
                (Driver::Mysql, &[low, middle, high, _, ..]) => {
                    4 + u32::from_le_bytes([low, middle, high, 0]) as usize
                }
                (Driver::Pgsql, &[_, a, b, c, d, ..]) => {
                    HEADER_LENGTH - 4 + u32::from_be_bytes([a, b, c, d]) as usize
                }
                _ => panic!("a reply in one piece"),
            };
            bytes = bytes.get(length..).expect("a reply in one piece");
            count += 1;
        }
        assert!(count >= 3, "columns, their definitions, rows, and an end");
        count
    }
}

/// What is counted, and whether counting is over.
#[derive(Default)]
pub struct Tally {
    replies: AtomicU64,
    over: AtomicBool,
}

impl Tally {
    /// Replies that have come.
    pub fn count(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }

    /// One thread alone has counted so far.
    #[inline]
    pub fn set(&self, count: u64) {
        self.replies.store(count, Ordering::Relaxed);
    }

    /// One of several threads has counted one more.
    #[inline]
    pub fn add(&self) {
        self.replies.fetch_add(1, Ordering::Relaxed);
    }

    /// No request is to be sent any more.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether no request is to be sent any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}
