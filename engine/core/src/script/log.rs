//! sysbench's log, which goes to stdout: a repeated line is counted, not written again; and its lines
//! about servers.

use super::connections::{Open, Prepared};
use super::protocol;
use super::task::{Op, Task};
use crate::driver::Driver;
use crate::error::{CANNOT_CONNECT, Failure, printable};
use crate::session::Endpoint;
use dbdyno_wire::mysql::scanner::ServerError;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Most bytes of a statement in the log, as in sysbench.
const SQL_LENGTH_MAX: usize = 4000;
/// Error of MySQL's client library for an unknown host name, and the words of the system's look-up
/// for it. PostgreSQL's library has its own words, with an end of line.
const UNKNOWN_HOST: u16 = 2005;
const NO_SUCH_NAME: &str = "failed to lookup address information";

/// The log of all threads of a script: sysbench's log, which goes to stdout.
#[derive(Debug)]
pub struct Log {
    verbosity: u32,
    /// The last line, and the number of its suppressed repetitions.
    last: Mutex<(String, u32)>,
}

const LEVELS: [&str; 6] = ["FATAL: ", "ALERT: ", "WARNING: ", "", "", "DEBUG: "];

impl Log {
    /// Makes a log without the lines above `verbosity`.
    #[must_use]
    pub fn new(verbosity: u32) -> Self {
        Self { verbosity, last: Mutex::default() }
    }

    /// Writes a line, unless it repeats the last.
    pub fn line(&self, level: u32, text: &str) {
        if level > self.verbosity {
            return;
        }
        let level = LEVELS.get(level as usize).unwrap_or(&"");
        let line = format!("{level}{}\n", printable(text));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 == line {
            last.1 += 1;
            return;
        }
        let repeated = std::mem::replace(&mut last.1, 0);
        let mut out = String::new();
        if repeated > 0 {
            out = format!("(last message repeated {repeated} times)\n");
        }
        out.push_str(&line);
        last.0 = line;
        // A closed stdout ends the program elsewhere.
        let _ = std::io::stdout().lock().write_all(out.as_bytes());
        let _ = std::io::stdout().lock().flush();
    }
}

/// A server in sysbench's words.
pub(super) fn named(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { host, port } => format!("host '{host}', port {port}"),
        Endpoint::Unix { path } => format!("socket '{path}'"),
    }
}

/// The lines about a server that could not be reached, or refused the login, and a remedy.
pub(super) fn lines_of_unreachable(
    driver: Driver,
    endpoint: &Endpoint,
    failure: &Failure,
) -> Vec<String> {
    let (code, words) = match (failure.code, endpoint) {
        (Some(code), _) => (code, failure.server_message().to_owned()),
        (None, Endpoint::Tcp { host, .. }) if failure.message.contains(NO_SUCH_NAME) => {
            (UNKNOWN_HOST, format!("Unknown MySQL server host '{host}' (0)"))
        }
        (None, Endpoint::Tcp { .. }) => (CANNOT_CONNECT, failure.message.clone()),
        (None, Endpoint::Unix { .. }) => (CANNOT_CONNECT - 1, failure.message.clone()),
    };
    let mut lines = match (driver, endpoint) {
        (Driver::Mysql, _) => vec![
            format!("unable to connect to MySQL server on {}, aborting...", named(endpoint)),
            format!("error {code}: {words}"),
        ],
        (Driver::Pgsql, Endpoint::Tcp { host, .. }) if code == UNKNOWN_HOST => {
            let why = failure.message.split_once(NO_SUCH_NAME).map_or("", |(_, why)| why);
            let words = format!("could not translate host name \"{host}\" to address{why}\n");
            vec![format!("Connection to database failed: {words}")]
        }
        (Driver::Pgsql, _) => {
            let own = failure.server.as_ref().map(|part| &part.client_message);
            let own = own.filter(|own| !own.is_empty());
            vec![format!("Connection to database failed: {}", own.unwrap_or(&words))]
        }
    };
    let advice = failure.message.rsplit_once("; try ").map(|(_, advice)| advice);
    let is_untold = |advice: &&str| code != UNKNOWN_HOST && !lines.concat().contains(*advice);
    if let Some(advice) = advice.filter(is_untold) {
        lines.push(format!("hint: try {advice}"));
    }
    lines
}

/// The lines of sysbench's log about a refused request. On PostgreSQL they tell the SQL of prepared
/// statements too, which sysbench leaves out.
pub(super) fn lines_of_refusal(
    task: &Task,
    open: &Open,
    driver: Driver,
    error: &ServerError,
) -> Vec<String> {
    let ServerError { code, message, of_postgres, .. } = error;
    let (is_prepared, sql) = match task.op() {
        Some(Op::Prepare) => (true, protocol::as_prepared(driver, task.text())),
        Some(Op::Execute) => {
            // SAFETY: Lua holds the statement while it waits for the answer.
            let statement = unsafe { &*task.statement };
            match open.statements.get(statement.id as usize) {
                Some(Prepared { sql, id: None }) => {
                    (false, protocol::with_literals(sql, statement.values()))
                }
                Some(Prepared { sql, .. }) => (true, sql.clone()),
                None => (true, Vec::new()),
            }
        }
        _ => (false, task.text().to_vec()),
    };
    let sql = String::from_utf8_lossy(&sql[..sql.len().min(SQL_LENGTH_MAX)]);
    match (driver, task.op(), is_prepared) {
        (Driver::Mysql, Some(Op::Prepare), _) => vec![
            "mysql_stmt_prepare() failed".to_owned(),
            format!("MySQL error: {code} \"{message}\""),
        ],
        (Driver::Pgsql, Some(Op::Prepare), _) => {
            let words = match of_postgres {
                Some(error) => error.in_words_of_libpq(&sql),
                None => format!("{message}\n"),
            };
            vec![format!("PQprepare() failed: {words}")]
        }
        (Driver::Mysql, _, _) => {
            let call = if is_prepared { "mysql_stmt_execute()" } else { "mysql_drv_query()" };
            vec![format!("{call} returned error {code} ({message}) for query '{sql}'")]
        }
        (Driver::Pgsql, _, _) => {
            let call = if is_prepared { "PQexecPrepared()" } else { "PQexec()" };
            vec![format!("{call} failed: 7 {message}"), format!("failed query was: {sql}")]
        }
    }
}
