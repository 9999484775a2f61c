//! The SQL of sysbench's workloads of before 1.0, in the spelling of the versions that had them.
//!
//! Statements of 0.5 are those of today but for two; 0.4 wrote small letters and had one table.

use super::super::statement::template;
use super::options::LegacyOptions;
use super::recipe::Part;
use crate::workload::event::StatementKind;
use crate::workload::event::StatementKind::{
    Begin, Commit, Deletes, DistinctRanges, IndexUpdates, Inserts, NonIndexUpdates, OrderRanges,
    PointSelects, SimpleRanges, SumRanges,
};

/// Which column the workload's single-row SELECT reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    C,
    Pad,
}

/// The SQL of `kind` on table number `table`, `?` for its parameters. `part` tells an INSERT that
/// follows a DELETE from one that stands alone, which 0.4 writes differently.
pub(super) fn sql(
    kind: StatementKind,
    part: Part,
    column: Column,
    table: u32,
    options: &LegacyOptions,
) -> String {
    if options.table_locks && matches!(kind, Begin | Commit) {
        return lock(kind, options);
    }
    if options.one_table {
        return of_0_4(kind, part, column).to_owned();
    }
    let text = match (kind, column) {
        (PointSelects, Column::Pad) => "SELECT pad FROM sbtest{} WHERE id=?",
        (SumRanges, _) => "SELECT SUM(K) FROM sbtest{} WHERE id BETWEEN ? AND ?",
        _ => template(kind),
    };
    text.replace("{}", &table.to_string())
}

/// All tables are locked, although an event works on one.
fn lock(kind: StatementKind, options: &LegacyOptions) -> String {
    if kind == Commit {
        return "UNLOCK TABLES".to_owned();
    }
    if options.one_table {
        let mode = if options.read_only { "READ" } else { "WRITE" };
        return format!("LOCK TABLES sbtest {mode}");
    }
    let tables = (1..=options.common.tables).map(|table| format!("sbtest{table} WRITE"));
    format!("LOCK TABLES {}", tables.collect::<Vec<_>>().join(" ,"))
}

fn of_0_4(kind: StatementKind, part: Part, column: Column) -> &'static str {
    match kind {
        PointSelects if column == Column::Pad => "SELECT pad from sbtest where id=?",
        PointSelects => "SELECT c from sbtest where id=?",
        SimpleRanges => "SELECT c from sbtest where id between ? and ?",
        SumRanges => "SELECT SUM(K) from sbtest where id between ? and ?",
        OrderRanges => "SELECT c from sbtest where id between ? and ? order by c",
        DistinctRanges => "SELECT DISTINCT c from sbtest where id between ? and ? order by c",
        IndexUpdates => "UPDATE sbtest set k=k+1 where id=?",
        NonIndexUpdates => "UPDATE sbtest set c=? where id=?",
        Deletes => "DELETE from sbtest where id=?",
        Inserts if part == Part::Pair => {
            "INSERT INTO sbtest values(?,0,' ','aaaaaaaaaaffffffffffrrrrrrrrrreeeeeeeeeeyyyyyyyyyy')"
        }
        Inserts => "INSERT INTO sbtest values(?,?,?,?)",
        other => template(other),
    }
}
