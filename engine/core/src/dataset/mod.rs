//! sysbench's tables: create, fill in parallel, index, prewarm, drop.
//!
//! A seed gives the same rows on every machine and with any number of sessions, so two systems get
//! equal data and a dataset can be made again years later.

mod chunk_queue;
mod infile;
mod insert;
mod interrupt;
mod load;
mod prewarm;
mod rows;
mod schema;
mod spec;
mod target;

pub use prewarm::{PrewarmProgress, prewarm};
pub use spec::{CleanupSpec, Layout, LoadMethod, PrepareSpec};

use serde::Serialize;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Instant;

use crate::error::Failure;
use interrupt::Sessions;
use target::Connect;

/// Stage of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// `CREATE TABLE`
    Create,
    /// `INSERT`, or `LOAD DATA`
    Insert,
    /// `CREATE INDEX`
    Index,
}

impl Stage {
    /// All stages, in their order.
    pub const ALL: [Self; 3] = [Self::Create, Self::Insert, Self::Index];

    /// Word for it in progress reports and failures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Insert => "insert",
            Self::Index => "index",
        }
    }
}

/// Progress of a load, reported after each statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoadProgress {
    /// Number of the table the statement worked on.
    pub table: u32,
    /// Rows of all tables so far.
    pub rows_done: u64,
    /// Rows of all tables in the end.
    pub rows_total: u64,
    /// Stage of the statement.
    pub stage: Stage,
}

/// Result of a load, a prewarm or a cleanup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Tables created, read or dropped.
    pub tables: u32,
    /// Rows inserted.
    pub rows: u64,
    /// Time taken, s.
    pub seconds: f64,
    /// Duration of each stage of a load, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<StageSeconds>,
}

/// Durations of the stages, s. A stage begins when the last session has ended the previous stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StageSeconds {
    /// Connecting, and `CREATE TABLE`.
    pub create: f64,
    /// The rows.
    pub insert: f64,
    /// `CREATE INDEX`
    pub index: f64,
}

/// Creates and fills the tables of `spec`; `on_progress` runs in the caller's thread after each
/// statement.
///
/// `stop` is checked between statements, and long statements are ended at the server. Tables
/// already begun stay as they are.
///
/// # Errors
/// The first failure, at stage `spec`, `connect`, `create`, `insert` or `index`; nothing is
/// removed.
pub fn prepare(
    spec: &PrepareSpec,
    on_progress: &mut dyn FnMut(LoadProgress),
    stop: &AtomicBool,
) -> Result<Report, Failure> {
    prepare_through(&|number, timeouts| spec.connect(number, timeouts), spec, on_progress, stop)
}

fn prepare_through(
    connect: &Connect<'_>,
    spec: &PrepareSpec,
    on_progress: &mut dyn FnMut(LoadProgress),
    stop: &AtomicBool,
) -> Result<Report, Failure> {
    let begin = Instant::now();
    refuse(&spec.mistakes())?;
    let (rows, [create, insert, index]) = load::load(spec, connect, on_progress, stop)?;
    let stages = Some(StageSeconds { create, insert, index });
    Ok(Report { tables: spec.tables, rows, seconds: begin.elapsed().as_secs_f64(), stages })
}

/// Drops the tables of `spec` that exist.
///
/// `stop` is checked between statements, and long statements are ended at the server.
///
/// # Errors
/// The first failure, at stage `spec`, `connect` or `drop`.
pub fn cleanup(spec: &CleanupSpec, stop: &AtomicBool) -> Result<Report, Failure> {
    cleanup_through(&|number, timeouts| spec.connect(number, timeouts), spec, stop)
}

fn cleanup_through(
    connect: &Connect<'_>,
    spec: &CleanupSpec,
    stop: &AtomicBool,
) -> Result<Report, Failure> {
    let begin = Instant::now();
    refuse(&spec.mistakes())?;
    let sessions = Sessions::new(stop, spec.silence());
    let (working, arriving) = channel::<()>();
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let _working = working;
            drop_tables(&sessions, connect, spec)
        });
        sessions.receive(&arriving, connect, drop);
        work.join().expect("the session does not panic")
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Report { tables: spec.tables, rows: 0, seconds, stages: None })
}

fn drop_tables(
    sessions: &Sessions<'_>,
    connect: &Connect<'_>,
    spec: &CleanupSpec,
) -> Result<(), Failure> {
    const STAGE: &str = "drop";
    let mut target = sessions.connect(connect)?;
    for table in (spec.first_table..).take(spec.tables as usize) {
        if sessions.is_stopped() {
            return Err(Failure::new(STAGE, "stopped"));
        }
        target
            .execute(&schema::drop_table(spec.layout, table))
            .map_err(|failure| sessions.explained(Failure { stage: STAGE, ..failure }))?;
    }
    Ok(())
}

fn refuse(mistakes: &[String]) -> Result<(), Failure> {
    if mistakes.is_empty() { Ok(()) } else { Err(Failure::new("spec", mistakes.join("\n"))) }
}

#[cfg(test)]
mod tests;
