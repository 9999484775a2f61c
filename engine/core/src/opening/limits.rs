//! Limits of connections: the server's, once it refused one, and open files in this process.
//!
//! **Server.** A limit that a server names need not bind: poolers share the sessions of the server
//! behind them, and TiDB may name a limit that it does not enforce. So connections are opened, and
//! the server's variables are read only after a refusal, for the remedy.
//!
//! **Open files.** Every connection is an open file. The soft limit is raised as far as the hard
//! limit allows. The limit holds per file table, and a thread may have a file table of its own, so
//! more connections than a table holds are spread over several threads.

use crate::error::Failure;
use crate::session::{PostgresSession, Session};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const VARIABLES: &str = "SHOW VARIABLES WHERE Variable_name IN \
    ('max_connections', 'max_user_connections', 'max_prepared_stmt_count')";
const OF_POSTGRES: &str = "SELECT current_setting('max_connections')";
/// Words of poolers that refuse a connection under a general error code.
const WORDS: [&str; 2] = ["no more connections allowed", "Max client connections"];
/// More connections or statements than any server has.
const NUMBER_LIMIT: u64 = 1 << 48;

/// Connections of a run to a server that refused one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Wanted connections.
    pub connections: u64,
    /// Connections open at the refusal.
    pub open: u64,
    /// Prepared statements per connection.
    pub statements: u64,
}

/// Limits named by a server; None if unknown or unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedLimits {
    connections: Option<u64>,
    connections_of_user: Option<u64>,
    prepared: Option<u64>,
}

/// True for the refusal of another connection, or of a prepared statement, by a limit.
#[must_use]
pub fn is_full(failure: &Failure) -> bool {
    matches!(failure.code, Some(1040 | 1203 | 1226 | 1461))
        || matches!(&*failure.sqlstate, "53300" | "08004")
        || is_of_pooler(failure)
}

fn is_of_pooler(failure: &Failure) -> bool {
    WORDS.iter().any(|words| failure.server_message().contains(words))
}

impl NamedLimits {
    /// Asks a MySQL. A refused question, or a lost session, leaves all limits unknown.
    pub fn of_mysql(session: &mut Session) -> Self {
        let mut known = Self::default();
        for row in session.query(VARIABLES).unwrap_or_default() {
            if let [Some(name), Some(value)] = &row[..] {
                known.take(name, value);
            }
        }
        known
    }

    /// Asks a PostgreSQL, as [`Self::of_mysql`].
    pub fn of_postgres(session: &mut PostgresSession) -> Self {
        let rows = session.query(OF_POSTGRES).unwrap_or_default();
        let connections = rows.first().and_then(|row| number_of(row.first()?.as_ref()?));
        Self { connections, ..Self::default() }
    }

    fn take(&mut self, name: &str, value: &str) {
        let number = number_of(value);
        match name.to_ascii_lowercase().as_str() {
            // 0 means unlimited: to TiDB here, to MySQL below.
            "max_connections" => self.connections = number.filter(|&most| most > 0),
            "max_user_connections" => self.connections_of_user = number.filter(|&most| most > 0),
            "max_prepared_stmt_count" => self.prepared = number,
            _ => {}
        }
    }

    /// The failure with the numbers and the limit to raise in place of general advice.
    #[must_use]
    pub fn explain(&self, failure: Failure, demand: &Demand) -> Failure {
        let theirs = failure.server_message();
        let end =
            failure.message.rfind(theirs).map_or(failure.message.len(), |at| at + theirs.len());
        let message = format!("{}; {}", &failure.message[..end], self.remedy(&failure, demand));
        Failure { message, ..failure }
    }

    fn remedy(&self, failure: &Failure, demand: &Demand) -> String {
        let Demand { connections: wanted, open, statements } = *demand;
        let more = wanted.saturating_sub(open);
        let raised = match failure.code {
            Some(1461) => format!(
                "with {statements} prepared statements each; {} (SET GLOBAL), use fewer tables, send \
                 statements as text (--db-ps-mode=disable, or prepared_statements: false in a plan)",
                raised("max_prepared_stmt_count", self.prepared, statements * more)
            ),
            Some(1203 | 1226) => format!(
                "{} (SET GLOBAL, or ALTER USER … WITH MAX_USER_CONNECTIONS)",
                raised("max_user_connections", self.connections_of_user, more)
            ),
            Some(_) => {
                format!("{} (SET GLOBAL)", raised("max_connections", self.connections, more))
            }
            None if is_of_pooler(failure) => format!("raise the pooler's limit by {more}"),
            None => format!(
                "{} and start the server again",
                raised("max_connections", self.connections, more)
            ),
        };
        let fewer =
            if open > 0 { format!(", or use at most {open} connections") } else { String::new() };
        format!(
            "{open} of {wanted} connections were open: {raised}{fewer}; a pooler or proxy before the \
             server has limits of its own"
        )
    }
}

