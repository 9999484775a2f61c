//! The statements of the legacy mixes, and their SQL in the spelling of sysbench 0.4 and 0.5.
//!
//! Statements of 0.5 are today's except for two; 0.4 wrote lower case and had a single table.

use super::super::statement::template;
use super::options::LegacyOptions;
use crate::workload::event::StatementKind::{
    self, Begin, Commit, Deletes, DistinctRanges, IndexUpdates, Inserts, NonIndexUpdates,
    OrderRanges, PointSelects, SimpleRanges, SumRanges,
};

/// A part of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    One(StatementKind),
    /// DELETE and INSERT of a row; 0.4 updates the row before.
    Pair,
}

/// A mix as described by its script.
pub(super) struct Recipe {
    pub name: &'static str,
    pub column: Column,
    event: &'static [Part],
}

const fn single(name: &'static str, event: &'static [Part]) -> Recipe {
    Recipe { name, column: Column::C, event }
}

/// Every legacy mix.
pub(super) const RECIPES: [Recipe; 7] = [
    single(
        "legacy_oltp",
        &[
            Part::One(Begin),
            Part::One(PointSelects),
            Part::One(SimpleRanges),
            Part::One(SumRanges),
            Part::One(OrderRanges),
            Part::One(DistinctRanges),
            Part::One(IndexUpdates),
            Part::One(NonIndexUpdates),
            Part::Pair,
            Part::One(Commit),
        ],
    ),
    single("legacy_oltp_simple", &[Part::One(PointSelects)]),
    Recipe { name: "legacy_select", column: Column::Pad, event: &[Part::One(PointSelects)] },
    single("legacy_insert", &[Part::One(Inserts)]),
    single("legacy_delete", &[Part::One(Deletes)]),
    single("legacy_update_index", &[Part::One(IndexUpdates)]),
    single("legacy_update_non_index", &[Part::One(NonIndexUpdates)]),
];

impl Recipe {
    /// The parts left by the options, each with its count.
    pub(super) fn parts(&self, options: &LegacyOptions) -> Vec<(Part, u32)> {
        let counted = |part: &Part| (*part, count(*part, options));
        if self.event.len() == 1 {
            return vec![(self.event[0], 1)];
        }
        self.event.iter().map(counted).filter(|(_, count)| *count > 0).collect()
    }
}

fn count(part: Part, options: &LegacyOptions) -> u32 {
    let common = &options.common;
    let read = |count: u32| if options.write_only { 0 } else { count };
    let range = |count: u32| if common.range_selects { read(count) } else { 0 };
    let write = |count: u32| if options.read_only { 0 } else { count };
    match part {
        Part::One(PointSelects) => read(common.point_selects),
        Part::One(SimpleRanges) => range(common.simple_ranges),
        Part::One(SumRanges) => range(common.sum_ranges),
        Part::One(OrderRanges) => range(common.order_ranges),
        Part::One(DistinctRanges) => range(common.distinct_ranges),
        Part::One(IndexUpdates) => write(common.index_updates),
        Part::One(NonIndexUpdates) => write(common.non_index_updates),
        Part::Pair => write(common.delete_inserts),
        Part::One(_) => u32::from(!common.skip_trx),
    }
}

/// Each kind of statement once, with the part that sends it.
pub(super) fn kinds(parts: &[(Part, u32)], options: &LegacyOptions) -> Vec<(StatementKind, Part)> {
    let mut all: Vec<(StatementKind, Part)> = Vec::new();
    for (part, _) in parts {
        let sent: &[StatementKind] = match part {
            Part::One(kind) => &[*kind],
            Part::Pair if options.one_table => &[IndexUpdates, Deletes, Inserts],
            Part::Pair => &[Deletes, Inserts],
        };
        for kind in sent {
            if all.iter().all(|(other, _)| other != kind) {
                all.push((*kind, *part));
            }
        }
    }
    all
}

/// Column read by the workload's single-row SELECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    C,
    Pad,
}

/// The SQL of `kind` on table number `table`, with `?` for its parameters. `part` separates an
/// INSERT after a DELETE from an INSERT alone, which 0.4 writes differently.
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

/// The SQL of the table locks: of all tables, although an event uses only one.
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
