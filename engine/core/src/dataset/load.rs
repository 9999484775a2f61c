//! Creates, fills and indexes tables with several sessions at once.
//!
//! In each of the three stages, sessions take the next table or chunk until all are done, then wait
//! for each other. A single session finishes each table with its index before it begins the next,
//! as sysbench does.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Barrier, Mutex};
use std::time::Instant;

use super::chunk_queue::{ChunkQueue, CurrentTable};
use super::infile::{statement, write_part};
use super::insert::inserts;
use super::interrupt::Sessions;
use super::rows::Chunk;
use super::target::{Connect, Target};
use super::{LoadMethod, LoadProgress, PrepareSpec, Stage, schema};
use crate::error::{ErrorCode, Failure};
use crate::random::Sampler;

/// Message of a session: a statement ended.
struct Finished {
    stage: Stage,
    table: u32,
    rows: u64,
}

/// Session of the load with its own table.
struct Session {
    target: Box<dyn Target>,
    by_file: bool,
    own: CurrentTable,
}

/// State shared by the sessions of a load.
struct Load<'a> {
    spec: &'a PrepareSpec,
    k: Sampler,
    sessions: Sessions<'a>,
    failure: Mutex<Option<Failure>>,
    /// Set on a failure or a stop; no further task is begun.
    over: AtomicBool,
    tables_taken: [AtomicU32; Stage::ALL.len()],
    chunks: ChunkQueue,
    begin: Instant,
    times: Mutex<StageTimes>,
}

/// Duration of each stage, s.
#[derive(Default)]
struct StageTimes {
    took_s: [f64; Stage::ALL.len()],
    /// End of the last stage since the load began, s.
    until_s: f64,
}

/// Loads the tables of `spec`; returns the number of rows and the duration of each stage, s.
pub(super) fn load(
    spec: &PrepareSpec,
    connect: &Connect<'_>,
    on_progress: &mut dyn FnMut(LoadProgress),
    stop: &AtomicBool,
) -> Result<(u64, [f64; Stage::ALL.len()]), Failure> {
    let load = Load {
        spec,
        k: spec.distribution.over(1, spec.table_size),
        sessions: Sessions::new(stop, spec.silence()),
        failure: Mutex::new(None),
        over: AtomicBool::new(false),
        tables_taken: Default::default(),
        chunks: ChunkQueue::new(spec.tables, Chunk::count(spec.table_size)),
        begin: Instant::now(),
        times: Mutex::default(),
    };
    let count = load.sessions_count();
    let barrier = Barrier::new(count);
    let (sender, arriving) = channel();
    let rows_total = spec.rows();
    let mut rows_done = 0;
    std::thread::scope(|scope| {
        for news in vec![sender; count] {
            let (load, barrier) = (&load, &barrier);
            scope.spawn(move || load.work(connect, barrier, &news));
        }
        load.sessions.receive(&arriving, connect, |Finished { stage, table, rows }| {
            rows_done += rows;
            on_progress(LoadProgress { table, rows_done, rows_total, stage });
        });
    });
    let took_s = load.times.lock().expect("no session panics with the lock").took_s;
    load.finish(rows_done).map(|rows| (rows, took_s))
}

