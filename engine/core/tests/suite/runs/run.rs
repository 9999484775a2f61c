//! Whole runs against the reference server, with known counts, latencies, errors and stops.

use crate::support::{
    end_s, errors, go, histogram, in_a_quiet_moment, merged, reactors, server, spec, total,
};
use dbdyno_core::reference::{Fail, Malformed, Script, Service, Stall};
use dbdyno_core::run::run;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// N = X · R: latencies are at least the service time, and a connection has one event at a time.
#[test]
fn real_latencies_lie_between_what_the_server_took_and_how_long_the_run_was() {
    for reactor in reactors() {
        let service_time = Duration::from_millis(5);
        let server = server(Script { service: Service::Fixed(service_time), ..Script::default() });
        let changes = json!({"connections": 4, "window_s": 0.25, "reactor": reactor});
        let record = go(&server, "oltp_point_select", &changes);
        assert_eq!((total(&record, "events"), record.unfinished), (server.statements(), 0));
        let busy_s = total(&record, "latency_ns_sum") as f64 / 1e9;
        let range_s = server.answering().as_secs_f64()..=4.0 * end_s(&record);
        assert!(range_s.contains(&busy_s), "{busy_s} s of {range_s:?} with {reactor}");
        assert!(server.answering() >= service_time * server.statements() as u32);
    }
}

#[test]
fn a_real_rate_is_kept() {
    let server = server(Script::default());
    for (reactor, threads) in reactors().into_iter().flat_map(|it| [(it, 1), (it, 4)]) {
        let changes = json!({"rate_per_s": 2000, "window_s": 0.25, "connections": 8,
            "reactor": reactor, "threads": threads});
        assert!(in_a_quiet_moment(|| {
            let record = go(&server, "oltp_point_select", &changes);
            let (arrivals, events) = (total(&record, "arrivals"), total(&record, "events"));
            // Five standard deviations of a Poisson count; the last due event may not be begun.
            assert!(arrivals.abs_diff(500) < 112, "{arrivals} arrivals with {reactor}");
            assert_eq!((events + record.unserved, record.unfinished), (arrivals, 0), "{reactor}");
            let lag = histogram(&record, "timer_lag");
            // A wait that only ticks would be late by some 25 ms.
            let is_on_time = lag.count() > arrivals / 2 && lag.quantile(0.5) < 5_000_000;
            is_on_time && record.unserved < 40
        }));
    }
}

#[test]
fn many_connections_share_few_threads() {
    let server = server(Script::default());
    for threads in [1, 3] {
        let changes = json!({"connections": 50, "threads": threads, "events": 1000, "window_s": 0});
        let record = go(&server, "oltp_read_only", &changes);
        assert_eq!((record.threads, record.connections), (threads, 50));
        assert_eq!(total(&record, "events"), 1000);
        assert_eq!(total(&record, "reads"), 14_000);
        assert_eq!(total(&record, "others"), 2_000);
        assert_eq!(record.stopped_by, "events");
        assert_eq!(histogram(&record, "simple_ranges").count(), 1000);
    }
}

#[test]
fn a_deadlock_begins_the_event_again_and_is_counted() {
    let fail = Fail::every(50, 1213, b"40001", "Deadlock found").only_containing("UPDATE");
    let server = server(Script { fail: Some(fail), ..Script::default() });
    let record = go(&server, "oltp_write_only", &json!({"window_s": 0, "events": 400}));
    assert!(record.failure.is_none());
    let restarts = total(&record, "restarts");
    assert!(restarts > 0);
    let errors = errors(&record, "1213");
    // An error at the very end abandons its event instead of retrying it.
    assert!((restarts..=restarts + 2).contains(&errors), "{errors} errors, {restarts} restarts");
}

