//! Limits a run would exceed: the server's, and open files in this process.
//!
//! **Server.** Each connection prepares its own statements, nine per table in sysbench's mix, so a
//! few hundred connections reach MySQL's default of 16,382 prepared statements (error 1461). Limits
//! are read before the run begins. A value missing from a server's or proxy's answer counts as
//! unlimited.
//!
//! **Open files.** Every connection is an open file. The soft limit is raised as far as the hard
//! limit allows. The limit holds per file table, and a thread may have a file table of its own, so
//! more connections than a table holds are spread over several threads.

use crate::error::Failure;
use crate::session::{PostgresSession, Session, SessionError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::{Duration, Instant};

const VARIABLES: &str = "SHOW VARIABLES WHERE Variable_name IN \
    ('max_connections', 'max_user_connections', 'max_prepared_stmt_count')";
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN \
    ('Threads_connected', 'Prepared_stmt_count')";
const OWN_SESSIONS: &str = "SELECT COUNT(*) FROM information_schema.processlist \
    WHERE user = SUBSTRING_INDEX(USER(), '@', 1)";
/// More connections or statements than any server has.
const NUMBER_LIMIT: u64 = 1 << 48;
/// Privileges that allow a connection beyond `max_connections`.
const EXTRA: [&str; 4] = ["ALL PRIVILEGES ON *.*", "SUPER", "CONNECTION_ADMIN", "CONNECTION ADMIN"];

/// Resources a run needs of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Connections, including the asking session.
    pub connections: u64,
    /// Prepared statements per connection.
    pub statements: u64,
}

/// Limits and current use of a server; None if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    max_connections: Option<u64>,
    /// Sessions of all users, including the asking session.
    connected: Option<u64>,
    has_extra_connection: bool,
    max_user_connections: Option<u64>,
    /// Sessions of this user, including the asking session.
    connected_user: Option<u64>,
    max_prepared: Option<u64>,
    prepared: Option<u64>,
}

/// Limit that is too low, and the server's error it would cause.
struct Problem {
    code: u16,
    message: String,
}

impl ServerLimits {
    /// Reads the limits through a session without prepared statements; all answers together may
    /// take `timeout`.
    ///
    /// # Errors
    /// A broken session. A refused query is no error.
    pub fn ask(session: &mut Session, timeout: Duration) -> Result<Self, SessionError> {
        session.wait_until(Some(Instant::now() + timeout));
        let known = Self::told_by(session)?;
        session.wait_until(None);
        Ok(known)
    }

    fn told_by(session: &mut Session) -> Result<Self, SessionError> {
        let mut known = Self::default();
        for sql in [VARIABLES, STATUS] {
            for row in rows(session, sql)? {
                if let [Some(name), Some(value)] = &row[..] {
                    known.take(name, value);
                }
            }
        }
        if known.max_user_connections.is_some() {
            let count = rows(session, OWN_SESSIONS)?;
            known.connected_user = count.first().and_then(|row| number_of(row.first()?.as_ref()?));
        }
        let grants = rows(session, "SHOW GRANTS")?;
        known.has_extra_connection = grants.iter().flatten().flatten().any(|grant| {
            // A role may hold the privilege without showing it here.
            EXTRA.iter().any(|privilege| grant.contains(privilege)) || !grant.contains(" ON ")
        });
        Ok(known)
    }

    fn take(&mut self, name: &str, value: &str) {
        let number = number_of(value);
        match name.to_ascii_lowercase().as_str() {
            // 0 means unlimited: to TiDB here, to MySQL below.
            "max_connections" => self.max_connections = number.filter(|&most| most > 0),
            "max_user_connections" => self.max_user_connections = number.filter(|&most| most > 0),
            "max_prepared_stmt_count" => self.max_prepared = number,
            "threads_connected" => self.connected = number,
            "prepared_stmt_count" => self.prepared = number,
            _ => {}
        }
    }

