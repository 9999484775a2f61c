//! Specs as foreign text: unknown keys are refused anywhere, and secrets stay hidden.

use crate::support::merged;
use dbdyno_core::spec::RunSpec;
use serde_json::{Value, json};

fn whole(changes: Value) -> Value {
    let whole = json!({
        "endpoint": {"host": "127.0.0.1", "port": 3306},
        "user": "bench",
        "password": "top-secret",
        "database": "sbtest",
        "connections": 2,
        "window_s": 1,
        "seed": 7,
        "workload": {"name": "oltp_point_select", "options": {}},
    });
    merged(whole, &changes)
}

fn read(changes: Value) -> Result<RunSpec, String> {
    serde_json::from_str(&whole(changes).to_string()).map_err(|error| error.to_string())
}

#[test]
fn an_unknown_key_is_refused_at_every_level() {
    let endpoint = "endpoint must be a host and a port, or a socket";
    let cases = [
        (json!({"conections": 2}), "unknown field `conections`"),
        (json!({"workload": {"name": "oltp_point_select", "option": {}}}), "`option`"),
        (json!({"distribution": {"name": "uniform", "h": 0.2}}), "`h`"),
        (json!({"endpoint": {"host": "a", "port": 1, "socket": "/run/s"}}), endpoint),
        (json!({"endpoint": {"host": "a", "port": 70_000}}), endpoint),
        (json!({"ignore_errors": [70_000]}), "ignore_errors must be a list of codes"),
        (json!({"arrival": "bursts"}), "unknown variant `bursts`"),
    ];
    for (changes, words) in cases {
        let error = read(changes).expect_err("a refusal");
        assert!(error.contains(words), "{error:?} should say {words:?}");
    }
}

#[test]
fn numbers_that_cannot_be_meant_are_refused() {
    let cases = [
        (json!({"window_s": 1e-12}), "window_s"), // rounded to 0 it would be no limit at all
        (json!({"window_s": 1e300}), "window_s"),
        (json!({"warmup_s": -1}), "warmup_s"),
        (json!({"drain_s": 1e12}), "drain_s"),
        (json!({"threads": 4_000_000_000_u32, "connections": 4_000_000_000_u32}), "threads"),
        (json!({"percentiles": [101]}), "percentiles"),
        (json!({"connect_timeout_s": 0}), "connect_timeout_s"),
        (json!({"ignore_errors": "some"}), "ignore_errors"),
        (json!({"rate_per_s": -1}), "rate_per_s"),
        (json!({"rate_per_s": 1e12}), "rate_per_s"),
        (json!({"think_time_ms": [5, 1]}), "think_time_ms"),
        (json!({"think_time_ms": [-5, 1]}), "think_time_ms"),
        (json!({"rate_per_s": 10, "think_time_ms": [1, 2]}), "rate_per_s and think_time_ms"),
        (json!({"round_trip_ms": -1}), "round_trip_ms"),
        (json!({"dry_run": true, "reconnect_every": 1}), "reconnect_every"),
    ];
    for (changes, name) in cases {
        let mistakes = read(changes.clone()).expect("numbers").mistakes();
        assert_eq!(mistakes.len(), 1, "{changes}: {mistakes:?}");
        assert!(mistakes[0].starts_with(name), "{mistakes:?}");
    }
}

#[test]
fn what_python_writes_for_no_number_is_refused() {
    let text = whole(json!({"window_s": 123})).to_string();
    for number in ["NaN", "Infinity", "1e999", "\"1\"", "null"] {
        let text = text.replace("123", number);
        assert!(serde_json::from_str::<RunSpec>(&text).is_err(), "{number}");
    }
    assert!(read(json!({"events": -1})).is_err());
}

#[test]
fn a_spec_is_shown_without_its_password() {
    let spec = read(json!({})).expect("a sound spec");
    assert_eq!(spec.mistakes(), Vec::<String>::new());
    assert!(!format!("{spec:?}").contains("top-secret"));
}

#[test]
fn engine_threads_follow_connections_rate_and_cores() {
    let threads = |changes: Value, cores| read(changes).unwrap().engine_threads(cores);
    assert_eq!(threads(json!({"connections": 1}), 2), 1);
    assert_eq!(threads(json!({"connections": 64}), 2), 8);
    assert_eq!(threads(json!({"connections": 1000}), 256), 16);
    assert_eq!(threads(json!({"connections": 2, "threads": 7}), 64), 2);
    // Each thread that waits for a schedule wakes up with every event of it.
    assert_eq!(threads(json!({"connections": 1000, "rate_per_s": 1000}), 64), 1);
    assert_eq!(threads(json!({"connections": 1000, "rate_per_s": 120_000}), 64), 3);
    assert_eq!(threads(json!({"connections": 1000, "rate_per_s": 1e9}), 64), 8);
}