impl Load<'_> {
    fn sessions_count(&self) -> usize {
        let chunks = u64::from(Chunk::count(self.spec.table_size)).max(1);
        let tasks_most = u64::from(self.spec.tables) * chunks;
        self.spec.sessions().min(usize::try_from(tasks_most).unwrap_or(usize::MAX))
    }

    /// Runs a session from login to end.
    fn work(&self, connect: &Connect<'_>, barrier: &Barrier, news: &Sender<Finished>) {
        let mut session = self.open(connect).map_err(|failure| self.fail(failure)).ok();
        let tables = self.spec.tables;
        let first_round = if self.sessions_count() == 1 { 1 } else { tables };
        for until in first_round..=tables {
            for stage in Stage::ALL {
                if let Some(session) = &mut session {
                    self.work_on(stage, until, session, news);
                }
                if barrier.wait().is_leader() {
                    self.note_end_of(stage);
                }
            }
        }
    }

    fn note_end_of(&self, stage: Stage) {
        let now_s = self.begin.elapsed().as_secs_f64();
        let mut times = self.times.lock().expect("no session panics with the lock");
        times.took_s[stage as usize] += now_s - times.until_s;
        times.until_s = now_s;
    }

    fn open(&self, connect: &Connect<'_>) -> Result<Session, Failure> {
        let mut target = self.sessions.connect(connect)?;
        let by_file = self.spec.table_size > 0
            && match self.spec.load {
                LoadMethod::Insert => false,
                LoadMethod::Infile => true,
                // A server without the variable has no such statement either.
                LoadMethod::Auto => target.takes_files().unwrap_or(false),
            };
        Ok(Session { target, by_file, own: None })
    }

    /// Works through the remaining tasks of a stage on the tables below `until`, counted from 0.
    fn work_on(&self, stage: Stage, until: u32, session: &mut Session, news: &Sender<Finished>) {
        // Building the index of a large table takes long, and the server is silent meanwhile.
        let silence = if stage == Stage::Index { None } else { self.spec.silence() };
        session.target.limit_silence(silence);
        while let Some((table, chunk)) = self.next_task(stage, until, &mut session.own) {
            if self.sessions.is_stopped() {
                self.fail(Failure::new(stage.name(), "stopped"));
            }
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            if let Err(failure) = self.perform(stage, table, chunk, session, news) {
                self.fail(self.sessions.explained(Failure { stage: stage.name(), ..failure }));
            }
        }
    }

    /// Takes the next task: a table, and a chunk for the insert stage.
    fn next_task(&self, stage: Stage, until: u32, own: &mut CurrentTable) -> Option<(u32, u32)> {
        if stage == Stage::Insert {
            return self.chunks.next(until, own);
        }
        let is_wanted = stage == Stage::Create || self.spec.create_secondary;
        let next = |table| (is_wanted && table < until).then_some(table + 1);
        let taken = &self.tables_taken[stage as usize];
        let table = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some((table, 0))
    }

    fn perform(
        &self,
        stage: Stage,
        table: u32,
        chunk: u32,
        session: &mut Session,
        news: &Sender<Finished>,
    ) -> Result<(), Failure> {
        let table = self.spec.first_table + table;
        // The receiver outlives every session.
        let tell = |rows| news.send(Finished { stage, table, rows }).expect("somebody listens");
        let target = &mut *session.target;
        match stage {
            Stage::Create => {
                let statements = schema::create_table(self.spec, table);
                statements.iter().try_for_each(|sql| target.execute(sql))?;
            }
            Stage::Index => target.execute(&schema::create_index(self.spec.layout, table))?,
            Stage::Insert => {
                let PrepareSpec { layout, table_size, .. } = *self.spec;
                let chunk = Chunk::new(layout, table, chunk, table_size);
                return self.fill(&chunk, session, &tell);
            }
        }
        tell(0);
        Ok(())
    }

    /// Loads a chunk by file, or by INSERT if the server refuses files.
    fn fill(
        &self,
        chunk: &Chunk,
        session: &mut Session,
        tell: &dyn Fn(u64),
    ) -> Result<(), Failure> {
        if session.by_file {
            let loaded = self.stream(chunk, &mut *session.target, tell);
            let Err(failure) = &loaded else { return loaded };
            if self.spec.load == LoadMethod::Infile || !is_file_refused(failure) {
                return loaded;
            }
            session.by_file = false;
        }
        inserts(chunk, self.spec.seed, &self.k, |insert| {
            self.check_stop()?;
            let named = |failure| named(failure, "INSERT", chunk, &insert.ids);
            session.target.execute(insert.sql).map_err(named)?;
            tell(insert.ids.clone().count() as u64);
            Ok(())
        })
    }

    /// Loads a chunk as a file; a stop ends the file early.
    fn stream(
        &self,
        chunk: &Chunk,
        target: &mut dyn Target,
        tell: &dyn Fn(u64),
    ) -> Result<(), Failure> {
        let mut rows = chunk.rows(self.spec.seed, &self.k);
        let mut sent = 0;
        let mut next = |out: &mut Vec<u8>| {
            let part = if self.check_stop().is_ok() { write_part(&mut rows, out) } else { 0 };
            sent += part;
            part
        };
        let (verb, sql) = statement(self.spec.driver, chunk);
        let loaded = target.load(&sql, &mut next);
        loaded.map_err(|failure| named(failure, verb, chunk, &chunk.ids))?;
        tell(sent);
        self.check_stop()
    }

    fn check_stop(&self) -> Result<(), Failure> {
        let is_over = self.sessions.is_stopped() || self.over.load(Ordering::Relaxed);
        if is_over { Err(Failure::new(Stage::Insert.name(), "stopped")) } else { Ok(()) }
    }

    /// Keeps the first failure; later failures are its consequences.
    fn fail(&self, failure: Failure) {
        let mut first = self.failure.lock().expect("no session panics with the lock");
        first.get_or_insert(failure);
        self.over.store(true, Ordering::Relaxed);
    }

    fn finish(self, rows_done: u64) -> Result<u64, Failure> {
        let failure = self.failure.into_inner().expect("no session panics with the lock");
        match failure {
            None => Ok(rows_done),
            Some(failure) => Err(explained(failure, rows_done, self.spec.rows())),
        }
    }
}

