//! What an event consists of: sysbench's OLTP workloads, draw for draw and byte for byte.
//!
//! A workload is shared by all connections and has no state of its own that a run could see; what
//! differs from connection to connection (its draws, its statements' ids) is handed in. So one
//! workload can be asked from any thread, and a seed replays the same events.

mod insert;
mod mix;
mod options;
mod recipe;
mod spelling;
mod statement;

use insert::Insert;
use mix::Mix;
use options::Options;
use serde_json::{Map, Value};
use spelling::nearest;

use crate::event::{Event, StatementKind};
use crate::random::{Distribution, Random};

/// A statement that each connection prepares before its first event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementText {
    /// The SQL, with `?` for its parameters.
    pub sql: String,
    /// What it does.
    pub kind: StatementKind,
}

/// A kind of event.
pub trait Workload: Send + Sync {
    /// The name it is asked for.
    fn name(&self) -> &str;

    /// What each connection prepares, in this order; empty when all travels as text.
    ///
    /// Mind the product: `statements().len()` times the connections must not exceed the server's
    /// `max_prepared_stmt_count`.
    fn statements(&self) -> &[StatementText];

    /// Draws one event and writes its packets over `event`.
    ///
    /// # Panics
    /// When `statement_ids` does not hold the server's id for each of [`Self::statements`].
    fn fill(&self, random: &mut Random, statement_ids: &[u32], event: &mut Event);

    /// How many statements an event has.
    fn queries_per_event(&self) -> u32;
}

/// Which workload a run asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSpec {
    /// One of [`names`].
    pub name: String,
    /// sysbench's options, with underscores.
    pub options: Map<String, Value>,
    /// What ids and `k` are drawn from.
    pub distribution: Distribution,
    /// Whether statements are prepared; otherwise they travel as text with literals.
    pub prepared: bool,
}

/// The names of all workloads.
#[must_use]
pub fn names() -> Vec<&'static str> {
    recipe::RECIPES.iter().map(|recipe| recipe.name).chain([insert::NAME]).collect()
}

/// The workload that `spec` asks for.
///
/// # Errors
/// All mistakes of the specification at once, one sentence each.
pub fn build(spec: &WorkloadSpec) -> Result<Box<dyn Workload>, Vec<String>> {
    let (options, mut mistakes) = Options::read(&spec.options);
    mistakes
        .extend(spec.distribution.mistakes().into_iter().map(|it| format!("distribution: {it}")));
    let recipe = recipe::RECIPES.iter().find(|recipe| recipe.name == spec.name);
    if recipe.is_none() && spec.name != insert::NAME {
        mistakes.insert(0, unknown(&spec.name));
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let Some(recipe) = recipe else {
        return Ok(Box::new(Insert::new(&options, spec.distribution)));
    };
    let mix = Mix::new(recipe, &options, spec.distribution, spec.prepared);
    if mix.queries_per_event() == 0 {
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
