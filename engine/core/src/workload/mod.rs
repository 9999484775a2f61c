//! sysbench's OLTP workloads, draw for draw and byte for byte.
//!
//! A workload is shared by all connections and keeps no state visible to a run; the state of a
//! connection is passed in as a [`Client`]. So any thread can use it, and a seed replays the same
//! events.

mod bulk_insert;
pub mod event;
mod insert;
mod legacy;
mod mix;
mod options;
mod recipe;
mod select_random;
mod spelling;
mod statement;

use bulk_insert::BulkInsert;
use insert::Insert;
use mix::Mix;
use options::Options;
use select_random::SelectRandom;
use serde_json::{Map, Value};
use spelling::nearest;

use crate::driver::Driver;
use crate::random::{Distribution, Random};
use crate::workload::event::{Event, StatementKind};
use dbdyno_wire::mysql::command::Parameter;

/// A statement prepared by each connection before its first event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementText {
    /// The SQL; parameters are `?`, or on PostgreSQL `$1` and so on.
    pub sql: String,
    /// PostgreSQL's numbers of its parameters' types; MySQL receives them with the values.
    pub types: Vec<u32>,
    /// Kind of the statement.
    pub kind: StatementKind,
}

/// State of a connection in a workload.
#[derive(Debug)]
pub struct Client {
    /// Its place among the run's connections, from 0.
    pub number: u32,
    /// Its random stream.
    pub random: Random,
    /// The server's numbers of [`Workload::statements`], in their order.
    pub statement_ids: Vec<u32>,
    /// Rows numbered by the client itself.
    rows: u32,
    /// Room for many parameters, kept so an event does not allocate.
    parameters: Vec<Parameter<'static>>,
}

impl Client {
    /// A client before its first event.
    #[must_use]
    pub const fn new(number: u32, statement_ids: Vec<u32>, random: Random) -> Self {
        Self { number, random, statement_ids, rows: 0, parameters: Vec::new() }
    }
}

/// A kind of event.
pub trait Workload: Send + Sync {
    /// The statements to prepare on each connection, in this order; empty if all are sent as text.
    ///
    /// Mind the product: `statements().len()` times the connections must not exceed the server's
    /// `max_prepared_stmt_count`.
    fn statements(&self) -> &[StatementText];

    /// Draws an event of `client` and writes its packets over the last event's. An event without
    /// packets is complete at once.
    ///
    /// # Panics
    /// The client lacks the server's id for a statement of [`Self::statements`].
    fn fill(&self, client: &mut Client, event: &mut Event);

    /// Writes the remainder to send after a client's last event, which belongs to no event.
    fn finish(&self, event: &mut Event) {
        event.clear();
    }
}

/// The workload of a script: each client's own thread of the script chooses its events.
pub(crate) struct Scripted;

impl Workload for Scripted {
    fn statements(&self) -> &[StatementText] {
        &[]
    }

    fn fill(&self, _client: &mut Client, _event: &mut Event) {
        unreachable!("a script's thread is asked instead")
    }
}

/// Some connections of a run: `first`, counted from 0, and every `step`th after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRange {
    /// The lowest number.
    pub first: u32,
    /// Distance between two numbers.
    pub step: u32,
}

impl ConnectionRange {
    /// All connections of a run.
    pub const ALL: Self = Self { first: 0, step: 1 };

    /// Part `number` of this range, which is dealt out to `of` in turn.
    #[must_use]
    pub const fn part(self, number: u32, of: u32) -> Self {
        Self { first: self.first + number * self.step, step: self.step * of }
    }

    /// Number of the run's `connections` in the range.
    #[must_use]
    pub const fn count(self, connections: u32) -> u32 {
        connections.saturating_sub(self.first).div_ceil(self.step)
    }

    /// The number of the connection at a place in the range.
    #[must_use]
    pub const fn number(self, place: u32) -> u32 {
        self.first + place * self.step
    }
}

/// Specification of a workload to build.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSpec {
    /// Its SQL dialect and protocol.
    pub driver: Driver,
    /// A name among [`names`] or [`legacy_names`].
    pub name: String,
    /// sysbench's options, with underscores.
    pub options: Map<String, Value>,
    /// Distribution of ids and `k`.
    pub distribution: Distribution,
    /// True to prepare statements; otherwise they are sent as text with literals.
    pub prepared: bool,
    /// Number of connections of the run.
    pub connections: u32,
    /// The connections of this process.
    pub own: ConnectionRange,
}

type Make = fn(&WorkloadSpec, &Options) -> Box<dyn Workload>;

/// The workloads besides the mixes.
const OTHERS: [(&str, Make); 4] = [
    (insert::NAME, |spec, options| Box::new(Insert::new(spec, options))),
    (select_random::POINTS, |spec, options| Box::new(SelectRandom::points(spec, options))),
    (select_random::RANGES, |spec, options| Box::new(SelectRandom::ranges(spec, options))),
    (bulk_insert::NAME, |spec, _| Box::new(BulkInsert::new(spec.driver))),
];

/// The names of today's workloads; the workloads of before 1.0 are in [`legacy_names`].
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mixes = recipe::RECIPES.iter().map(|recipe| recipe.name);
    mixes.chain(OTHERS.iter().map(|(name, _)| *name)).collect()
}

/// The names of the workloads of sysbench 0.4 and 0.5, which have their own tables and occur in no
/// plan.
#[must_use]
pub fn legacy_names() -> Vec<&'static str> {
    legacy::names().collect()
}

/// Builds the workload named in `spec`.
///
/// # Errors
/// All mistakes of the specification at once, one sentence each.
pub fn build(spec: &WorkloadSpec) -> Result<Box<dyn Workload>, Vec<String>> {
    if legacy::names().any(|name| name == spec.name) {
        if spec.driver == Driver::Pgsql {
            return Err(vec![format!("{}: workloads of before 1.0 run on MySQL only", spec.name)]);
        }
        return legacy::build(spec);
    }
    let (options, mut mistakes) = Options::read(&spec.options);
    mistakes
        .extend(spec.distribution.mistakes().into_iter().map(|it| format!("distribution: {it}")));
    let recipe = recipe::RECIPES.iter().find(|recipe| recipe.name == spec.name);
    let other = OTHERS.iter().find(|(name, _)| *name == spec.name);
    if recipe.is_none() && other.is_none() {
        mistakes.insert(0, unknown(&spec.name));
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    if let Some((_, make)) = other {
        return Ok(make(spec, &options));
    }
    let recipe = recipe.expect("an unknown name is a mistake");
    let mix = Mix::new(recipe, &options, spec);
    if mix.is_empty() {
        return Err(vec![format!(
            "{}: these options leave an event without statements",
            spec.name
        )]);
    }
    Ok(Box::new(mix))
}

fn unknown(name: &str) -> String {
    let known = names();
    let hint = nearest(name, &known).map_or(String::new(), |near| format!(", perhaps {near}?"));
    let list = known.join(", ");
    format!("workload {name} is not known{hint} (known: {list})")
}
