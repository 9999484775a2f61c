//! Lost and renewed connections, and runs without any, against the reference server.

use crate::support::{
    end_s, errors, go, histogram, in_a_quiet_moment, largest, merged, reactors, server, spec, total,
};
use dbdyno_core::error::{CONNECTION_LOST, Failure};
use dbdyno_core::reference::{Fail, Reference, Script};
use dbdyno_core::run::run;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn hanging_up(every: u64) -> Reference {
    server(Script { hang_up_every_nth_statement: Some(every), ..Script::default() })
}

#[test]
fn a_lost_connection_is_opened_again_and_counted_once() {
    for schedule in [json!({}), json!({"rate_per_s": 500}), json!({"think_time_ms": [1, 3]})] {
        for reactor in reactors() {
            let server = hanging_up(97);
            let changes = merged(
                json!({"ignore_errors": [2013], "reactor": reactor, "events": 150,
                "window_s": 0, "connections": 4}),
                &schedule,
            );
            let record = go(&server, "oltp_read_only", &changes);
            assert_eq!((record.failure.clone(), record.stopped_by), (None, "events"), "{reactor}");
            let reconnects = total(&record, "reconnects");
            assert!((20..=40).contains(&reconnects), "{reconnects} with {reactor}, {schedule}");
            assert_eq!(total(&record, "restarts"), reconnects);
            assert_eq!(errors(&record, "2013"), 0, "a connection that is back is no error");
            assert_eq!((total(&record, "events"), record.unfinished), (150, 0));
        }
    }
}

#[test]
fn an_error_packet_that_says_lost_does_the_same() {
    let fail = Fail::every(20, 2006, b"HY000", "MySQL server has gone away");
    for reactor in reactors() {
        // The old session is still open, and may not disturb the new one.
        let server = server(Script { fail: Some(fail.clone()), ..Script::default() });
        let changes = json!({"ignore_errors": "all", "events": 200, "window_s": 0,
            "reactor": reactor});
        let record = go(&server, "oltp_point_select", &changes);
        assert_eq!((total(&record, "events"), record.failure.clone()), (200, None));
        assert!(total(&record, "reconnects") >= 9, "{reactor}");
        assert_eq!(errors(&record, "2006"), 0);
    }
}

#[test]
fn without_leave_to_ignore_it_a_lost_connection_ends_the_run() {
    let server = hanging_up(50);
    let record = go(&server, "oltp_point_select", &json!({"window_s": 30}));
    assert_eq!(record.failure.clone().unwrap().code, Some(CONNECTION_LOST));
    assert_eq!((record.stopped_by, total(&record, "reconnects")), ("error", 0));
}

#[test]
fn a_server_that_never_comes_back_does_not_outlast_the_window() {
    for reactor in reactors() {
        let server = server(Script { die_after_statements: Some(20), ..Script::default() });
        let changes = json!({"ignore_errors": [2013], "window_s": 1, "drain_s": 200,
            "reactor": reactor});
        let record = go(&server, "oltp_point_select", &changes);
        // Far below the time limit of events in flight.
        assert!(end_s(&record) < 100.0, "{} s", end_s(&record));
        assert_eq!((record.failure.clone(), record.stopped_by), (None, "time"), "{reactor}");
        // The last answer is lost if the server dies with the other connection's request unread.
        let events = total(&record, "events");
        assert!((19..=20).contains(&events), "{events}");
        assert_eq!(record.unfinished, 2);
        assert!(errors(&record, "2003") >= 4, "failed attempts are errors");
        assert_eq!(total(&record, "reconnects"), 0);
        assert!(largest(&record, "in_flight") == 2);
    }
}

#[test]
fn a_run_is_stopped_while_it_reconnects() {
    let server = server(Script { die_after_statements: Some(100), ..Script::default() });
    let changes = json!({"ignore_errors": "all", "window_s": 600, "connections": 1});
    let stop = AtomicBool::new(false);
    let record = run(&spec(&server, "oltp_point_select", &changes), &stop, &mut |it| {
        let has_tried = serde_json::to_value(it).unwrap()["errors"].as_u64() > Some(0);
        stop.fetch_or(has_tried, Ordering::Relaxed);
    });
    let record = record.unwrap();
    assert!(end_s(&record) < 300.0, "{} s", end_s(&record));
    assert_eq!((record.stopped_by, record.unfinished), ("stop", 1));
}

