//! Reading a record: counts, histograms and phases of its intervals.
#![allow(dead_code, reason = "each test takes what it needs")]

use dbdyno_core::record::histogram::Histogram;
use dbdyno_core::record::run_record::{RunRecord, decoded};
use serde_json::Value;

pub fn intervals(record: &RunRecord) -> Vec<Value> {
    serde_json::to_value(&record.intervals).unwrap().as_array().unwrap().clone()
}

pub fn total(record: &RunRecord, name: &str) -> u64 {
    intervals(record).iter().map(|interval| interval[name].as_u64().unwrap()).sum()
}

pub fn largest(record: &RunRecord, name: &str) -> u64 {
    intervals(record).iter().map(|interval| interval[name].as_u64().unwrap()).max().unwrap()
}

/// End of the run, s since the load began.
pub fn end_s(record: &RunRecord) -> f64 {
    intervals(record).last().unwrap()["end_s"].as_f64().unwrap()
}

pub fn errors(record: &RunRecord, code: &str) -> u64 {
    intervals(record).iter().filter_map(|interval| interval["errors"][code].as_u64()).sum()
}

pub fn in_phase(record: &RunRecord, phase: &str) -> Vec<Value> {
    intervals(record).into_iter().filter(|interval| interval["phase"] == phase).collect()
}

/// Histogram of this name over the whole run.
pub fn histogram(record: &RunRecord, name: &str) -> Histogram {
    let mut whole = Histogram::new();
    let parts = record.intervals.iter().filter_map(|interval| decoded(interval, name));
    parts.for_each(|part| whole.add(&part));
    whole
}
