//! Helpers for tests of whole runs: a spec for the reference server, and reading the record.
#![allow(dead_code, reason = "each test takes what it needs")]

use dbdyno_core::reactor::io_uring_is_allowed;
use dbdyno_core::record::run_record::RunRecord;
use dbdyno_core::reference::{Reference, Script};
use dbdyno_core::run::run;
use dbdyno_core::spec::RunSpec;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;

mod record;
pub use record::*;

pub fn server(script: Script) -> Reference {
    Reference::start(script).unwrap()
}

/// True if one of many tries succeeds: a busy machine may wake every thread late, and a host whose
/// CPU others use may do so for minutes.
pub fn in_a_quiet_moment(once: impl FnMut() -> bool) -> bool {
    std::iter::repeat_with(once).take(200).any(|is_shown| is_shown)
}

/// Middle value of an odd number of values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Reactors allowed by this kernel.
pub fn reactors() -> Vec<&'static str> {
    if io_uring_is_allowed() { vec!["io_uring", "epoll"] } else { vec!["epoll"] }
}

/// `base` with `changes`, which take precedence.
pub fn merged(mut base: Value, changes: &Value) -> Value {
    base.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    base
}

pub fn spec(server: &Reference, workload: &str, changes: &Value) -> RunSpec {
    let whole = json!({
        "endpoint": {"host": "127.0.0.1", "port": server.port},
        "user": server.login().user,
        "password": server.login().password,
        "database": "sbtest",
        "connections": 2,
        "window_s": 0.5,
        "interval_s": 0.1,
        "seed": 7,
        "workload": {"name": workload, "options": {"tables": 2, "table_size": 1000}},
    });
    serde_json::from_value(merged(whole, changes)).unwrap()
}

pub fn go(server: &Reference, workload: &str, changes: &Value) -> RunRecord {
    run(&spec(server, workload, changes), &AtomicBool::new(false), &mut |_| {}).unwrap()
}
