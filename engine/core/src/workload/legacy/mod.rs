//! The workloads of sysbench 0.4 and 0.5, named as their scripts with `legacy_` in front.
//!
//! They differ from today's in ways that change published numbers: one table for a whole event, all
//! statements as text (0.4 prepares them), another order of draws.

use std::sync::atomic::{AtomicU64, Ordering};

mod options;
mod recipe;

use super::bulk_insert::BulkInsert;
use super::insert::sequence_of_sysbench;
use super::select_random::SelectRandom;
use super::statement::Statement;
use super::{Client, StatementText, Workload, WorkloadSpec};
use crate::random::{C_FORMAT, PAD_FORMAT, Random, Sampler, UniqueSequence};
use crate::workload::event::Event;
use crate::workload::event::StatementKind::{
    self, Begin, Commit, Deletes, DistinctRanges, IndexUpdates, Inserts, NonIndexUpdates,
    OrderRanges, SimpleRanges, SumRanges,
};
use dbdyno_wire::mysql::command::Parameter;
use options::LegacyOptions;
use recipe::{Part, RECIPES, Recipe, kinds, sql};

const BULK_INSERT: &str = "legacy_bulk_insert";
const POINTS: &str = "legacy_select_random_points";
const RANGES: &str = "legacy_select_random_ranges";
/// The step between the rows visited by 0.4's test of DELETE: a prime, so it visits all.
const STRIDE: u64 = 2_147_483_647;

/// The names of the legacy workloads.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|recipe| recipe.name).chain([BULK_INSERT, POINTS, RANGES])
}

/// Builds the legacy workload named in `spec`, or returns all mistakes at once.
pub(super) fn build(spec: &WorkloadSpec) -> Result<Box<dyn Workload>, Vec<String>> {
    let (options, mut mistakes) = LegacyOptions::read(&spec.options);
    mistakes
        .extend(spec.distribution.mistakes().into_iter().map(|it| format!("distribution: {it}")));
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    match spec.name.as_str() {
        BULK_INSERT => return Ok(Box::new(BulkInsert::legacy())),
        POINTS => return Ok(Box::new(SelectRandom::points(spec, &options.common))),
        RANGES => return Ok(Box::new(SelectRandom::legacy_ranges(spec, &options.common))),
        _ => {}
    }
    let recipe = RECIPES.iter().find(|recipe| recipe.name == spec.name);
    let mix = Legacy::new(recipe.expect("the caller knows the name"), &options, spec);
    if mix.parts.is_empty() {
        return Err(vec![format!(
            "{}: these options leave an event without statements",
            spec.name
        )]);
    }
    Ok(Box::new(mix))
}

/// A [`Recipe`] with its options.
struct Legacy {
    /// The parts of an event, each with its count of 1 or more.
    parts: Vec<(Part, u32)>,
    /// For each table all kinds, with the kinds never prepared at the end.
    statements: Vec<Statement>,
    /// Place of a kind among its table's statements, by the kind's number.
    place: [usize; StatementKind::ALL.len()],
    kinds: usize,
    texts: Vec<StatementText>,
    options: LegacyOptions,
    ids: Sampler,
    /// The source of ids of `legacy_insert`; with `auto_inc` the server numbers the rows.
    new_ids: Option<UniqueSequence>,
    /// Number of rows visited by 0.4's test of DELETE.
    deleted: AtomicU64,
}

impl Legacy {
    fn new(recipe: &Recipe, options: &LegacyOptions, spec: &WorkloadSpec) -> Self {
        let parts = recipe.parts(options);
        let mut kinds = kinds(&parts, options);
        // 0.5 sends text in any --db-ps-mode.
        let is_prepared = |kind| {
            spec.prepared
                && options.one_table
                && kind != Begin
                && !(kind == Commit && options.table_locks)
        };
        kinds.sort_by_key(|(kind, _)| !is_prepared(*kind));
        let mut place = [0; StatementKind::ALL.len()];
        for (index, (kind, _)) in kinds.iter().enumerate() {
            place[*kind as usize] = index;
        }
        let tables = if options.one_table { 1 } else { options.common.tables };
        let statements: Vec<Statement> = (1..=tables)
            .flat_map(|table| kinds.iter().map(move |kind| (table, *kind)))
            .map(|(table, (kind, part))| {
                let sql = sql(kind, part, recipe.column, table, options);
                Statement::of(spec.driver, kind, &sql)
            })
            .collect();
        let texts = statements.iter().filter(|it| is_prepared(it.kind)).map(Statement::text);
        Self {
            parts,
            place,
            kinds: kinds.len(),
            texts: texts.collect(),
            options: options.clone(),
            ids: spec.distribution.over(1, options.common.table_size),
            new_ids: (!options.common.auto_inc).then(|| sequence_of_sysbench(spec)),
            deleted: AtomicU64::new(0),
            statements,
        }
    }

