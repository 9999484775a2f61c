//! Errors of sessions: the wanted state, the problem met, and a remedy.

use std::io;

use dbdyno_wire::mysql::Malformed;
use dbdyno_wire::mysql::login::LoginError;
use dbdyno_wire::mysql::response::ServerError;
use dbdyno_wire::mysql::scanner::ScanError;
use dbdyno_wire::postgres;

use super::timeouts::WaitEnd;
use super::{Endpoint, Login};
use crate::error::{ErrorCode, Failure, ServerPart};
use crate::session::link::LinkError;
use crate::session::tls::TlsProblem;

/// Most characters of a statement repeated in an error.
const STATEMENT_LENGTH_MAX: usize = 120;

/// Error of opening or using a session.
#[derive(Debug, thiserror::Error)]
#[error("{endpoint}: wanted {wanted}, found {problem}{}", hint(problem))]
pub struct SessionError {
    endpoint: String,
    wanted: String,
    problem: Box<Problem>,
}

/// Kinds of trouble, by the administrator's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No server, or the connection is lost; a retry may help.
    Absent,
    /// No answer in time.
    Late,
    /// The server refuses, in its words, and the session goes on.
    Refused,
    /// An unreadable or endless answer, or the wrong kind of server.
    Odd,
}

/// The problem met in a session.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    /// No connection could be made.
    #[error("no connection: {0}")]
    Unreachable(io::Error),
    /// The connection broke.
    #[error("{}", broken(.0))]
    Broken(io::Error),
    /// The session could not be encrypted.
    #[error(transparent)]
    Tls(#[from] TlsProblem),
    /// The server does not offer the compressed protocol.
    #[error("a server that offers no compression")]
    NoCompression,
    /// The login failed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The server refused a statement.
    #[error(transparent)]
    Server(ServerError),
    /// PostgreSQL refused the login, or it failed.
    #[error(transparent)]
    PostgresLogin(#[from] postgres::login::LoginError),
    /// PostgreSQL refused a statement.
    #[error("{0}")]
    Postgres(postgres::message::ServerError),
    /// An unexpected message of PostgreSQL.
    #[error("a reply out of step: a message of type 0x{0:02x}")]
    Message(u8),
    /// A reply could not be followed.
    #[error("a reply out of step: {0}")]
    Scan(#[from] ScanError),
    /// A message could not be read.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The server asks for a file.
    #[error("{}", ScanError::LocalInfile)]
    LocalInfile,
    /// A result has more columns than any server knows.
    #[error("a result of {0} columns")]
    Columns(u64),
    /// An answer is far too long.
    #[error("rows without an end")]
    Endless,
    /// The server did not ask for the rows to load.
    #[error("a server that did not ask for the rows")]
    NoFileWanted,
    /// The server took another number of rows than it was sent.
    #[error("{taken} of {sent} rows taken, with {warnings} warnings")]
    RowsLost { sent: u64, taken: u64, warnings: u16 },
}

impl Problem {
    pub(super) fn closed() -> Self {
        Self::Broken(io::ErrorKind::UnexpectedEof.into())
    }

    fn advice(&self) -> Option<&'static str> {
        if let Some(error) = self.server_error() {
            return advice_for_code(error.code);
        }
        if let Some(error) = self.postgres_error() {
            return advice_for_state(&error.sqlstate);
        }
        match self {
            Self::Unreachable(error) => Some(advice_for(error)),
            Self::Login(LoginError::UnknownPlugin(_)) => Some(
                "an account with mysql_native_password or caching_sha2_password, or check the \
                 user's name: MySQL hides by this which users exist",
            ),
            Self::Login(LoginError::Withheld) => Some(
                "TLS (--mysql-ssl=on, ?ssl-mode=REQUIRED), a file of the server's public key \
                 (?server-public-key-path=), its Unix socket, or log in once as this user with the server's \
                 own client: from then until it restarts it needs the password's hash alone",
            ),
            Self::Login(LoginError::Key) => {
                Some("TLS, the server's Unix socket, or renew its RSA key pair")
            }
            Self::PostgresLogin(postgres::login::LoginError::InTheClear) => {
                Some("TLS, the server's Unix socket, or scram-sha-256 in pg_hba.conf")
            }
            Self::PostgresLogin(postgres::login::LoginError::Unknown(_)) => {
                Some("scram-sha-256 for this user in pg_hba.conf")
            }
            Self::PostgresLogin(postgres::login::LoginError::Message(_)) => {
                Some("the port of a PostgreSQL, or --db-driver=mysql")
            }
            Self::Login(LoginError::Malformed(_)) => {
                Some("the port of the classic protocol (3306, not X's 33060)")
            }
            Self::Tls(problem) => Some(problem.advice()),
            Self::NoCompression => {
                Some("zlib among the server's protocol_compression_algorithms, or no compression")
            }
            Self::Broken(error) if is_late(error) => Some(
                "the server's error log; a pooler before it may wait for a free connection of its pool",
            ),
            Self::Broken(_) => Some("the server's error log"),
            Self::NoFileWanted | Self::RowsLost { .. } => {
                Some("multi-row INSERT instead of LOAD DATA")
            }
            _ => None,
        }
    }

    fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) | Self::Login(LoginError::Refused(error)) => Some(error),
            _ => None,
        }
    }

    fn postgres_error(&self) -> Option<&postgres::message::ServerError> {
        match self {
            Self::Postgres(error)
            | Self::PostgresLogin(postgres::login::LoginError::Refused(error)) => Some(error),
            _ => None,
        }
    }
}

