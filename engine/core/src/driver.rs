//! Database protocols, with sysbench's names.

use serde::Deserialize;

/// Kind of server; it selects the protocol and parts of the SQL.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// MySQL, MariaDB, and compatible servers.
    #[default]
    Mysql,
    /// PostgreSQL.
    Pgsql,
}

impl Driver {
    /// The words of its client library for a connection lost during a query, which scripts look
    /// for.
    #[must_use]
    pub const fn words_of_loss(self) -> &'static str {
        match self {
            Self::Mysql => "Lost connection to MySQL server during query",
            Self::Pgsql => "server closed the connection unexpectedly",
        }
    }
}
