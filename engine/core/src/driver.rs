//! Which database a server is: protocols differ, and so does some of the SQL.

use serde::Deserialize;

/// A kind of server, under sysbench's names of its drivers.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// MySQL, MariaDB, and all that speak their protocol.
    #[default]
    Mysql,
    /// PostgreSQL.
    Pgsql,
}
