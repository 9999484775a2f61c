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
