//! The specification of a Lua script: its text, sysbench's version, options, and its database.

use super::{IgnoredErrors, connect_limit, server_spec, yes};
use crate::random::Distribution;
use serde::Deserialize;
use serde_json::{Map, Value};

server_spec! {
    /// The database of a script's connections, and the treatment of its statements.
    pub struct DatabaseSpec {
        /// Prepared statements, or text with literals.
        #[serde(default = "yes")]
        pub prepared: bool,
        /// Errors after which an event is retried.
        #[serde(default)]
        pub ignore_errors: IgnoredErrors,
        /// True to answer every statement with OK, without any connection.
        #[serde(default)]
        pub dry_run: bool,
        /// Timeout of connecting, and of each answer of the login, s.
        #[serde(default = "connect_limit")]
        pub connect_timeout_s: f64,
    }
}

/// A script and the values given to its states.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {
    /// Its text.
    pub source: String,
    /// Its chunk name in LuaJIT's messages: `@` and the path.
    pub chunk: String,
    /// Its name in messages, as typed by the user.
    pub name: String,
    /// sysbench's version, `1.0.20` or `1.1.0`.
    pub version: String,
    /// The program and its arguments, from 0.
    pub argv: Vec<String>,
    /// The command, if any.
    pub command: Option<String>,
    /// Path of the script; `None` for the standard input.
    pub script_path: Option<String>,
    /// Lua's search path for modules.
    pub package_path: String,
    /// Lua's search path for modules in C.
    pub package_cpath: String,
    /// LuaJIT's `-j`.
    #[serde(default)]
    pub luajit_cmd: Option<String>,
    /// `mysql` or `pgsql`.
    pub driver: String,
    /// Level of the log.
    pub verbosity: u32,
    /// Distribution behind `sysbench.rand.default`.
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
    /// Database of its connections.
    pub database: DatabaseSpec,
    /// `sysbench.opt`, for the threads of a run.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Options that become globals too, for a script without declared options.
    #[serde(default)]
    pub globals: Vec<String>,
}
