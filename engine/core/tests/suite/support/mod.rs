//! What the tests of whole runs share: a spec against the reference server, and reading the record.
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

/// Whether one of many tries shows it: on a busy machine every thread may be woken late, and a host
/// that has its CPU used by others may be so for minutes.
pub fn in_a_quiet_moment(once: impl FnMut() -> bool) -> bool {
    std::iter::repeat_with(once).take(200).any(|is_shown| is_shown)
}

/// The reactors that this kernel allows.
pub fn reactors() -> Vec<&'static str> {
    if io_uring_is_allowed() { vec!["io_uring", "epoll"] } else { vec!["epoll"] }
}

/// `base` with `changes`, which win.
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
        // Statements are counted and planned for here, so none comes beside the workload's.
        "check_limits": false,
        "workload": {"name": workload, "options": {"tables": 2, "table_size": 1000}},
    });
    serde_json::from_value(merged(whole, changes)).unwrap()
}

pub fn go(server: &Reference, workload: &str, changes: &Value) -> RunRecord {
    run(&spec(server, workload, changes), &AtomicBool::new(false), &mut |_| {}).unwrap()
}