/// Takes an error in a TLS record as one of the handshake: in TLS 1.3 a server refuses the client's
/// certificate after the handshake, in a record.
impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<LinkError>()) {
            Some(LinkError::Records(error)) => Self::Tls(TlsProblem::Handshake(error.clone())),
            _ => Self::Broken(error),
        }
    }
}

fn broken(error: &io::Error) -> String {
    if let Some(end) = error.get_ref().and_then(|inner| inner.downcast_ref::<WaitEnd>()) {
        return end.to_string();
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "that the server closed the connection".to_owned(),
        _ => format!("a broken connection: {error}"),
    }
}

impl SessionError {
    pub(super) fn session(endpoint: &Endpoint, login: &Login, problem: Problem) -> Self {
        let wanted = format!("a session as user {:?}", login.user);
        Self { endpoint: endpoint.to_string(), wanted, problem: Box::new(problem) }
    }

    pub(super) fn statement(endpoint: &Endpoint, statement: &str, problem: Problem) -> Self {
        let mut text: String = statement.chars().take(STATEMENT_LENGTH_MAX).collect();
        if text.len() < statement.len() {
            text.push('…');
        }
        let wanted = format!("the answer to {text:?}");
        Self { endpoint: endpoint.to_string(), wanted, problem: Box::new(problem) }
    }

    /// The kind of trouble.
    #[must_use]
    pub fn trouble(&self) -> Trouble {
        match &*self.problem {
            Problem::Unreachable(error) | Problem::Broken(error) => trouble_of(error),
            Problem::Tls(TlsProblem::Cut(error)) => trouble_of(error),
            problem => match (problem.server_error(), problem.postgres_error()) {
                (Some(error), _) if is_leaving(error) => Trouble::Absent,
                (_, Some(error)) if ErrorCode::State(error.sqlstate).is_loss() => Trouble::Absent,
                (None, None) => Trouble::Odd,
                _ => Trouble::Refused,
            },
        }
    }

    /// The problem alone, without server and request.
    #[must_use]
    pub fn found(&self) -> String {
        self.problem.to_string()
    }

    /// A remedy to try, if there is advice.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        self.problem.advice()
    }

    /// The server's error number, when it sent an error.
    #[must_use]
    pub fn server_code(&self) -> Option<u16> {
        self.problem.server_error().map(|error| error.code)
    }

    /// The SQLSTATE of the server's error, when it sent an error.
    #[must_use]
    pub fn sqlstate(&self) -> Option<String> {
        let of_postgres = || {
            let error = self.problem.postgres_error()?;
            Some(String::from_utf8_lossy(&error.sqlstate).into_owned())
        };
        self.problem.server_error().map(ServerError::sqlstate).or_else(of_postgres)
    }

    /// The server's own words, when it sent an error.
    #[must_use]
    pub fn server_message(&self) -> Option<&str> {
        let of_postgres = || self.problem.postgres_error().map(|error| error.message.as_str());
        self.problem.server_error().map(|error| error.message.as_str()).or_else(of_postgres)
    }

    /// The failure of `stage`: the server could not be reached, or refused `statement`.
    #[must_use]
    pub fn into_failure(self, stage: &'static str, statement: &str) -> Failure {
        let of_postgres = self.problem.postgres_error();
        let part = ServerPart {
            server: self.endpoint.clone(),
            server_message: self.server_message().unwrap_or_default().to_owned(),
            client_message: of_postgres
                .map_or_else(String::new, |error| error.in_words_of_libpq(statement)),
        };
        Failure {
            code: self.server_code(),
            sqlstate: self.sqlstate().unwrap_or_default(),
            statement: statement.to_owned(),
            server: Some(Box::new(part)),
            ..Failure::new(stage, self.to_string())
        }
    }
}