    /// Appends a statement on table number `table` (from 0).
    fn send(
        &self,
        kind: StatementKind,
        table: usize,
        parameters: &[Parameter<'_>],
        ids: &[u32],
        event: &mut Event,
    ) {
        let place = self.place[kind as usize];
        let statement = &self.statements[table * self.kinds + place];
        match ids.get(place) {
            Some(id) => statement.execute(*id, parameters, event),
            None => statement.query(parameters, event),
        }
    }

    /// Draws and appends a statement.
    fn draw(
        &self,
        kind: StatementKind,
        table: usize,
        random: &mut Random,
        ids: &[u32],
        event: &mut Event,
    ) {
        let (mut c, mut pad) = (*C_FORMAT, *PAD_FORMAT);
        match kind {
            Begin | Commit => self.send(kind, table, &[], ids, event),
            SimpleRanges | SumRanges | OrderRanges | DistinctRanges => {
                let (low, high) = self.range(kind, random);
                let ends = [Parameter::BigInt(low), Parameter::BigInt(high)];
                self.send(kind, table, &ends, ids, event);
            }
            NonIndexUpdates => {
                random.fill_string(C_FORMAT, &mut c);
                let id = Parameter::BigInt(self.id(random));
                self.send(kind, table, &[Parameter::Text(&c), id], ids, event);
            }
            Inserts => {
                let k = self.id(random);
                random.fill_string(C_FORMAT, &mut c);
                random.fill_string(PAD_FORMAT, &mut pad);
                // 0 asks the server for the next number; 0.4 says NULL and means the same.
                let id = self.new_ids.as_ref().map_or(0, |it| i64::from(it.draw()));
                self.send(kind, table, &row(id, k, &c, &pad), ids, event);
            }
            Deletes if self.options.one_table => {
                let id = Parameter::BigInt(self.next_deleted());
                self.send(kind, table, &[id], ids, event);
            }
            _ => self.send(kind, table, &[Parameter::BigInt(self.id(random))], ids, event),
        }
    }

    /// Appends DELETE and INSERT of a row; `k` is drawn last.
    fn draw_pair(&self, table: usize, random: &mut Random, ids: &[u32], event: &mut Event) {
        let (mut c, mut pad) = (*C_FORMAT, *PAD_FORMAT);
        let id = self.id(random);
        let alone = [Parameter::BigInt(id)];
        if self.options.one_table {
            self.send(IndexUpdates, table, &alone, ids, event);
            self.send(Deletes, table, &alone, ids, event);
            self.send(Inserts, table, &alone, ids, event);
            return;
        }
        self.send(Deletes, table, &alone, ids, event);
        random.fill_string(C_FORMAT, &mut c);
        random.fill_string(PAD_FORMAT, &mut pad);
        let k = self.id(random);
        self.send(Inserts, table, &row(id, k, &c, &pad), ids, event);
    }

    fn id(&self, random: &mut Random) -> i64 {
        i64::from(self.ids.draw(random))
    }

    /// Both ends of a range. 0.4 keeps it within the table, and reads one row more for DISTINCT.
    fn range(&self, kind: StatementKind, random: &mut Random) -> (i64, i64) {
        let size = i64::from(self.options.common.range_size);
        let low = self.id(random);
        if !self.options.one_table {
            return (low, low + size - 1);
        }
        let last = i64::from(self.options.common.table_size) - size;
        let low = low.min(last).max(1);
        (low, if kind == DistinctRanges { low + size } else { low + size - 1 })
    }

    /// The next row of 0.4's test of DELETE: each row once before any comes again.
    fn next_deleted(&self) -> i64 {
        let count = self.deleted.fetch_add(1, Ordering::Relaxed) + 1;
        let size = u64::from(self.options.common.table_size);
        (count.wrapping_mul(STRIDE) % size) as i64 + 1
    }
}

const fn row<'a>(id: i64, k: i64, c: &'a [u8], pad: &'a [u8]) -> [Parameter<'a>; 4] {
    [Parameter::BigInt(id), Parameter::BigInt(k), Parameter::Text(c), Parameter::Text(pad)]
}

impl Workload for Legacy {
    fn statements(&self) -> &[StatementText] {
        &self.texts
    }

    fn fill(&self, client: &mut Client, event: &mut Event) {
        let Client { random, statement_ids, .. } = client;
        event.clear();
        let is_one = self.options.one_table;
        let table = if is_one { 1 } else { random.uniform(1, self.options.common.tables) };
        let table = table as usize - 1;
        for (part, count) in &self.parts {
            for _ in 0..*count {
                match part {
                    Part::One(kind) => self.draw(*kind, table, random, statement_ids, event),
                    Part::Pair => self.draw_pair(table, random, statement_ids, event),
                }
            }
        }
        random.end_event();
    }
}