/// Of 100,000 events of each connection two send an INSERT; a third INSERT leaves after the last
/// event.
#[test]
fn bulk_insert_counts_rows_as_events_and_sends_what_is_left() {
    for reactor in reactors() {
        let server = server(Script { log_statements: true, ..Script::default() });
        let changes =
            json!({"connections": 1, "window_s": 0, "events": 100_000, "reactor": reactor});
        let record = go(&server, "bulk_insert", &changes);
        assert_eq!((record.failure.clone(), record.stopped_by), (None, "events"));
        assert_eq!((total(&record, "events"), total(&record, "writes")), (100_000, 3));
        let fairness = serde_json::to_value(record.fairness).unwrap();
        assert_eq!(fairness["events_mean"], 100_000.0);
        let inserts: Vec<String> = server.log().into_iter().map(|it| it.text).collect();
        let rows: usize = inserts.iter().map(|sql| sql.matches('(').count()).sum();
        assert_eq!((inserts.len(), rows), (3, 100_000), "{reactor}");
        assert!(inserts[2].ends_with(",(100000,100000)"));
    }
}

#[test]
fn bulk_insert_ends_in_time_and_has_sent_every_row() {
    let server = server(Script { log_statements: true, ..Script::default() });
    let record = go(&server, "bulk_insert", &json!({}));
    assert_eq!((record.failure.clone(), record.stopped_by), (None, "time"));
    let rows = |sql: &str| sql.matches('(').count() as u64;
    let sent: u64 = server.log().iter().map(|it| rows(&it.text)).sum();
    assert_eq!(sent, total(&record, "events"));
    assert!(sent > 1000, "{sent} rows");
}

/// Every other INSERT is refused: two of the five long ones, and the rest at the end.
#[test]
fn bulk_insert_survives_ignored_errors() {
    let fail = Fail::every(2, 1213, b"40001", "Deadlock found");
    let server = server(Script { fail: Some(fail), ..Script::default() });
    let changes = json!({"connections": 1, "window_s": 0, "events": 200_000});
    let record = go(&server, "bulk_insert", &changes);
    assert_eq!((record.failure.clone(), record.stopped_by), (None, "events"));
    assert_eq!((total(&record, "events"), total(&record, "writes")), (200_000, 3));
    assert_eq!(total(&record, "restarts"), 2);
    assert_eq!(errors(&record, "1213"), 3);
}

#[test]
fn an_error_that_never_goes_away_does_not_outlast_the_window() {
    let fail = Fail::every(1, 1213, b"40001", "Deadlock found").only_containing("SELECT");
    let server = server(Script { fail: Some(fail), ..Script::default() });
    let record = go(&server, "oltp_point_select", &json!({}));
    assert_eq!(total(&record, "events"), 0);
    assert_eq!(record.stopped_by, "time");
}

#[test]
fn any_other_error_ends_the_run_and_keeps_what_was_measured() {
    for prepared in [true, false] {
        let fail = Fail::every(200, 1062, b"23000", "Duplicate entry");
        let server = server(Script { fail: Some(fail), ..Script::default() });
        let changes = json!({"window_s": 30, "prepared": prepared});
        let record = go(&server, "oltp_point_select", &changes);
        let failure = record.failure.clone().unwrap();
        assert_eq!((failure.stage, failure.code), ("run", Some(1062)));
        assert_eq!((failure.sqlstate.as_str(), record.stopped_by), ("23000", "error"));
        let sql = failure.statement.replace(|one: char| one.is_ascii_digit(), "");
        let id = if prepared { "?" } else { "" };
        assert_eq!(sql, format!("SELECT c FROM sbtest WHERE id={id}"));
        assert!(total(&record, "events") > 50);
    }
}

#[test]
fn a_server_that_dies_is_a_lost_connection() {
    for reactor in reactors() {
        let server = server(Script { die_after_statements: Some(300), ..Script::default() });
        let record = go(&server, "oltp_read_only", &json!({"window_s": 30, "reactor": reactor}));
        assert_eq!(record.failure.clone().unwrap().code, Some(2013), "{reactor}");
        assert!(total(&record, "reads") > 100, "{reactor}");
    }
}

#[test]
fn a_server_that_breaks_the_protocol_is_an_error_not_a_count() {
    for malformed in [Malformed::BadSequence, Malformed::Truncated, Malformed::HugeLength] {
        let server = server(Script { malformed: Some(malformed), ..Script::default() });
        let spec = spec(
            &server,
            "oltp_point_select",
            &json!({"prepared": false, "drain_s": 0.2, "window_s": 0.3}),
        );
        match run(&spec, &AtomicBool::new(false), &mut |_| {}) {
            Ok(record) => {
                assert_eq!(total(&record, "events"), 0, "{malformed:?} was counted");
            }
            Err(failure) => assert!(!failure.message.is_empty()),
        }
    }
}

