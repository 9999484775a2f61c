//! sysbench's `CREATE TABLE` and `CREATE INDEX`, by sysbench version and database.

use super::spec::{Layout, PrepareSpec};
use crate::driver::Driver;

/// `CREATE TABLE` of table number `table`, and statements that complete it.
pub(super) fn create_table(spec: &PrepareSpec, table: u32) -> Vec<String> {
    match spec.driver {
        Driver::Mysql => vec![of_mysql(spec, table)],
        Driver::Pgsql => of_postgres(spec, table),
    }
}

fn of_mysql(spec: &PrepareSpec, table: u32) -> String {
    let name = spec.layout.table_name(table);
    let (engine, options) = (&spec.engine, &spec.table_options);
    match spec.layout {
        Layout::BulkInsert => format!(
            "        CREATE TABLE IF NOT EXISTS {name} (\n          id INTEGER NOT NULL,\n          \
             k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id)){options}"
        ),
        Layout::Oltp => {
            let columns = columns(spec, "INTEGER");
            format!("CREATE TABLE {name}(\n{columns}) /*! ENGINE = {engine} */ {options}")
        }
        Layout::Legacy => {
            let (columns, rows) = (columns(spec, "INTEGER UNSIGNED"), spec.max_rows);
            format!(
                "CREATE TABLE {name} (\n{columns}) /*! ENGINE = {engine} MAX_ROWS = {rows} */ {options}"
            )
        }
        Layout::LegacyOne => format!(
            "CREATE TABLE {name} (id INTEGER UNSIGNED NOT NULL auto_increment, \
             k integer UNSIGNED DEFAULT '0' NOT NULL, c char(120) DEFAULT '' NOT NULL, \
             pad char(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) /*! ENGINE={engine} */ {options}"
        ),
    }
}

fn of_postgres(spec: &PrepareSpec, table: u32) -> Vec<String> {
    let name = spec.layout.table_name(table);
    if spec.layout == Layout::BulkInsert {
        return vec![format!(
            "        CREATE TABLE IF NOT EXISTS {name} (\n          id INTEGER NOT NULL,\n          \
             k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
        )];
    }
    let id = if spec.auto_inc { "SERIAL" } else { "INTEGER NOT NULL" };
    let created = format!(
        "CREATE TABLE {name}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
         c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) {}",
        spec.table_options
    );
    let created = created.trim_end().to_owned();
    // Rows are loaded with explicit ids, which do not advance the sequence.
    let rows = spec.table_size;
    let numbered = format!("SELECT setval(pg_get_serial_sequence('{name}', 'id'), {rows})");
    let is_numbered = spec.auto_inc && rows > 0;
    [Some(created), is_numbered.then_some(numbered)].into_iter().flatten().collect()
}

/// The four columns and the key on `id`, a line each; `number` is the type of `id` and `k`.
fn columns(spec: &PrepareSpec, number: &str) -> String {
    let numbering = if spec.auto_inc { " AUTO_INCREMENT" } else { "" };
    let key = if spec.secondary { "KEY xid" } else { "PRIMARY KEY" };
    format!(
        "  id {number} NOT NULL{numbering},\n  k {number} DEFAULT '0' NOT NULL,\n  \
         c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n"
    )
}

/// `CREATE INDEX` on `k`.
pub(super) fn create_index(layout: Layout, table: u32) -> String {
    match layout {
        Layout::LegacyOne => "CREATE INDEX k ON sbtest(k)".to_owned(),
        _ => format!("CREATE INDEX k_{table} ON sbtest{table}(k)"),
    }
}

pub(super) fn drop_table(layout: Layout, table: u32) -> String {
    format!("DROP TABLE IF EXISTS {}", layout.table_name(table))
}
