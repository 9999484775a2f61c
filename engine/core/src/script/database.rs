//! A script's connections: its requests as packets, the server's answers as the fields of its task.
//!
//! A connection is served here, by a blocking session, unless it was handed to the engine's loop,
//! which sends the same packets and fills in the same answers.

use super::connections::{Connections, Database, Open, Prepared, place};
use super::log::{Log, lines_of_refusal, lines_of_unreachable, named};
use super::protocol::{self, ScriptSession};
use super::results::{ResultSpan, columns_of_postgres};
use super::task::{Happened, Happening, Op, SqlConnection, SqlResult, Task};
use crate::driver::Driver;
use crate::error::{CONNECTION_LOST, ErrorCode, Failure};
use crate::record::recorder::Answer;
use crate::session::{Endpoint, Refusal};
use crate::time::clock::Clock;
use crate::workload::event::Reply;
use dbdyno_wire::kept::Kept;
use dbdyno_wire::mysql::command;
use dbdyno_wire::mysql::scanner::{ServerError, Summary};
use std::collections::VecDeque;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Error of a statement the server cannot prepare: it is then sent as text.
const NOT_PREPARABLE: u16 = 1295;
/// Delay until a held reply notices the end of the run.
const LOOK: Duration = Duration::from_millis(50);
/// Delay between two attempts to reconnect.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Value of a task's `phase` while events run.
const EVENTS: u32 = 1;
/// The same while `thread_done` runs.
pub(super) const DONE: u32 = 2;

const IGNORABLE: u32 = 1;
const FATAL: u32 = 2;

/// A script's thread as the sender of requests. The task is the first field: its address is also
/// the caller's.
#[repr(C)]
pub(super) struct Caller {
    pub(super) task: Task,
    pub(super) connections: Connections,
    pub(super) log: Arc<Log>,
    /// The run's clock; absent before the run.
    pub(super) clock: Option<Clock>,
    /// Delay of a reply; zero before the run.
    pub(super) round_trip: Duration,
    /// True for a thread of a run, which collects its actions; in a command they would pile up.
    pub(super) is_run: bool,
    /// Actions outside the loop, to be recorded.
    pub(super) happened: VecDeque<Happened>,
}

impl Caller {
    /// Time on the run's clock, ns; 0 before the run.
    fn now_ns(&self) -> u64 {
        self.clock.map_or(0, |clock| clock.now_ns())
    }

    /// Delays a reply just received, unless the run is over.
    fn hold_reply(&self) {
        let due = Instant::now() + self.round_trip;
        while !self.connections.database.is_over.load(Ordering::Relaxed) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(LOOK));
        }
    }

    /// Notes an action outside the loop.
    fn note(&mut self, asked_ns: u64, done_ns: u64, what: Happening) {
        if self.is_run {
            self.happened.push_back(Happened { asked_ns, done_ns, what });
        }
    }

    /// Notes a count of the script; counts of a counter are added up, as their number has no limit.
    pub(super) fn note_count(&mut self, counter: u32, by: u64) {
        let noted = self.happened.iter_mut().rev().find_map(|one| match &mut one.what {
            Happening::Counted(same, sum) if *same == counter => Some(sum),
            _ => None,
        });
        if let Some(sum) = noted {
            *sum += by;
        } else {
            let now_ns = self.now_ns();
            self.note(now_ns, now_ns, Happening::Counted(counter, by));
        }
    }
}

/// Carries out the script's request, and waits for the answer.
pub(super) fn serve(host: &mut Caller) {
    let done = match host.task.op() {
        Some(Op::Connect) => connect(host),
        Some(Op::Reconnect) => reconnect(host),
        Some(Op::Close) => {
            close_statement(host);
            true
        }
        Some(Op::Prepare) if !host.connections.database.spec.prepared => {
            answered(host, Reply::Text, &Summary::default(), 0);
            true
        }
        Some(Op::Query | Op::Prepare | Op::Execute) => exchange(host),
        Some(Op::NextResult) => {
            next_result(host);
            true
        }
        _ => false,
    };
    host.task.failed = u32::from(!done);
}

/// The connection of the script's request.
pub(super) fn connection(host: &Caller) -> &'static mut SqlConnection {
    // SAFETY: Lua holds the structures while it waits for the answer, and reads them only
    // afterwards.
    unsafe {
        match host.task.op() {
            Some(Op::Execute | Op::Close) => &mut *(*host.task.statement).connection,
            _ => &mut *host.task.connection,
        }
    }
}

