//! Reads tables and their index into the server's memory, as sysbench's `prewarm` does.
//!
//! The statements are sysbench's: table statistics, a full read in key order, and a full read
//! comparing every `k` as text. On MySQL the last two collect rows in temporary tables, hence the
//! two variables. sysbench has `prewarm` for MySQL only; PostgreSQL gets equivalent statements in
//! its own SQL.

use serde::Serialize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use super::interrupt::Sessions;
use super::target::{Connect, Target};
use super::{PrepareSpec, Report, refuse};
use crate::driver::Driver;
use crate::error::Failure;

const STAGE: &str = "prewarm";
const BEFORE: [&str; 2] =
    ["SET tmp_table_size=2*1024*1024*1024", "SET max_heap_table_size=2*1024*1024*1024"];

/// Progress of a prewarm: a table is about to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PrewarmProgress {
    /// Number of the table.
    pub table: u32,
    /// `prewarm`
    pub stage: &'static str,
}

/// Reads the tables created by [`super::prepare`] from the same `spec`, one session per table at a
/// time; reports each table as it begins.
///
/// `stop` is checked between statements, and long statements are ended at the server.
///
/// # Errors
/// The first failure, at stage `spec`, `connect` or `prewarm`.
pub fn prewarm(
    spec: &PrepareSpec,
    on_progress: &mut dyn FnMut(PrewarmProgress),
    stop: &AtomicBool,
) -> Result<Report, Failure> {
    prewarm_through(&|number, timeouts| spec.connect(number, timeouts), spec, on_progress, stop)
}

pub(super) fn prewarm_through(
    connect: &Connect<'_>,
    spec: &PrepareSpec,
    on_progress: &mut dyn FnMut(PrewarmProgress),
    stop: &AtomicBool,
) -> Result<Report, Failure> {
    let begin = Instant::now();
    refuse(&spec.mistakes())?;
    let (tables_taken, failure) = (AtomicU32::new(0), Mutex::new(None));
    let (sessions, over) = (Sessions::new(stop, spec.silence()), AtomicBool::new(false));
    let (sender, arriving) = channel();
    std::thread::scope(|scope| {
        for news in vec![sender; spec.sessions().min(spec.tables as usize)] {
            let (tables_taken, failure) = (&tables_taken, &failure);
            let (sessions, over) = (&sessions, &over);
            let is_over = || sessions.is_stopped() || over.load(Ordering::Relaxed);
            let open = || sessions.connect(connect);
            scope.spawn(move || {
                if let Err(error) = read_tables(&open, spec, tables_taken, &is_over, &news) {
                    over.store(true, Ordering::Relaxed);
                    let mut first = failure.lock().expect("no session panics with the lock");
                    first.get_or_insert(sessions.explained(error));
                }
            });
        }
        let tell = |table| on_progress(PrewarmProgress { table, stage: STAGE });
        sessions.receive(&arriving, connect, tell);
    });
    let failure = failure.into_inner().expect("no session panics with the lock");
    failure.map_or(Ok(()), Err)?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Report { tables: spec.tables, rows: 0, seconds, stages: None })
}

/// Runs a session from login to end.
fn read_tables(
    open: &(dyn Fn() -> Result<Box<dyn Target>, Failure> + Sync),
    spec: &PrepareSpec,
    tables_taken: &AtomicU32,
    is_over: &dyn Fn() -> bool,
    news: &Sender<u32>,
) -> Result<(), Failure> {
    let staged = |failure| Failure { stage: STAGE, ..failure };
    let mut session = open()?;
    if spec.driver == Driver::Mysql {
        BEFORE.iter().try_for_each(|sql| session.execute(sql)).map_err(staged)?;
    }
    loop {
        let taken = tables_taken.fetch_add(1, Ordering::Relaxed);
        if taken >= spec.tables {
            return Ok(());
        }
        let table = spec.first_table + taken;
        for (number, sql) in statements(spec, table).iter().enumerate() {
            if is_over() {
                return Err(Failure::new(STAGE, "stopped"));
            }
            if number == 0 {
                // The receiver outlives every session.
                news.send(table).expect("somebody listens");
            }
            // A full read of a large table takes long and returns no row before its end.
            session.limit_silence(if number == 0 { spec.silence() } else { None });
            session.execute(sql).map_err(staged)?;
        }
    }
}

fn statements(spec: &PrepareSpec, table: u32) -> [String; 3] {
    let (name, rows) = (spec.layout.table_name(table), spec.table_size);
    if spec.driver == Driver::Pgsql {
        return [
            format!("ANALYZE {name}"),
            format!("SELECT AVG(id) FROM (SELECT * FROM {name} ORDER BY id LIMIT {rows}) t"),
            format!(
                "SELECT COUNT(*) FROM (SELECT * FROM {name} WHERE k::text LIKE '%0%' LIMIT {rows}) t"
            ),
        ];
    }
    [
        format!("ANALYZE TABLE {name}"),
        format!("SELECT AVG(id) FROM (SELECT * FROM {name} FORCE KEY (PRIMARY) LIMIT {rows}) t"),
        format!("SELECT COUNT(*) FROM (SELECT * FROM {name} WHERE k LIKE '%0%' LIMIT {rows}) t"),
    ]
}
