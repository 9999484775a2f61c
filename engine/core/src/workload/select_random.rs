//! `select_random_points` and `select_random_ranges`: one SELECT with many random values of `k`.
//!
//! Both read `sbtest1` only, and each connection draws from its own part of the values, so the
//! ranges of two connections do not overlap. The parts' ends are cut as sysbench cuts them.

use super::options::Options;
use super::statement::Statement;
use super::{Client, StatementText, Workload, WorkloadSpec};
use crate::random::Sampler;
use crate::workload::event::{Event, StatementKind};
use dbdyno_wire::mysql::command::Parameter;

/// Name of the workload with many values.
pub(super) const POINTS: &str = "select_random_points";
/// Name of the workload with many ranges.
pub(super) const RANGES: &str = "select_random_ranges";

/// One SELECT for each event.
pub(super) struct SelectRandom {
    statement: Statement,
    texts: Vec<StatementText>,
    draws: u32,
    /// Distance from a range's first value to its last; `None` for points.
    delta: Option<u32>,
    /// Each connection's part of the values.
    parts: Vec<Sampler>,
}

impl SelectRandom {
    pub(super) fn points(spec: &WorkloadSpec, options: &Options) -> Self {
        let list = vec!["?"; options.random_points as usize].join(", ");
        let statement = Statement::with(spec.driver, StatementKind::RandomPoints, &list);
        Self { draws: options.random_points, ..Self::new(statement, spec, options) }
    }

    pub(super) fn ranges(spec: &WorkloadSpec, options: &Options) -> Self {
        let draws = options.number_of_ranges;
        let list = vec!["k BETWEEN ? AND ?"; draws as usize].join(" OR ");
        let statement = Statement::with(spec.driver, StatementKind::RandomRanges, &list);
        let delta = Some(options.delta);
        Self { draws, delta, ..Self::new(statement, spec, options) }
    }

    /// The script of before 1.0: the same, but for blanks at the end of the text.
    pub(super) fn legacy_ranges(spec: &WorkloadSpec, options: &Options) -> Self {
        let today = Self::ranges(spec, options);
        let statement = Statement::of(
            spec.driver,
            StatementKind::RandomRanges,
            &format!("{}         ", today.statement.text().sql),
        );
        let texts = if spec.prepared { vec![statement.text()] } else { Vec::new() };
        Self { statement, texts, ..today }
    }

    fn new(statement: Statement, spec: &WorkloadSpec, options: &Options) -> Self {
        let texts = if spec.prepared { vec![statement.text()] } else { Vec::new() };
        let part = |number| {
            let (low, high) = part(number, spec.connections, options.table_size);
            spec.distribution.over(low, high)
        };
        let parts = (0..spec.connections).map(part).collect();
        Self { statement, texts, draws: 0, delta: None, parts }
    }
}

/// The values of connection `number` of `connections`. The ends are shared with the neighbours, and
/// the first is 0, which no row has.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as sysbench cuts")]
fn part(number: u32, connections: u32, table_size: u32) -> (u32, u32) {
    let length = f64::from(table_size) / f64::from(connections);
    let low = length * f64::from(number);
    (low as u32, (low + length) as u32)
}

impl Workload for SelectRandom {
    fn statements(&self) -> &[StatementText] {
        &self.texts
    }

    fn fill(&self, client: &mut Client, event: &mut Event) {
        let Client { number, random, statement_ids, parameters, .. } = client;
        event.clear();
        parameters.clear();
        let sampler = &self.parts[*number as usize];
        for _ in 0..self.draws {
            let value = i64::from(sampler.draw(random));
            parameters.push(Parameter::BigInt(value));
            parameters.extend(self.delta.map(|it| Parameter::BigInt(value + i64::from(it))));
        }
        match statement_ids.first() {
            Some(id) => self.statement.execute(*id, parameters, event),
            None => self.statement.query(parameters, event),
        }
        random.end_event();
    }
}