    /// Checks that the server has room for `demand` beside its current load.
    ///
    /// # Errors
    /// At stage `limits`: every limit that is too low, the numbers, and the setting to change.
    pub fn allow(&self, demand: &Demand) -> Result<(), Failure> {
        let problems: Vec<Problem> =
            [self.connections(demand), self.user_connections(demand), self.statements(demand)]
                .into_iter()
                .flatten()
                .collect();
        let Some(first) = problems.first() else { return Ok(()) };
        let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        Err(Failure { code: Some(first.code), ..Failure::new("limits", messages.join("\n")) })
    }

    fn connections(&self, demand: &Demand) -> Option<Problem> {
        let (most, wanted) = (self.max_connections?, demand.connections);
        let others = self.connected.unwrap_or(1).saturating_sub(1);
        let extra = u64::from(self.has_extra_connection);
        (wanted + others > most + extra).then(|| Problem {
            code: 1040,
            message: format!(
                "{wanted} connections are wanted beside {others} already open, and the server takes \
                 {most} (max_connections; error 1040): run SET GLOBAL max_connections={}, or use at most \
                 {} connections",
                wanted + others,
                (most + extra).saturating_sub(others),
            ),
        })
    }

    fn user_connections(&self, demand: &Demand) -> Option<Problem> {
        let (most, wanted) = (self.max_user_connections?, demand.connections);
        let others = self.connected_user.unwrap_or(1).saturating_sub(1);
        (wanted + others > most).then(|| Problem {
            code: 1226,
            message: format!(
                "{wanted} connections are wanted beside {others} of this user already open, and the \
                 server takes {most} of one user (max_user_connections; error 1203 or 1226): raise the \
                 account's limit (ALTER USER … WITH MAX_USER_CONNECTIONS) or SET GLOBAL \
                 max_user_connections to {} or 0, or use at most {} connections",
                wanted + others,
                most.saturating_sub(others),
            ),
        })
    }

    fn statements(&self, demand: &Demand) -> Option<Problem> {
        let (most, each) = (self.max_prepared?, demand.statements);
        let others = self.prepared.unwrap_or(0);
        let wanted = each * demand.connections;
        (wanted > 0 && wanted + others > most).then(|| Problem {
            code: 1461,
            message: format!(
                "{} connections × {each} prepared statements = {wanted} are wanted beside {others} \
                 already there, and the server takes {most} (max_prepared_stmt_count; error 1461): \
                 run SET GLOBAL max_prepared_stmt_count={}, use fewer connections or tables, or send \
                 statements as text (--db-ps-mode=disable, or prepared_statements: false in a plan)",
                demand.connections,
                wanted + others,
            ),
        })
    }
}

/// Connections allowed to this user, and open client connections of all users including this
/// session.
const OF_POSTGRES: &str = "SELECT current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0 ELSE \
    current_setting('superuser_reserved_connections')::int + \
    coalesce(current_setting('reserved_connections', true), '0')::int END, \
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') \
    FROM pg_roles WHERE rolname = current_user";

/// Checks that PostgreSQL has room for the connections of `demand` beside the open ones. Passes if
/// the server does not tell its limit. The answer may take `timeout`.
///
/// # Errors
/// At stage `limits`: the limit that is too low, the numbers, and the setting to change. At stage
/// `connect`: a broken session.
pub fn allow_postgres(
    session: &mut PostgresSession,
    demand: &Demand,
    timeout: Duration,
) -> Result<(), Failure> {
    session.wait_until(Some(Instant::now() + timeout));
    let rows = match session.query(OF_POSTGRES) {
        Err(error) if error.sqlstate().is_some() => Vec::new(),
        answer => answer.map_err(|error| error.into_failure("connect", OF_POSTGRES))?,
    };
    session.wait_until(None);
    let number = |at: usize| number_of(rows.first()?.get(at)?.as_ref()?);
    let (Some(most), Some(open), wanted) = (number(0), number(1), demand.connections) else {
        return Ok(());
    };
    let others = open.saturating_sub(1);
    if wanted + others <= most {
        return Ok(());
    }
    let message = format!(
        "{wanted} connections are wanted beside {others} already open, and the server takes {most} of such a \
         user (max_connections without those reserved; SQLSTATE 53300): raise max_connections by {} and start \
         the server again, or use at most {} connections",
        wanted + others - most,
        most.saturating_sub(others),
    );
    Err(Failure { sqlstate: "53300".to_owned(), ..Failure::new("limits", message) })
}