/// True for an answer that did not come in time.
fn is_late(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<WaitEnd>())
}

fn trouble_of(error: &io::Error) -> Trouble {
    if is_late(error) {
        Trouble::Late
    } else if error.kind() == io::ErrorKind::InvalidData {
        Trouble::Odd
    } else {
        Trouble::Absent
    }
}

/// True if the server shuts down (1053), or ends the connection: MariaDB after a `KILL` (1927),
/// MySQL after an idle timeout (4031).
const fn is_leaving(error: &ServerError) -> bool {
    matches!(error.code, 1053 | 1927 | 4031)
}

fn hint(problem: &Problem) -> String {
    problem.advice().map_or_else(String::new, |advice| format!("; try {advice}"))
}

fn advice_for_code(code: u16) -> Option<&'static str> {
    Some(match code {
        1045 | 1698 => {
            "another user or password, granting this host access, or TLS if the account requires it \
             (--mysql-ssl=on, ?ssl-mode=REQUIRED), as caching_sha2_password on TiDB does"
        }
        1044 => "granting the user this database",
        1049 => "creating the database first",
        1040 | 1203 | 1226 => "fewer connections, or raise max_connections",
        1130 => "an account for this host, or bind the server to 127.0.0.1",
        1461 => "fewer connections or statements, or raise max_prepared_stmt_count",
        1153 => "a smaller statement, or raise max_allowed_packet",
        3159 => "TLS (mode required), or the server's Unix socket",
        1148 | 3948 | 4166 => {
            "SET GLOBAL local_infile=ON at the server, or multi-row INSERT instead of LOAD DATA"
        }
        1251 => "an account with mysql_native_password or caching_sha2_password",
        _ => return None,
    })
}

/// States of a prepared statement that is there already, or not there any more, as a pooler has given
/// the session to another client in between.
const POOLED_TWICE: &[u8; 5] = b"42P05";
/// See [`POOLED_TWICE`].
const POOLED_AWAY: &[u8; 5] = b"26000";

/// A remedy for an error in the middle of a run, if there is advice.
#[must_use]
pub fn advice_in_run(error: &ServerError) -> Option<&'static str> {
    let state = Some(&error.sqlstate).filter(|_| error.code == 0);
    state.filter(|&one| one == POOLED_TWICE || one == POOLED_AWAY).and_then(advice_for_state)
}

fn advice_for_state(sqlstate: &[u8; 5]) -> Option<&'static str> {
    Some(match sqlstate {
        b"28P01" => "another user or password",
        b"28000" => "a line for this user, database and host in pg_hba.conf",
        b"3D000" => "creating the database first",
        b"42501" => "granting the user this right, or a database that the user owns",
        b"53300" => "fewer connections, or raise max_connections and start the server again",
        b"0A000" | b"08P01" => "a PostgreSQL itself in place of a pooler before it",
        POOLED_TWICE | POOLED_AWAY => {
            "statements as text (--db-ps-mode=disable, --no-prepared): a pooler in transaction mode passes \
             prepared statements between sessions"
        }
        _ => return None,
    })
}

fn advice_for(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            "fewer connections, or raise this system's limit of open files (ulimit -n)"
        }
        // The kernel's error for a full backlog of the server.
        io::ErrorKind::WouldBlock => "a longer back_log of the server (and net.core.somaxconn)",
        io::ErrorKind::AddrNotAvailable => {
            "the Unix socket, or several addresses or ports of the server: between two addresses there \
             are no more free ports (net.ipv4.ip_local_port_range)"
        }
        io::ErrorKind::InvalidInput => "a shorter path for the socket, or TCP",
        io::ErrorKind::ConnectionRefused => "starting the server, or another port or socket",
        io::ErrorKind::NotFound => "starting the server, or the path in its socket setting",
        io::ErrorKind::PermissionDenied => "the rights of the socket's file and folder",
        io::ErrorKind::TimedOut => "the host's address and its firewall",
        _ => "the host's name and whether the server runs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_not_blamed_on_the_host() {
        let error = io::Error::from_raw_os_error(libc::EMFILE);
        assert!(advice_for(&error).contains("ulimit -n"));
        let no_port = io::Error::from_raw_os_error(libc::EADDRNOTAVAIL);
        assert!(advice_for(&no_port).contains("ip_local_port_range"));
        let refused = io::ErrorKind::ConnectionRefused.into();
        assert!(advice_for(&refused).contains("starting the server"));
    }
}
