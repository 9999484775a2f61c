//! What the tests of whole runs share: a spec against the reference server, and reading the record.
#![allow(dead_code, reason = "each test takes what it needs")]

use dbdyno_core::reactor::io_uring_is_allowed;
use dbdyno_core::record::histogram::Histogram;
use dbdyno_core::record::run_record::{RunRecord, decoded};
use dbdyno_core::reference::{Reference, Script};
use dbdyno_core::run::run;
use dbdyno_core::spec::RunSpec;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;

pub fn server(script: Script) -> Reference {
    Reference::start(script).unwrap()
}

/// The reactors that this kernel allows.
pub fn reactors() -> Vec<&'static str> {
    if io_uring_is_allowed() { vec!["io_uring", "epoll"] } else { vec!["epoll"] }
}

pub fn spec(server: &Reference, workload: &str, changes: &Value) -> RunSpec {
    let mut whole = json!({
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
    whole.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

pub fn go(server: &Reference, workload: &str, changes: &Value) -> RunRecord {
    run(&spec(server, workload, changes), &AtomicBool::new(false), &mut |_| {}).unwrap()
}

fn intervals(record: &RunRecord) -> Vec<Value> {
    serde_json::to_value(&record.intervals).unwrap().as_array().unwrap().clone()
}

pub fn total(record: &RunRecord, name: &str) -> u64 {
    intervals(record).iter().map(|interval| interval[name].as_u64().unwrap()).sum()
}

pub fn largest(record: &RunRecord, name: &str) -> u64 {
    intervals(record).iter().map(|interval| interval[name].as_u64().unwrap()).max().unwrap()
}

/// When the run ended, s since the load began.
pub fn end_s(record: &RunRecord) -> f64 {
    intervals(record).last().unwrap()["end_s"].as_f64().unwrap()
}

pub fn errors(record: &RunRecord, code: &str) -> u64 {
    intervals(record).iter().filter_map(|interval| interval["errors"][code].as_u64()).sum()
}

pub fn in_phase(record: &RunRecord, phase: &str) -> Vec<Value> {
    intervals(record).into_iter().filter(|interval| interval["phase"] == phase).collect()
}

/// The histogram of this name over the whole run.
pub fn histogram(record: &RunRecord, name: &str) -> Histogram {
    let mut whole = Histogram::new();
    let parts = record.intervals.iter().filter_map(|interval| decoded(interval, name));
    parts.for_each(|part| whole.add(&part));
    whole
}