/// Parses a number of a server's answer. None at or above `NUMBER_LIMIT`: some servers report the
/// greatest number for "unlimited", and sums with it would overflow.
fn number_of(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|&number| number < NUMBER_LIMIT)
}

/// Rows of an answer; empty if the server refuses the query.
fn rows(session: &mut Session, sql: &str) -> Result<Vec<Vec<Option<String>>>, SessionError> {
    match session.query(sql) {
        Err(error) if error.server_code().is_some() => Ok(Vec::new()),
        answer => answer,
    }
}

/// Files the process opens beside connections: rings, timers, name look-ups.
const SPARE: u64 = 64;
/// More engine threads would compete for few cores.
const TABLES_MOST: u64 = 8;

/// Lets the process open `more` files beyond the currently open ones.
///
/// # Errors
/// Files needed, files allowed, and the setting to change.
pub fn raise_open_files_limit(more: u64) -> Result<(), String> {
    let needed = open_now() + more + SPARE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|most| most >= needed) {
        return Ok(());
    }
    // Only a privileged process may raise the hard limit, so try it.
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let wanted = Rlimit { current: Some(needed), maximum: limit.maximum.map(|_| hard.max(needed)) };
    setrlimit(Resource::Nofile, wanted).map_err(|_| in_the_way(more, needed, hard))
}

/// Makes room for the connections in as few file tables as possible; returns their number. With
/// several, each needs a thread that calls [`crate::system::unshare_file_table`].
///
/// # Errors
/// Files needed, files allowed, and the setting to change.
pub fn file_tables_for(connections: u64) -> Result<u32, String> {
    let Err(in_the_way) = raise_open_files_limit(connections) else { return Ok(1) };
    let limit = getrlimit(Resource::Nofile);
    let room = limit.maximum.unwrap_or(u64::MAX).saturating_sub(open_now() + SPARE);
    let tables = connections.checked_div(room).map_or(u64::MAX, |whole| whole + 1);
    if tables > TABLES_MOST
        || setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).is_err()
    {
        return Err(in_the_way);
    }
    Ok(u32::try_from(tables).expect("few tables"))
}

fn in_the_way(connections: u64, needed: u64, hard: u64) -> String {
    format!(
        "{connections} connections need {needed} open files, and this process may have {hard}; \
         try fewer connections, or raise the limit and start again: `ulimit -n {needed}` as root, \
         `nofile` in /etc/security/limits.conf, LimitNOFILE= of a systemd unit, --ulimit nofile= of \
         a container"
    )
}

