//! Ready-made requests, and the count of replies read by the main thread.

use dbdyno_core::driver::Driver;
use dbdyno_core::random::Random;
use dbdyno_wire::Parameter;
use dbdyno_wire::mysql::command::statement_execute;
use dbdyno_wire::postgres::message::{HEADER_LENGTH, execution};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of distinct requests, so that the server does not answer a single row only.
const REQUESTS: usize = 1024;

/// Requests ready to be sent.
pub struct Load {
    driver: Driver,
    requests: Vec<Vec<u8>>,
}

impl Load {
    /// Point selects by the statements with these ids, for rows 1 to `table_size`.
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

    /// Request number `number`.
    #[inline]
    pub fn request(&self, number: u64) -> &[u8] {
        &self.requests[number as usize % REQUESTS]
    }

    /// Counts the packets of a reply, or its messages.
    ///
    /// # Panics
    /// On an incomplete result set: replies of 200 bytes arrive in one piece on the same machine,
    /// and a floor joining pieces would be an engine.
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

/// Count of replies, and a flag for the end.
#[derive(Default)]
pub struct Tally {
    replies: AtomicU64,
    over: AtomicBool,
}

impl Tally {
    /// Number of replies.
    pub fn count(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }

    /// Sets the count, from a single thread.
    #[inline]
    pub fn set(&self, count: u64) {
        self.replies.store(count, Ordering::Relaxed);
    }

    /// Adds a reply, from any of several threads.
    #[inline]
    pub fn add(&self) {
        self.replies.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the sending of requests.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// True once no further request is to be sent.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}
