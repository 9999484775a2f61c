//! JSON specifications of loads and cleanups. All mistakes of a specification are reported at once.

use serde::Deserialize;
use std::fmt;
use std::time::Duration;

use super::target::{Target, connect};
use crate::driver::Driver;
use crate::error::Failure;
use crate::random::Distribution;
use crate::session::{SILENCE_MAX, Timeouts};
use crate::spec::server_spec;

/// Names and columns of the tables, by sysbench script.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Tables of the `oltp_*` and `select_random_*` scripts.
    #[default]
    Oltp,
    /// Tables of `bulk_insert`: two numbers, no engine named; an existing table is kept.
    BulkInsert,
    /// Tables of sysbench 0.5: unsigned numbers, and `max_rows` as a hint to the engine.
    Legacy,
    /// The only table of sysbench 0.4, `sbtest`: all rows are equal except for their ids.
    LegacyOne,
}

impl Layout {
    /// Name of table number `table`.
    #[must_use]
    pub fn table_name(self, table: u32) -> String {
        if self == Self::LegacyOne { "sbtest".to_owned() } else { format!("sbtest{table}") }
    }
}

/// Ids are signed 32-bit integers.
const ROWS_MAX: u32 = i32::MAX as u32;
/// More sessions load no server faster.
const THREADS_MAX: u32 = 1024;

/// Loading method.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LoadMethod {
    /// LOAD DATA LOCAL INFILE or COPY where the server allows it, else INSERT.
    #[default]
    Auto,
    /// Multi-row INSERT.
    Insert,
    /// LOAD DATA LOCAL INFILE or COPY; an error if the server does not allow it.
    Infile,
}

server_spec! {
    /// Tables to create and fill.
    pub struct PrepareSpec {
        /// Number of tables: `sbtest1` and so on.
        pub tables: u32,
        /// Number of the first table: 1, or 0 for those of the older `bulk_insert`.
        #[serde(default = "one")]
        pub first_table: u32,
        /// Names and columns.
        #[serde(default)]
        pub layout: Layout,
        /// Rows of each table; 0 leaves them empty.
        pub table_size: u32,
        /// Distribution of `k`.
        #[serde(default)]
        pub distribution: Distribution,
        /// Seed of all rows.
        pub seed: u64,
        /// Parallel sessions; 0 for one per core. The rows do not depend on it.
        #[serde(default)]
        pub threads: u32,
        /// Way of loading; the rows do not depend on it.
        #[serde(default)]
        pub load: LoadMethod,
        /// True if the server numbers further rows.
        #[serde(default = "yes")]
        pub auto_inc: bool,
        /// True for a secondary index on `id` in place of the primary key.
        #[serde(default)]
        pub secondary: bool,
        /// True for an index on `k`, created after the rows are loaded.
        #[serde(default = "yes")]
        pub create_secondary: bool,
        /// Storage engine.
        #[serde(default = "innodb")]
        pub engine: String,
        /// `MAX_ROWS` of each table in [`Layout::Legacy`].
        #[serde(default = "a_million")]
        pub max_rows: u64,
        /// Table options after the storage engine, as the user wrote them.
        #[serde(default)]
        pub table_options: String,
        /// Longest silence of the server, s; 0 for no limit. Statements on a whole table are
        /// exempt: `CREATE INDEX`, and the reads of `prewarm`.
        #[serde(default = "silence_max_s")]
        pub answer_timeout_s: f64,
    }
}

server_spec! {
    /// Tables to drop.
    pub struct CleanupSpec {
        /// Number of tables: `sbtest1` and so on.
        pub tables: u32,
        /// Number of the first table: 1, or 0 for those of the older `bulk_insert`.
        #[serde(default = "one")]
        pub first_table: u32,
        /// Names.
        #[serde(default)]
        pub layout: Layout,
        /// Longest silence of the server, s; 0 for no limit.
        #[serde(default = "silence_max_s")]
        pub answer_timeout_s: f64,
    }
}