fn open_now() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(SPARE, |entries| entries.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand = Demand { connections: 100, statements: 37 };

    fn known() -> ServerLimits {
        let mut known = ServerLimits::default();
        for (name, value) in [
            ("max_connections", "151"),
            ("max_user_connections", "0"),
            ("max_prepared_stmt_count", "16382"),
            ("Threads_connected", "3"),
            ("Prepared_stmt_count", "12"),
        ] {
            known.take(name, value);
        }
        known
    }

    #[test]
    fn what_fits_is_allowed_up_to_the_last_one() {
        known().allow(&DEMAND).unwrap();
        let last = Demand { connections: 149, ..DEMAND };
        known().allow(&last).unwrap();
        let beyond = Demand { connections: 150, ..DEMAND };
        assert!(known().allow(&beyond).is_err());
        let known = ServerLimits { has_extra_connection: true, ..known() };
        known.allow(&beyond).unwrap();
        ServerLimits { max_prepared: Some(3712), ..known }.allow(&DEMAND).unwrap();
        assert!(ServerLimits { max_prepared: Some(3711), ..known }.allow(&DEMAND).is_err());
        // Text statements need no room, even if the limit of prepared statements is 0.
        let text = Demand { statements: 0, ..DEMAND };
        ServerLimits { max_prepared: Some(0), ..known }.allow(&text).unwrap();
    }

    #[test]
    fn a_server_that_tells_nothing_allows_everything() {
        ServerLimits::default().allow(&Demand { connections: 1 << 30, statements: 1000 }).unwrap();
        let mut odd = ServerLimits::default();
        odd.take("max_connections", "many");
        odd.take("colour", "7");
        for name in ["max_connections", "threads_connected", "prepared_stmt_count"] {
            odd.take(name, &u64::MAX.to_string());
        }
        assert_eq!(odd, ServerLimits::default());
    }

    #[test]
    fn all_problems_are_told_at_once_with_their_numbers() {
        let known = ServerLimits {
            max_connections: Some(50),
            max_user_connections: Some(40),
            connected_user: Some(2),
            max_prepared: Some(1000),
            ..known()
        };
        let failure = known.allow(&DEMAND).unwrap_err();
        assert_eq!((failure.stage, failure.code), ("limits", Some(1040)));
        assert_eq!(
            failure.message,
            "100 connections are wanted beside 2 already open, and the server takes 50 \
             (max_connections; error 1040): run SET GLOBAL max_connections=102, or use at most 48 connections\n\
             100 connections are wanted beside 1 of this user already open, and the server takes 40 \
             of one user (max_user_connections; error 1203 or 1226): raise the account's limit (ALTER USER \
             … WITH MAX_USER_CONNECTIONS) or SET GLOBAL max_user_connections to 101 or 0, or use at \
             most 39 connections\n\
             100 connections × 37 prepared statements = 3700 are wanted beside 12 already there, and \
             the server takes 1000 (max_prepared_stmt_count; error 1461): run SET GLOBAL \
             max_prepared_stmt_count=3712, use fewer connections or tables, or send statements as \
             text (--db-ps-mode=disable, or prepared_statements: false in a plan)"
        );
    }

    /// Soft and hard limit of open files.
    fn limits() -> (u64, u64) {
        let limit = getrlimit(Resource::Nofile);
        (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
    }

    #[test]
    fn the_soft_limit_is_raised_to_what_is_needed() {
        let (soft, hard) = limits();
        let more = hard.min(soft + 1000) - open_now() - 2 * SPARE;
        raise_open_files_limit(more).unwrap();
        assert!(limits().0 >= more + open_now());
        raise_open_files_limit(1).unwrap();
        assert!(limits().0 >= more, "a limit once raised was lowered");
    }

    #[test]
    fn what_one_table_cannot_hold_is_spread_over_several() {
        assert_eq!(file_tables_for(10), Ok(1));
        let hard = limits().1;
        // A process that may raise its hard limit needs no second table.
        let two = file_tables_for(hard + hard / 2).unwrap();
        assert!(two == 2 || limits().1 > hard, "{two}");
        let message = file_tables_for(1 << 40).unwrap_err();
        assert!(message.contains("ulimit -n "), "{message}");
    }

    #[test]
    fn what_no_system_allows_is_explained() {
        let message = raise_open_files_limit(1 << 40).unwrap_err();
        let hard = limits().1;
        assert!(message.starts_with(&format!("{} connections need ", 1_u64 << 40)), "{message}");
        assert!(message.contains(&format!("may have {hard};")), "{message}");
        assert!(message.contains("ulimit -n ") && message.contains("LimitNOFILE="), "{message}");
    }
}