fn raised(name: &str, most: Option<u64>, by: u64) -> String {
    most.map_or_else(
        || format!("raise {name} by {by}"),
        |most| format!("raise {name} from {most} to {}", most + by),
    )
}

/// Parses a number of a server's answer. None at or above `NUMBER_LIMIT`: some servers report the
/// greatest number for "unlimited", and sums with it would overflow.
fn number_of(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|&number| number < NUMBER_LIMIT)
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
    use crate::error::ServerPart;

    fn refusal(code: Option<u16>, sqlstate: &str, words: &str) -> Failure {
        let part = ServerPart { server_message: words.to_owned(), ..ServerPart::default() };
        Failure {
            code,
            sqlstate: sqlstate.to_owned(),
            server: Some(Box::new(part)),
            ..Failure::new("connect", format!("a:1: found {words}; try fewer connections"))
        }
    }

    fn told(limits: &NamedLimits, code: Option<u16>) -> String {
        let demand = Demand { connections: 200, open: 148, statements: 37 };
        limits.explain(refusal(code, "", "Too many"), &demand).message
    }

    #[test]
    fn refusals_by_a_limit_are_told_from_others() {
        for (code, sqlstate, words) in [
            (Some(1040), "08004", "Too many connections"),
            (Some(1226), "42000", "User 'u' has exceeded the 'max_user_connections' resource"),
            (None, "53300", "sorry, too many clients already"),
            (None, "08P01", "no more connections allowed (max_client_conn)"),
            (None, "XX000", "Max client connections reached"),
        ] {
            assert!(is_full(&refusal(code, sqlstate, words)), "{words}");
        }
        for (code, sqlstate) in [(Some(1045), "28000"), (None, "28P01"), (None, "08P01")] {
            assert!(!is_full(&refusal(code, sqlstate, "no")), "{sqlstate}");
        }
    }

    #[test]
    fn a_remedy_has_the_numbers_of_the_refusal_and_of_the_server() {
        let mut known = NamedLimits::default();
        for (name, value) in [
            ("max_connections", "151"),
            ("max_user_connections", "0"),
            ("Max_prepared_stmt_count", "16382"),
        ] {
            known.take(name, value);
        }
        let pooled = "; a pooler or proxy before the server has limits of its own";
        assert_eq!(
            told(&known, Some(1040)),
            format!(
                "a:1: found Too many; 148 of 200 connections were open: raise max_connections from 151 to \
                 203 (SET GLOBAL), or use at most 148 connections{pooled}"
            )
        );
        assert!(
            told(&known, Some(1226))
                .contains("raise max_user_connections by 52 (SET GLOBAL, or ALTER")
        );
        assert!(told(&known, Some(1461)).contains(
            "with 37 prepared statements each; raise max_prepared_stmt_count from 16382 to 18306"
        ));
        assert!(told(&known, None).contains("from 151 to 203 and start the server again"));
        let demand = Demand { connections: 200, open: 148, statements: 37 };
        let pooled = known.explain(refusal(None, "08P01", "no more connections allowed"), &demand);
        assert!(pooled.message.contains("were open: raise the pooler's limit by 52, or use"));
    }

    #[test]
    fn a_server_that_names_no_limit_leaves_the_numbers_of_the_refusal() {
        let mut odd = NamedLimits::default();
        for (name, value) in
            [("max_connections", "many"), ("colour", "7"), ("max_connections", "0")]
        {
            odd.take(name, value);
        }
        odd.take("max_prepared_stmt_count", &u64::MAX.to_string());
        assert_eq!(odd, NamedLimits::default());
        assert!(
            told(&odd, Some(1040))
                .contains("148 of 200 connections were open: raise max_connections by 52")
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