fn connect(host: &mut Caller) -> bool {
    if host.task.looped != 0 && host.task.phase == EVENTS {
        // Served here, it would keep all other threads waiting.
        host.log.line(0, "an event cannot open a second connection where each thread has one:");
        host.log.line(0, "disconnect the first before, or open both in thread_init");
        return false;
    }
    let database = Arc::clone(&host.connections.database);
    let turn = database.next.fetch_add(1, Ordering::Relaxed);
    let endpoint = database.spec.endpoint.of(turn);
    let mut deprecate_eof = true;
    let session = if database.spec.dry_run {
        None
    } else {
        match database.open(&endpoint) {
            Ok(session) => {
                deprecate_eof = session.deprecate_eof();
                Some(session)
            }
            Err(failure) => {
                tell_unreachable(host, &endpoint, &failure);
                return false;
            }
        }
    };
    let opened = Open {
        endpoint,
        session,
        statements: Vec::new(),
        closed: Vec::new(),
        unanswered: Vec::new(),
        reply: Kept::default(),
        row: (0, 0),
        result: ResultSpan::default(),
        more: 0,
        deprecate_eof,
        sql_state: CString::default(),
        message: CString::default(),
    };
    let Connections { open, free, shown, .. } = &mut host.connections;
    let number = if let Some(number) = free.pop() {
        open[place(number)] = opened;
        number
    } else {
        open.push(opened);
        let number = u32::try_from(open.len()).expect("connections are counted in 32 bits");
        shown.push(Box::new(SqlResult { number, ..SqlResult::default() }));
        number
    };
    let asked = connection(host);
    (asked.number, asked.is_open) = (number, 1);
    asked.session += 1;
    true
}

fn tell_unreachable(host: &Caller, endpoint: &Endpoint, failure: &Failure) {
    let Database { spec, is_over, .. } = &*host.connections.database;
    if is_over.load(Ordering::Relaxed) {
        return; // given up with the run, not unreachable
    }
    for line in lines_of_unreachable(spec.driver, endpoint, failure) {
        host.log.line(0, &line);
    }
}

fn reconnect(host: &mut Caller) -> bool {
    let number = connection(host).number;
    if number == 0 {
        return connect(host); // it has given its place in the loop to another
    }
    if host.connections.database.spec.dry_run {
        connection(host).is_open = 1;
        return true;
    }
    host.connections.close(number);
    let endpoint = host.connections.open[place(number)].endpoint.clone();
    let asked_ns = host.now_ns();
    match host.connections.database.open(&endpoint) {
        Ok(session) => {
            host.hold_reply();
            reopened(host, number, session, asked_ns);
            true
        }
        Err(failure) => {
            tell_unreachable(host, &endpoint, &failure);
            false
        }
    }
}

fn reopened(host: &mut Caller, number: u32, session: ScriptSession, asked_ns: u64) {
    let now_ns = host.now_ns();
    host.connections.renewed(number, session.deprecate_eof());
    let asked = connection(host);
    asked.is_open = 1;
    asked.session += 1;
    host.connections.open[place(number)].session = Some(session);
    host.note(asked_ns, now_ns, Happening::Reconnected);
}

/// Sets the error for a closed connection.
pub(super) fn is_closed(host: &Caller) {
    host.log.line(1, "attempt to use an already closed connection");
    let asked = connection(host);
    (asked.error, asked.sql_state) = (FATAL, std::ptr::null());
}

/// Sends a request over the blocking session, and takes the answer.
fn exchange(host: &mut Caller) -> bool {
    let number = place(connection(host).number);
    if host.connections.database.spec.dry_run {
        return dry(host, number);
    }
    if host.connections.open[number].session.is_none() {
        is_closed(host);
        return false;
    }
    let mut request = std::mem::take(&mut host.connections.request);
    request.clear();
    let reply = write_request(host, &mut request);
    let asked_ns = host.now_ns();
    let open = &mut host.connections.open[number];
    open.reply.clear();
    let outcome = match &mut open.session {
        Some(session) => session.exchange(&request, reply, &mut open.reply),
        None => Err(Refusal::Lost("the connection is closed".to_owned())),
    };
    host.connections.request = request;
    host.hold_reply();
    let done_ns = host.now_ns();
    match outcome {
        Ok((summary, id)) => {
            if reply != Reply::Prepare {
                let answer = Answer {
                    columns: summary.columns,
                    affected_rows: summary.affected_rows,
                    bytes: summary.bytes,
                };
                let what = Happening::Answered(answer, reply == Reply::Binary);
                host.note(asked_ns, done_ns, what);
            }
            answered(host, reply, &summary, id);
            true
        }
        Err(Refusal::Server(error)) => {
            roll_back(host, number, &error);
            refused_blocking(host, asked_ns, &error)
        }
        Err(Refusal::Lost(why)) => {
            // The rest of its answer would be read as the next answer.
            host.connections.open[number].session = None;
            let error = lost(host, Some(&why));
            refused_blocking(host, asked_ns, &error)
        }
    }
}