/// True if the server, or a proxy in front of it, refuses files despite its variable.
fn is_file_refused(failure: &Failure) -> bool {
    const NOT_ALLOWED: u16 = 1148;
    const LOCAL_FILES_DISABLED: u16 = 3948;
    const LOCAL_FILES_DISABLED_IN_MARIADB: u16 = 4166;
    let codes = [NOT_ALLOWED, LOCAL_FILES_DISABLED, LOCAL_FILES_DISABLED_IN_MARIADB];
    failure.code.is_some_and(|code| codes.contains(&code))
}

/// Replaces the text of a failed INSERT, half a megabyte, by its table and rows.
fn named(failure: Failure, verb: &str, chunk: &Chunk, ids: &RangeInclusive<u32>) -> Failure {
    let (table, first, last) = (chunk.table_name(), ids.start(), ids.end());
    let statement = format!("{verb} INTO {table}, rows {first} to {last}");
    Failure { statement, ..failure }
}

/// Adds a remedy and the number of loaded rows to the failure.
fn explained(failure: Failure, rows_done: u64, rows_total: u64) -> Failure {
    const TABLE_EXISTS: [ErrorCode; 2] = [ErrorCode::Number(1050), ErrorCode::State(*b"42P07")];
    let mut message = failure.message.clone();
    if failure.error_code().is_some_and(|code| TABLE_EXISTS.contains(&code)) {
        message += "; run cleanup first";
    }
    if failure.stage == Stage::Insert.name() {
        message += &format!("; {rows_done} of {rows_total} rows were loaded");
    }
    if is_disk_full(&failure) {
        message += "; free disk space or ask for fewer rows, then run cleanup and prepare again";
    }
    Failure { message, ..failure }
}

/// Tests for a full disk: the server's own codes, or the system's error 28 quoted in another
/// message.
fn is_disk_full(failure: &Failure) -> bool {
    const DISK_FULL: u16 = 1021;
    const RECORD_FILE_FULL: u16 = 1114;
    const DISK_FULL_IN_POSTGRES: &str = "53100";
    matches!(failure.code, Some(DISK_FULL | RECORD_FILE_FULL))
        || failure.sqlstate == DISK_FULL_IN_POSTGRES
        || ["error 28 ", "Errcode: 28", "errno: 28"].iter().any(|it| failure.message.contains(it))
}
