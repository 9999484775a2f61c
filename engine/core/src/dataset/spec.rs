//! What a load of tables is asked to do, as JSON; all mistakes of a spec are reported at once.

use serde::Deserialize;
use std::fmt;
use std::time::Duration;

use super::target::{Target, connect};
use crate::driver::Driver;
use crate::error::Failure;
use crate::random::Distribution;
use crate::session::tls::TlsSpec;
use crate::session::{SILENCE_MAX, Timeouts};
use crate::spec::{Endpoints, server_spec};

/// Names and columns of the tables.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Those of the `oltp_*` and `select_random_*` scripts.
    #[default]
    Oltp,
    /// Those of `bulk_insert`: two numbers, no engine named, and a table that exists is left as it is.
    BulkInsert,
    /// Those of the scripts of sysbench 0.5: numbers without sign, and a promise of `max_rows`.
    Legacy,
    /// The only table of sysbench 0.4: `sbtest`, where all rows but for their ids are the same.
    LegacyOne,
}

impl Layout {
    /// The name of table number `table`.
    #[must_use]
    pub fn table_name(self, table: u32) -> String {
        if self == Self::LegacyOne { "sbtest".to_owned() } else { format!("sbtest{table}") }
    }
}

/// Ids are signed 32-bit integers.
const ROWS_MAX: u32 = i32::MAX as u32;
/// More sessions than any server loads faster with.
const THREADS_MAX: u32 = 1024;

/// How rows reach the server.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LoadMethod {
    /// By LOAD DATA LOCAL INFILE or COPY where the server allows it, else by INSERT.
    #[default]
    Auto,
    /// By INSERT of many rows.
    Insert,
    /// By LOAD DATA LOCAL INFILE or COPY; a server that does not allow it is an error.
    Infile,
}

server_spec! {
    /// Which tables to create, and how to fill them.
    pub struct PrepareSpec {
        /// How many tables: `sbtest1` and so on.
        pub tables: u32,
        /// Number of the first one: 1, or 0 for those of the older `bulk_insert`.
        #[serde(default = "one")]
        pub first_table: u32,
        /// Their names and columns.
        #[serde(default)]
        pub layout: Layout,
        /// Rows of each table; 0 leaves them empty.
        pub table_size: u32,
        /// What `k` is drawn from.
        #[serde(default)]
        pub distribution: Distribution,
        /// Seed of all rows.
        pub seed: u64,
        /// Sessions that load at the same time; 0 for one a core. The rows do not depend on it.
        #[serde(default)]
        pub threads: u32,
        /// How the rows are loaded; they do not depend on it.
        #[serde(default)]
        pub load: LoadMethod,
        /// Whether the server can number further rows.
        #[serde(default = "yes")]
        pub auto_inc: bool,
        /// A secondary index on `id` in place of the primary key.
        #[serde(default)]
        pub secondary: bool,
        /// Whether `k` gets an index, after the rows are in.
        #[serde(default = "yes")]
        pub create_secondary: bool,
        /// Storage engine.
        #[serde(default = "innodb")]
        pub engine: String,
        /// What [`Layout::Legacy`] promises the storage engine as the most rows of a table.
        #[serde(default = "a_million")]
        pub max_rows: u64,
        /// SQL that follows the storage engine, as the user wrote it: further options of the table.
        #[serde(default)]
        pub table_options: String,
        /// How long the server may say nothing, s; 0 for no limit. It holds for all statements but those
        /// that work on a whole table: `CREATE INDEX`, and the reads of `prewarm`.
        #[serde(default = "silence_max_s")]
        pub answer_timeout_s: f64,
    }
}

server_spec! {
    /// Which tables to drop.
    pub struct CleanupSpec {
        /// How many tables: `sbtest1` and so on.
        pub tables: u32,
        /// Number of the first one: 1, or 0 for those of the older `bulk_insert`.
        #[serde(default = "one")]
        pub first_table: u32,
        /// Their names.
        #[serde(default)]
        pub layout: Layout,
        /// How long the server may say nothing, s; 0 for no limit.
        #[serde(default = "silence_max_s")]
        pub answer_timeout_s: f64,
    }
}

const fn silence_max_s() -> f64 {
    SILENCE_MAX.as_secs_f64()
}

fn limit_of(seconds: f64) -> Option<Duration> {
    (seconds > 0.0).then(|| Duration::from_secs_f64(seconds))
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
    /// All that is wrong with this specification, one sentence each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = common_mistakes(
            (self.tables, self.first_table, self.layout),
            (&self.endpoint, &self.tls, self.answer_timeout_s),
        );
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
        // The name travels inside a comment, where it cannot be quoted.
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

    /// Opens session `number` of a load.
    pub(super) fn connect(
        &self,
        number: u32,
        timeouts: &Timeouts,
    ) -> Result<Box<dyn Target>, Failure> {
        let endpoint = self.endpoint.of(number);
        connect(self.driver, &endpoint, &self.login(), &self.transport()?, timeouts)
    }

    /// How long the server may say nothing; None for no limit.
    pub(super) fn silence(&self) -> Option<Duration> {
        limit_of(self.answer_timeout_s)
    }

    /// Sessions that may work at the same time.
    #[must_use]
    pub fn sessions(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            asked => asked as usize,
        }
    }

    /// Rows of all tables.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::from(self.tables) * u64::from(self.table_size)
    }
}

impl CleanupSpec {
    /// All that is wrong with this specification, one sentence each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        common_mistakes(
            (self.tables, self.first_table, self.layout),
            (&self.endpoint, &self.tls, self.answer_timeout_s),
        )
    }

    /// Opens the session.
    pub(super) fn connect(
        &self,
        number: u32,
        timeouts: &Timeouts,
    ) -> Result<Box<dyn Target>, Failure> {
        let endpoint = self.endpoint.of(number);
        connect(self.driver, &endpoint, &self.login(), &self.transport()?, timeouts)
    }

    /// How long the server may say nothing; None for no limit.
    pub(super) fn silence(&self) -> Option<Duration> {
        limit_of(self.answer_timeout_s)
    }
}

/// What is wrong with what both specifications say of the tables and of the server.
fn common_mistakes(
    (tables, first_table, layout): (u32, u32, Layout),
    (endpoint, tls, answer_timeout_s): (&Endpoints, &TlsSpec, f64),
) -> Vec<String> {
    let mut mistakes = tls.mistakes();
    if !(0.0..=1e8).contains(&answer_timeout_s) {
        mistakes.push("answer_timeout_s must be 0 (no limit) or more seconds".to_owned());
    }
    if tables == 0 {
        mistakes.push("tables must be at least 1, not 0".to_owned());
    }
    if endpoint.is_empty() {
        mistakes.push("endpoint must name at least one server".to_owned());
    }
    if layout == Layout::LegacyOne && tables > 1 {
        mistakes.push(format!("tables must be 1 where there is only sbtest, not {tables}"));
    }
    if first_table > 1 {
        mistakes.push(format!("first_table must be 0 or 1, not {first_table}"));
    }
    mistakes
}
