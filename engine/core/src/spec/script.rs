//! What a Lua script is told: its text, sysbench's version, options, and where its connections go.

use super::{IgnoredErrors, connect_limit, server_spec, yes};
use crate::random::Distribution;
use serde::Deserialize;
use serde_json::{Map, Value};

server_spec! {
    /// Where a script's connections go, and what happens to its statements.
    pub struct DatabaseSpec {
        /// Prepared statements, or text with literals.
        #[serde(default = "yes")]
        pub prepared: bool,
        /// Errors after which an event is retried.
        #[serde(default)]
        pub ignore_errors: IgnoredErrors,
        /// Whether to answer every statement with OK without any connection.
        #[serde(default)]
        pub dry_run: bool,
        /// Timeout of connecting, and of each answer of the login, s.
        #[serde(default = "connect_limit")]
        pub connect_timeout_s: f64,
    }
}

/// A script and all that its states are told.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {
    /// Its text.
    pub source: String,
    /// What LuaJIT calls it in messages: `@` and the path.
    pub chunk: String,
    /// What messages call it: the name as it was typed.
    pub name: String,
    /// sysbench's version, `1.0.20` or `1.1.0`.
    pub version: String,
    /// The program and its arguments, from 0.
    pub argv: Vec<String>,
    /// The command; None if there was none.
    pub command: Option<String>,
    /// Where the script is; None when it came from the standard input.
    pub script_path: Option<String>,
    /// Where modules are looked for.
    pub package_path: String,
    /// Where modules in C are looked for.
    pub package_cpath: String,
    /// LuaJIT's `-j`.
    #[serde(default)]
    pub luajit_cmd: Option<String>,
    /// `mysql` or `pgsql`.
    pub driver: String,
    /// How much is logged.
    pub verbosity: u32,
    /// What `sysbench.rand.default` draws from.
    #[serde(default)]
    pub distribution: Distribution,
    /// Parameters of `sysbench.rand.gaussian`.
    pub gaussian: Distribution,
    /// Parameters of `sysbench.rand.special`.
    pub special: Distribution,
    /// Parameters of `sysbench.rand.pareto`.
    pub pareto: Distribution,
    /// Parameters of `sysbench.rand.zipfian`.
    pub zipfian: Distribution,
    /// Where its connections go.
    pub database: DatabaseSpec,
    /// `sysbench.opt`, for the threads of a run.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Options that are globals too, where the script declares none.
    #[serde(default)]
    pub globals: Vec<String>,
}