#[test]
fn a_connection_is_renewed_after_so_many_events_and_its_latency_holds_that() {
    for reactor in reactors() {
        let server = server(Script { log_statements: true, ..Script::default() });
        let changes = json!({"reconnect_every": 5, "events": 100, "window_s": 0,
            "connections": 1, "reactor": reactor});
        let record = go(&server, "oltp_point_select", &changes);
        assert_eq!((record.failure.clone(), total(&record, "events")), (None, 100));
        assert_eq!((total(&record, "reconnects"), total(&record, "restarts")), (20, 0));
        let mut sessions: Vec<u32> = server.log().iter().map(|it| it.connection_id).collect();
        assert_eq!(sessions.len(), 100);
        sessions.dedup();
        assert_eq!(sessions, (1..=20).collect::<Vec<_>>(), "{reactor}");
        // A login takes a dozen round trips; a statement takes one.
        let (event, statement) = (histogram(&record, "event"), histogram(&record, "point_selects"));
        assert!(event.quantile(0.95) > 2 * statement.quantile(0.5), "{event:?} {statement:?}");
    }
}

/// Failure of a run whose server goes away after `after` statements and a rest.
fn deserted(after: u64, rest: Duration, changes: &Value) -> Failure {
    let mut server = server(Script::default());
    let spec = spec(&server, "oltp_point_select", changes);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&spec, &AtomicBool::new(false), &mut |_| {}));
        while server.statements() < after {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(rest); // statements are counted before they are answered
        server.stop();
        running.join().unwrap().unwrap().failure.expect("a server went away")
    })
}

#[test]
fn a_renewal_that_fails_ends_the_run() {
    let failure = deserted(20, Duration::ZERO, &json!({"reconnect_every": 1, "window_s": 30}));
    // The server goes away while a session is opened, prepared or used.
    let is_opening = ["connect", "prepare"].contains(&failure.stage);
    assert!(is_opening || failure.code == Some(CONNECTION_LOST), "{failure}");
}

#[test]
fn a_connection_closed_at_rest_is_noticed_when_it_is_wanted() {
    for reactor in reactors() {
        let changes = json!({"rate_per_s": 4, "arrival": "uniform", "window_s": 30,
            "reactor": reactor});
        // On a busy machine the server may go away before its answer has come, or in the next event.
        assert!(in_a_quiet_moment(|| {
            let failure = deserted(1, Duration::from_millis(100), &changes);
            assert_eq!(failure.code, Some(CONNECTION_LOST), "{failure}");
            failure.message.ends_with("closed at rest")
        }));
    }
}

#[test]
fn events_come_through_even_if_each_meets_a_lost_connection() {
    for reactor in reactors() {
        let server = hanging_up(2);
        let changes = json!({"ignore_errors": [2006], "rate_per_s": 100, "arrival": "uniform",
            "connections": 3, "window_s": 0, "events": 40, "reactor": reactor});
        let record = go(&server, "oltp_point_select", &changes);
        assert_eq!((record.failure.clone(), total(&record, "events")), (None, 40));
        // Each statement but the first is sent twice.
        assert!(total(&record, "reconnects").abs_diff(39) <= 1, "{reactor}");
    }
}

#[test]
fn a_dry_run_counts_every_statement_as_other_and_needs_no_server() {
    let server = server(Script::default());
    for (schedule, connections) in [(json!({}), 1), (json!({"rate_per_s": 1000}), 3)] {
        let changes = merged(
            json!({"dry_run": true, "events": 10, "window_s": 0,
            "connections": connections}),
            &schedule,
        );
        let record = go(&server, "oltp_read_write", &changes);
        let counts = ["events", "reads", "writes", "others"].map(|name| total(&record, name));
        assert_eq!((counts, record.reactor), ([10, 0, 0, 200], "dry_run"));
    }
    assert_eq!((server.sessions(), server.statements()), (0, 0));
}

#[test]
fn an_interval_is_told_in_the_form_of_the_record_if_that_is_asked_for() {
    let server = server(Script::default());
    let spec = spec(&server, "oltp_point_select", &json!({"tell_records": true}));
    let mut told: Vec<Value> = Vec::new();
    let record = run(&spec, &AtomicBool::new(false), &mut |progress| {
        told.push(serde_json::to_value(progress).unwrap());
    });
    let told: Vec<Value> = told.into_iter().map(|it| it["record"].clone()).collect();
    assert_eq!(Value::Array(told), serde_json::to_value(&record.unwrap().intervals).unwrap());
}
