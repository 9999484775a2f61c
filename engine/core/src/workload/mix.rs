//! sysbench's mixes of prepared statements: everything of `oltp_*` but `oltp_insert`.
//!
//! Order of statements and of draws follows the Lua scripts of sysbench 1.0.20: a table is drawn
//! anew for each group of statements, an id for each statement.

use super::options::Options;
use super::recipe::Recipe;
use super::statement::{Statement, has_table};
use super::{Client, StatementText, Workload, WorkloadSpec};
use crate::driver::Driver;
use crate::random::{C_FORMAT, PAD_FORMAT, Random, Sampler};
use crate::workload::event::StatementKind::{
    Begin, Commit, Deletes, DistinctRanges, Execute, IndexUpdates, Inserts, NonIndexUpdates,
    OrderRanges, PointSelects, Query, RandomPoints, RandomRanges, Rollback, SimpleRanges,
    SumRanges,
};
use crate::workload::event::{Event, StatementKind};
use dbdyno_wire::mysql::command::Parameter;

/// Statements of a kind on a table, repeated.
struct Group {
    kind: StatementKind,
    count: u32,
}

/// A [`Recipe`] with its options.
pub(super) struct Mix {
    groups: Vec<Group>,
    /// `BEGIN` as text, for a server that does not prepare it.
    begin: Option<Statement>,
    /// The statements prepared by the script, in its order: for each kind table 1, 2, …
    statements: Vec<Statement>,
    /// Index into `statements` of each kind's table 1, by the kind's number.
    first: [usize; StatementKind::ALL.len()],
    texts: Vec<StatementText>,
    prepared: bool,
    tables: u32,
    range_size: u32,
    ids: Sampler,
}

impl Mix {
    pub(super) fn new(recipe: &Recipe, options: &Options, spec: &WorkloadSpec) -> Self {
        let (statements, first) = statements(recipe, options, spec.driver);
        let texts = if spec.prepared {
            statements.iter().map(Statement::text).collect()
        } else {
            Vec::new()
        };
        let begin = || Statement::new(Driver::Mysql, Begin, 0);
        let group = |kind| Group { kind, count: recipe.count(kind, options) };
        Self {
            groups: recipe.event(options).map(group).collect(),
            begin: (spec.driver == Driver::Mysql).then(begin),
            statements,
            first,
            texts,
            prepared: spec.prepared,
            tables: options.tables,
            range_size: options.range_size,
            ids: spec.distribution.over(1, options.table_size),
        }
    }

    /// True if an event has no statements.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.count == 0)
    }

    /// Appends a statement to the event.
    fn send(
        &self,
        (kind, table): (StatementKind, u32),
        parameters: &[Parameter<'_>],
        ids: &[u32],
        event: &mut Event,
    ) {
        let index = self.first[kind as usize] + table as usize - 1;
        if self.prepared {
            self.statements[index].execute(ids[index], parameters, event);
        } else {
            self.statements[index].query(parameters, event);
        }
    }

    /// Draws and appends a statement of `kind` on `table`; for `Inserts` the pair.
    fn draw(
        &self,
        kind: StatementKind,
        table: u32,
        random: &mut Random,
        ids: &[u32],
        event: &mut Event,
    ) {
        let mut c = *C_FORMAT;
        let mut pad = *PAD_FORMAT;
        match kind {
            Begin | Commit => match self.begin.as_ref().filter(|_| kind == Begin) {
                Some(begin) => begin.query(&[], event),
                None => self.send((kind, 1), &[], ids, event),
            },
            PointSelects | IndexUpdates | Deletes => {
                self.send((kind, table), &[self.id(random)], ids, event);
            }
            SimpleRanges | SumRanges | OrderRanges | DistinctRanges => {
                let low = i64::from(self.ids.draw(random));
                let high = low + i64::from(self.range_size) - 1;
                self.send(
                    (kind, table),
                    &[Parameter::BigInt(low), Parameter::BigInt(high)],
                    ids,
                    event,
                );
            }
            NonIndexUpdates => {
                random.fill_string(C_FORMAT, &mut c);
                let id = self.id(random);
                self.send((kind, table), &[Parameter::Text(&c), id], ids, event);
            }
            Inserts => {
                let (id, k) = (self.id(random), self.id(random));
                random.fill_string(C_FORMAT, &mut c);
                random.fill_string(PAD_FORMAT, &mut pad);
                self.send((Deletes, table), &[id], ids, event);
                let row = [id, k, Parameter::Text(&c), Parameter::Text(&pad)];
                self.send((kind, table), &row, ids, event);
            }
            RandomPoints | RandomRanges | Rollback | Query | Execute => {
                unreachable!("no recipe has {kind:?}")
            }
        }
    }

    fn id(&self, random: &mut Random) -> Parameter<'static> {
        Parameter::BigInt(i64::from(self.ids.draw(random)))
    }
}

impl Workload for Mix {
    fn statements(&self) -> &[StatementText] {
        &self.texts
    }

    fn fill(&self, client: &mut Client, event: &mut Event) {
        let Client { random, statement_ids, .. } = client;
        event.clear();
        for group in &self.groups {
            let table = if has_table(group.kind) { random.uniform(1, self.tables) } else { 1 };
            for _ in 0..group.count {
                self.draw(group.kind, table, random, statement_ids, event);
            }
        }
        random.end_event();
    }
}

/// All statements of a recipe, and the index of each kind's first.
fn statements(
    recipe: &Recipe,
    options: &Options,
    driver: Driver,
) -> (Vec<Statement>, [usize; StatementKind::ALL.len()]) {
    let mut all = Vec::new();
    let mut first = [0; StatementKind::ALL.len()];
    let begins = driver == Driver::Pgsql && recipe.event(options).any(|kind| kind == Begin);
    for kind in begins.then_some(Begin).into_iter().chain(recipe.prepares(options)) {
        first[kind as usize] = all.len();
        let tables = if has_table(kind) { options.tables } else { 1 };
        all.extend((1..=tables).map(|table| Statement::new(driver, kind, table)));
    }
    (all, first)
}
