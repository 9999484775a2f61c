//! The workloads as described by sysbench's scripts: prepared statements, and order of an event.

use super::options::Options;
use crate::workload::event::StatementKind::{
    self, Begin, Commit, Deletes, DistinctRanges, IndexUpdates, Inserts, NonIndexUpdates,
    OrderRanges, PointSelects, SimpleRanges, SumRanges,
};

/// A workload as described by its script.
pub(super) struct Recipe {
    pub name: &'static str,
    /// Kinds in the order the script prepares them, each for all tables. `BEGIN` is missing: MySQL
    /// refuses to prepare it and sysbench sends it as text; on PostgreSQL it comes first.
    prepares: &'static [StatementKind],
    /// Groups in the order of the event. `Inserts` stands for pairs of DELETE and INSERT.
    event: &'static [StatementKind],
}

/// Every mix.
pub(super) const RECIPES: [Recipe; 7] = [
    Recipe { name: "oltp_point_select", prepares: &[PointSelects], event: &[PointSelects] },
    Recipe {
        name: "oltp_read_only",
        prepares: &[PointSelects, Commit, SimpleRanges, SumRanges, OrderRanges, DistinctRanges],
        event: &[Begin, PointSelects, SimpleRanges, SumRanges, OrderRanges, DistinctRanges, Commit],
    },
    Recipe {
        name: "oltp_read_write",
        prepares: &[
            Commit,
            PointSelects,
            SimpleRanges,
            SumRanges,
            OrderRanges,
            DistinctRanges,
            IndexUpdates,
            NonIndexUpdates,
            Deletes,
            Inserts,
        ],
        event: &[
            Begin,
            PointSelects,
            SimpleRanges,
            SumRanges,
            OrderRanges,
            DistinctRanges,
            IndexUpdates,
            NonIndexUpdates,
            Inserts,
            Commit,
        ],
    },
    Recipe {
        name: "oltp_write_only",
        prepares: &[Commit, IndexUpdates, NonIndexUpdates, Deletes, Inserts],
        event: &[Begin, IndexUpdates, NonIndexUpdates, Inserts, Commit],
    },
    Recipe { name: "oltp_update_index", prepares: &[IndexUpdates], event: &[IndexUpdates] },
    Recipe {
        name: "oltp_update_non_index",
        prepares: &[NonIndexUpdates],
        event: &[NonIndexUpdates],
    },
    Recipe { name: "oltp_delete", prepares: &[Deletes], event: &[Deletes] },
];

impl Recipe {
    /// The kinds to prepare, after the options have removed some.
    pub(super) fn prepares(&self, options: &Options) -> impl Iterator<Item = StatementKind> {
        self.prepares.iter().copied().filter(|kind| is_wanted(*kind, options))
    }

    /// The groups of an event, after the options have removed some.
    pub(super) fn event(&self, options: &Options) -> impl Iterator<Item = StatementKind> {
        self.event.iter().copied().filter(|kind| is_wanted(*kind, options))
    }

    /// Number of statements of this kind in an event; of `Inserts`, number of pairs.
    pub(super) fn count(&self, kind: StatementKind, options: &Options) -> u32 {
        match kind {
            // sysbench sets the option to 1 here, against any given value.
            PointSelects if self.name == "oltp_point_select" => 1,
            PointSelects => options.point_selects,
            SimpleRanges => options.simple_ranges,
            SumRanges => options.sum_ranges,
            OrderRanges => options.order_ranges,
            DistinctRanges => options.distinct_ranges,
            IndexUpdates => options.index_updates,
            NonIndexUpdates => options.non_index_updates,
            Inserts => options.delete_inserts,
            _ => 1,
        }
    }
}

/// True if the options keep this kind.
const fn is_wanted(kind: StatementKind, options: &Options) -> bool {
    match kind {
        Begin | Commit => !options.skip_trx,
        SimpleRanges | SumRanges | OrderRanges | DistinctRanges => options.range_selects,
        _ => true,
    }
}