/// The error of a lost connection, as a script sees it.
pub(super) fn lost(host: &Caller, why: Option<&str>) -> ServerError {
    let words = host.connections.database.spec.driver.words_of_loss();
    let message = why.map_or_else(|| words.to_owned(), |why| format!("{words}: {why}"));
    ServerError::new(CONNECTION_LOST, *b"HY000", message)
}

/// Sends a ROLLBACK on PostgreSQL, as sysbench does: after an ignored error it accepts no other
/// request.
fn roll_back(host: &mut Caller, number: usize, error: &ServerError) {
    let is_ignored = host.connections.database.spec.ignore_errors.contains(ErrorCode::of(error));
    if let Some(ScriptSession::Pgsql(session)) = &mut host.connections.open[number].session
        && is_ignored
        && !ErrorCode::of(error).is_loss()
    {
        // A session broken here reports it at the next request.
        drop(session.query("ROLLBACK"));
        host.hold_reply();
    }
}

fn dry(host: &mut Caller, number: usize) -> bool {
    if host.task.op() == Some(Op::Prepare) {
        let sql = host.task.text().to_vec();
        let open = &mut host.connections.open[number];
        let id = open.next_statement();
        open.keep_statement(Prepared { sql, id: None });
        is_prepared(host, id);
    } else {
        let now_ns = host.now_ns();
        let what = Happening::Answered(Answer::default(), false);
        host.note(now_ns, now_ns, what);
    }
    host.task.columns = 0;
    connection(host).error = 0;
    true
}

/// Appends the packets of the script's request; returns the shape of the reply.
pub(super) fn write_request(host: &mut Caller, out: &mut Vec<u8>) -> Reply {
    let number = place(connection(host).number);
    out.append(&mut host.connections.open[number].unanswered);
    let driver = host.connections.database.spec.driver;
    match host.task.op() {
        Some(Op::Prepare) => {
            let id = host.connections.open[number].next_statement();
            // SAFETY: Lua holds the statement while it waits for the answer.
            let types = unsafe { &*host.task.statement }.types();
            protocol::write_preparation(driver, out, id, host.task.text(), &types);
            Reply::Prepare
        }
        Some(Op::Execute) => {
            // SAFETY: Lua holds the statement while it waits for the answer.
            let statement = unsafe { &*host.task.statement };
            let open = &host.connections.open[number];
            let Some(prepared) = open.statements.get(statement.id as usize) else {
                protocol::write_text(driver, out, b"");
                return Reply::Text;
            };
            if let Some(id) = prepared.id {
                protocol::write_execution(driver, out, id, statement.values());
                Reply::Binary
            } else {
                let sql = protocol::with_literals(&prepared.sql, statement.values());
                protocol::write_text(driver, out, &sql);
                Reply::Text
            }
        }
        _ => {
            protocol::write_text(driver, out, host.task.text());
            Reply::Text
        }
    }
}

/// Closes a statement, without an answer from the server. PostgreSQL's statements, which sysbench
/// leaves to the end of the session, keep their numbers.
fn close_statement(host: &mut Caller) {
    // SAFETY: Lua holds the statement during the call.
    let id = unsafe { &*host.task.statement }.id as usize;
    let number = place(connection(host).number);
    let Connections { open, database, .. } = &mut host.connections;
    let Some(open) = open.get_mut(number) else { return };
    let Some(one) = open.statements.get_mut(id) else { return };
    let known_as = std::mem::replace(one, Prepared { sql: Vec::new(), id: None }).id;
    if database.spec.driver == Driver::Pgsql {
        return;
    }
    open.closed.push(u32::try_from(id).expect("statements are counted in 32 bits"));
    let Some(known_as) = known_as else { return };
    command::statement_close(&mut open.unanswered, known_as);
    if let Some(ScriptSession::Mysql(session)) = &mut open.session {
        session.send_unanswered(&open.unanswered);
        open.unanswered.clear();
    }
}