const fn silence_max_s() -> f64 {
    SILENCE_MAX.as_secs_f64()
}

const fn yes() -> bool {
    true
}

const fn one() -> u32 {
    1
}

const fn a_million() -> u64 {
    1_000_000
}

fn innodb() -> String {
    "innodb".to_owned()
}

impl fmt::Debug for PrepareSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrepareSpec")
            .field("endpoint", &self.endpoint)
            .field("tables", &self.tables)
            .field("table_size", &self.table_size)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CleanupSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanupSpec")
            .field("endpoint", &self.endpoint)
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

impl PrepareSpec {
    /// Mistakes in this specification, a sentence each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = self.common_mistakes();
        if self.table_size > ROWS_MAX {
            mistakes
                .push(format!("table_size must be at most {ROWS_MAX}, not {}", self.table_size));
        }
        if self.layout == Layout::BulkInsert && self.table_size > 0 {
            mistakes.push("table_size must be 0 where bulk_insert is to write the rows".to_owned());
        }
        if self.first_table == 0 && self.table_size > 0 {
            mistakes.push("first_table must be 1 for tables that are given rows".to_owned());
        }
        if self.threads > THREADS_MAX {
            mistakes.push(format!("threads must be at most {THREADS_MAX}, not {}", self.threads));
        }
        if self.driver == Driver::Pgsql {
            if self.secondary {
                mistakes
                    .push("secondary must be off: `KEY xid` is no SQL of PostgreSQL".to_owned());
            }
            if !matches!(self.layout, Layout::Oltp | Layout::BulkInsert) {
                mistakes.push("layout: tables of before sysbench 1.0 are MySQL's".to_owned());
            }
        }
        // The name is sent inside a comment, where it cannot be quoted.
        let is_name = |it: &str| it.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if self.engine.is_empty() || !is_name(&self.engine) {
            mistakes.push(format!(
                "engine must be the name of a storage engine, not {:?}",
                self.engine
            ));
        }
        let of_distribution = self.distribution.mistakes();
        mistakes.extend(of_distribution.into_iter().map(|it| format!("distribution: {it}")));
        mistakes
    }

    /// Number of parallel sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads as usize,
        }
    }

    /// Rows of all tables.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::from(self.tables) * u64::from(self.table_size)
    }
}

impl CleanupSpec {
    /// Mistakes in this specification, a sentence each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        self.common_mistakes()
    }
}

/// Implements the parts shared by both specifications.
macro_rules! loads_tables {
    ($($spec:ty),+) => {$(
        impl $spec {
            /// Opens session `number`.
            pub(super) fn connect(
                &self,
                number: u32,
                timeouts: &Timeouts,
            ) -> Result<Box<dyn Target>, Failure> {
                let endpoint = self.endpoint.of(number);
                connect(self.driver, &endpoint, &self.login(), &self.transport()?, timeouts)
            }

            /// Longest silence of the server; None for no limit.
            pub(super) fn silence(&self) -> Option<Duration> {
                (self.answer_timeout_s > 0.0)
                    .then(|| Duration::from_secs_f64(self.answer_timeout_s))
            }

            fn common_mistakes(&self) -> Vec<String> {
                let mut mistakes = self.tls.mistakes();
                if !(0.0..=1e8).contains(&self.answer_timeout_s) {
                    mistakes.push("answer_timeout_s must be 0 (no limit) or more seconds".into());
                }
                if self.tables == 0 {
                    mistakes.push("tables must be at least 1, not 0".to_owned());
                }
                if self.endpoint.is_empty() {
                    mistakes.push("endpoint must name at least one server".to_owned());
                }
                if self.layout == Layout::LegacyOne && self.tables > 1 {
                    let given = self.tables;
                    mistakes.push(format!("tables must be 1 where there is only sbtest, not {given}"));
                }
                if self.first_table > 1 {
                    mistakes.push(format!("first_table must be 0 or 1, not {}", self.first_table));
                }
                mistakes
            }
        }
    )+};
}
loads_tables!(PrepareSpec, CleanupSpec);
