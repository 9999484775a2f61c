//! sysbench's schema for MySQL, as its scripts write it.

use super::{Layout, PrepareSpec};

/// `CREATE TABLE` of table number `table`.
pub(super) fn create_table(spec: &PrepareSpec, table: u32) -> String {
    if spec.layout == Layout::BulkInsert {
        return format!(
            "        CREATE TABLE IF NOT EXISTS sbtest{table} (\n          id INTEGER NOT NULL,\n          \
             k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
        );
    }
    let id = if spec.auto_inc { "INTEGER NOT NULL AUTO_INCREMENT" } else { "INTEGER NOT NULL" };
    let key = if spec.secondary { "KEY xid" } else { "PRIMARY KEY" };
    let engine = &spec.engine;
    format!(
        "CREATE TABLE sbtest{table}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
         c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) \
         /*! ENGINE = {engine} */ "
    )
}

/// `CREATE INDEX` on `k`.
pub(super) fn create_index(table: u32) -> String {
    format!("CREATE INDEX k_{table} ON sbtest{table}(k)")
}

/// `DROP TABLE`.
pub(super) fn drop_table(table: u32) -> String {
    format!("DROP TABLE IF EXISTS sbtest{table}")
}