/// Fills in the answer to a successful request.
pub(super) fn answered(host: &mut Caller, reply: Reply, summary: &Summary, id: u32) {
    let asked = connection(host);
    asked.error = 0;
    host.task.failed = 0;
    host.task.last_insert_id = summary.last_insert_id;
    let open = &mut host.connections.open[place(asked.number)];
    if host.task.op() == Some(Op::Prepare) {
        let sql = host.task.text().to_vec();
        let number = open.next_statement();
        let id = match host.connections.database.spec.driver {
            Driver::Mysql => id,
            Driver::Pgsql => number,
        };
        open.keep_statement(Prepared { sql, id: (reply == Reply::Prepare).then_some(id) });
        is_prepared(host, number);
        return;
    }
    open.more = summary.results.saturating_sub(1);
    open.result = ResultSpan {
        columns: usize::try_from(summary.columns).unwrap_or(0),
        rows: summary.rows,
        affected_rows: summary.affected_rows,
        ..ResultSpan::default()
    };
    if open.more > 0 {
        open.go_to_result(host.connections.database.spec.driver, 0);
    }
    let is_postgres = host.connections.database.spec.driver == Driver::Pgsql;
    if reply == Reply::Binary && is_postgres {
        // Its columns were told when it was prepared.
        open.result.columns = columns_of_postgres(&open.reply).unwrap_or(open.result.columns);
    }
    let shown = &mut host.connections.shown[place(asked.number)];
    show_result(&mut host.task, open, shown);
    if reply == Reply::Binary && !is_postgres {
        shown.nfields = 0; // sysbench cannot read these rows
    }
}

/// Sets the statement's number, connection and session.
fn is_prepared(host: &Caller, id: u32) {
    let asked = connection(host);
    // SAFETY: Lua holds the statement while it waits for the answer.
    let statement = unsafe { &mut *host.task.statement };
    (statement.on, statement.id, statement.session) = (asked.number, id, asked.session);
    statement.connection = asked;
}

/// Shows the script the current result.
fn show_result(task: &mut Task, open: &Open, result: &mut SqlResult) {
    result.counter = 0;
    result.nrows = u32::try_from(open.result.rows).unwrap_or(u32::MAX);
    result.nfields = u32::try_from(open.result.columns).unwrap_or(u32::MAX);
    result.is_live = u32::from(open.result.columns > 0);
    task.columns = u32::try_from(open.result.columns).unwrap_or(u32::MAX);
    task.rows = open.result.rows;
    task.affected_rows = open.result.affected_rows;
    task.more_results = open.more;
}

/// Goes on to the next result of the last text; to a result without columns after the last.
fn next_result(host: &mut Caller) {
    let asked = connection(host);
    let driver = host.connections.database.spec.driver;
    let Some(open) = host.connections.open.get_mut(place(asked.number)) else { return };
    if open.more > 0 {
        open.more -= 1;
        open.go_to_result(driver, open.result.end);
    } else {
        open.result = ResultSpan::default();
    }
    show_result(&mut host.task, open, &mut host.connections.shown[place(asked.number)]);
}

/// Fills in an error of the server. True if the script may go on undisturbed: the statement cannot
/// be prepared, and is sent as text from now on.
pub(super) fn refused(host: &mut Caller, error: &ServerError) -> bool {
    let ServerError { code, sqlstate, message, .. } = error;
    let asked = connection(host);
    let is_prepare = host.task.op() == Some(Op::Prepare);
    if is_prepare && *code == NOT_PREPARABLE {
        answered(host, Reply::Text, &Summary::default(), 0);
        return true;
    }
    host.task.failed = 1;
    let Database { spec, is_over, .. } = &*host.connections.database;
    let is_ignorable = !is_prepare && spec.ignore_errors.contains(ErrorCode::of(error));
    let open = &mut host.connections.open[place(asked.number)];
    asked.error = if is_ignorable { IGNORABLE } else { FATAL };
    asked.sql_errno = i32::from(*code);
    open.sql_state = CString::new(&sqlstate[..]).unwrap_or_default();
    open.message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    asked.sql_state = open.sql_state.as_ptr();
    asked.sql_errmsg = open.message.as_ptr();
    if !is_ignorable && !is_over.load(Ordering::Relaxed) {
        for line in lines_of_refusal(&host.task, open, spec.driver, error) {
            host.log.line(0, &line);
        }
        if spec.endpoint.are_several() {
            host.log.line(0, &format!("the server was {}", named(&open.endpoint)));
        }
    }
    false
}

/// Fills in an error as [`refused`] does, for a blocking session; a lost session is opened again if
/// its error is ignored.
fn refused_blocking(host: &mut Caller, asked_ns: u64, error: &ServerError) -> bool {
    if refused(host, error) {
        return true;
    }
    let (asked, code) = (connection(host), ErrorCode::of(error));
    if code.is_loss() && asked.error == IGNORABLE {
        let endpoint = host.connections.open[place(asked.number)].endpoint.clone();
        let database = Arc::clone(&host.connections.database);
        while !database.is_over.load(Ordering::Relaxed) {
            if let Ok(session) = database.open(&endpoint) {
                reopened(host, asked.number, session, asked_ns);
                return false;
            }
            thread::sleep(RETRY_DELAY);
        }
    }
    if host.task.op() != Some(Op::Prepare) {
        let what = Happening::Refused(code);
        host.note(asked_ns, host.now_ns(), what);
    }
    false
}