#[test]
fn a_stop_does_not_wait_for_a_server_that_stalls() {
    let stall = Stall { after: Duration::from_millis(300), lasting: Duration::from_secs(3600) };
    let server = server(Script { stall: Some(stall), ..Script::default() });
    let spec = spec(&server, "oltp_point_select", &json!({"window_s": 60, "interval_s": 0.1}));
    let stop = AtomicBool::new(false);
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            run(&spec, &stop, &mut |it| {
                let it = serde_json::to_value(it).unwrap();
                told.send(it["events"].as_u64().unwrap()).unwrap();
            })
        });
        // The load runs, and then it stalls: a crowded machine takes its time for both.
        let patience = Duration::from_secs(20);
        while heard.recv_timeout(patience).unwrap() == 0 {}
        let mut still = 0; // a crowded machine has quiet intervals before the stall, too
        while still < 10 {
            still = if heard.recv_timeout(patience).unwrap() == 0 { still + 1 } else { 0 };
        }
        stop.store(true, Ordering::Relaxed);
        let record = running.join().unwrap().unwrap();
        assert_eq!((record.stopped_by, record.unfinished), ("stop", 2));
        assert!(total(&record, "events") > 0);
    });
}

#[test]
fn rows_without_an_end_do_not_outlast_the_window() {
    for (reactor, malformed) in reactors().into_iter().flat_map(|reactor| {
        [Malformed::Endless, Malformed::EndlessSlowly].map(|malformed| (reactor, malformed))
    }) {
        let server = server(Script { malformed: Some(malformed), ..Script::default() });
        let changes =
            json!({"window_s": 0.3, "drain_s": 0.2, "connections": 8, "reactor": reactor});
        let record = go(&server, "oltp_point_select", &changes);
        assert_eq!((total(&record, "events"), record.stopped_by), (0, "time"), "{reactor}");
        // Silence is recorded slice by slice.
        assert!(record.intervals.len() >= 3, "{reactor}: {} intervals", record.intervals.len());
    }
}

#[test]
fn one_seed_gives_the_same_statements_in_a_closed_loop_at_a_rate_and_with_thinking() {
    let texts = |seed: u64, schedule: Value| {
        let server = server(Script { log_statements: true, ..Script::default() });
        let changes = merged(
            json!({
                "connections": 1, "events": 30, "window_s": 0, "seed": seed, "prepared": false,
            }),
            &schedule,
        );
        go(&server, "oltp_read_write", &changes);
        server.log().into_iter().map(|statement| statement.text).collect::<Vec<_>>()
    };
    let closed = texts(1, json!({}));
    assert_eq!(closed.len(), 600);
    assert_eq!(closed, texts(1, json!({"rate_per_s": 500})));
    assert_eq!(closed, texts(1, json!({"think_time_ms": [0, 2]})));
    assert_ne!(closed, texts(2, json!({})));
}

#[test]
fn all_that_is_wrong_with_a_spec_is_said_at_once() {
    let server = server(Script::default());
    let changes = json!({
        "connections": 0,
        "interval_s": 0.001,
        "workload": {"name": "oltp_point_select", "options": {"tabels": 3}},
    });
    let spec = spec(&server, "oltp_point_select", &changes);
    let failure = run(&spec, &AtomicBool::new(false), &mut |_| {}).unwrap_err();
    assert_eq!(failure.stage, "spec");
    for part in ["connections", "interval_s", "tabels"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert_eq!(server.sessions(), 0);
}

#[test]
fn the_begin_of_the_load_is_told_before_the_first_statement_if_asked_for() {
    for asked in [false, true] {
        let server = server(Script::default());
        let changes = json!({"tell_begin": asked, "interval_s": 60});
        let mut told = Vec::new();
        let stop = AtomicBool::new(false);
        let record = run(&spec(&server, "oltp_point_select", &changes), &stop, &mut |live| {
            told.push((live.at_s == 0.0, server.statements() == 0));
        });
        assert_eq!(told[0], (asked, asked));
        assert_eq!(told.len(), record.unwrap().intervals.len() + usize::from(asked));
    }
}
