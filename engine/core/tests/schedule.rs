//! Schedules against the reference server, whose truth is known: rates, stalls, overload, think time.

mod support;

use dbdyno_core::record::run_record::RunRecord;
use dbdyno_core::reference::{Script, Stall};
use serde_json::json;
use std::time::Duration;
use support::{go, histogram, in_phase, largest, reactors, server, total};

#[test]
fn a_rate_is_kept_within_the_poisson_error() {
    let server = server(Script::default());
    for reactor in reactors() {
        let changes = json!({"rate_per_s": 2000, "window_s": 1, "connections": 8,
            "reactor": reactor});
        let record = go(&server, "oltp_point_select", &changes);
        let (arrivals, events) = (total(&record, "arrivals"), total(&record, "events"));
        // Five standard deviations of a Poisson count.
        assert!(arrivals.abs_diff(2000) < 225, "{arrivals} arrivals with {reactor}");
        // Whoever is due in the very last moment may not be begun in it.
        assert_eq!((events + record.unserved, record.unfinished), (arrivals, 0), "{reactor}");
        assert!(record.unserved < 40, "{} with {reactor}", record.unserved);
        assert_eq!((record.rate_per_s, record.stopped_by), (2000.0, "time"));
        let lag = histogram(&record, "timer_lag");
        assert!(lag.count() > arrivals / 2, "{} of {arrivals} with {reactor}", lag.count());
        // Crowded machines wake late; a wait that only ticks would be late by some 25 ms.
        assert!(lag.quantile(0.5) < 5_000_000, "{} ns with {reactor}", lag.quantile(0.5));
    }
}

#[test]
fn equal_gaps_give_the_exact_count_whatever_the_threads() {
    let server = server(Script::default());
    for threads in [1, 2] {
        let changes = json!({"rate_per_s": 400, "arrival": "uniform", "window_s": 1,
            "connections": 6, "threads": threads});
        let record = go(&server, "oltp_point_select", &changes);
        // One every 2.5 ms from 2.5 ms on; the one at 1 s is due when the time is over.
        assert_eq!(total(&record, "arrivals"), 399);
        assert_eq!(total(&record, "events") + record.unserved, 399);
    }
}

fn stalled(reactor: &str, changes: serde_json::Value) -> RunRecord {
    let stall = Stall { after: Duration::from_millis(800), lasting: Duration::from_secs(1) };
    let service_time = Duration::from_millis(4);
    let server = server(Script { stall: Some(stall), service_time, ..Script::default() });
    let mut whole = json!({"connections": 4, "window_s": 3, "reactor": reactor});
    whole.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    go(&server, "oltp_point_select", &whole)
}

/// Half of what four connections can do at 4 ms, and a stall of 1 s in 3 s: whoever comes in that second
/// waits for its rest, and then for those before. A closed loop asks four times in that second.
#[test]
fn a_stall_is_in_the_p99_of_an_open_loop_and_in_the_max_of_a_closed_one() {
    for reactor in reactors() {
        let open = stalled(reactor, json!({"rate_per_s": 400}));
        let latency = histogram(&open, "event");
        assert!((0.9e9..1.5e9).contains(&(latency.quantile(0.99) as f64)), "{latency:?}");
        assert!(latency.quantile(0.75) > 200_000_000, "{reactor}: {}", latency.quantile(0.75));
        // What the server took for each, once it was asked, is another truth.
        assert!(histogram(&open, "event_service").quantile(0.95) < 500_000_000);
        let closed = stalled(reactor, json!({}));
        let latency = histogram(&closed, "event");
        assert!(latency.quantile(0.99) < 500_000_000, "{}", latency.quantile(0.99));
        assert!(latency.max() > 900_000_000, "{latency:?}");
        for record in [open, closed] {
            let silence_ms = largest(&record, "silence_ns_max") / 1_000_000;
            assert!((900..1200).contains(&silence_ms), "{silence_ms} ms of silence");
        }
    }
}

#[test]
fn an_overloaded_run_goes_on_and_says_what_is_left() {
    let server = server(Script { service_time: Duration::from_millis(10), ..Script::default() });
    let changes = json!({"rate_per_s": 1000, "connections": 2, "window_s": 1});
    let record = go(&server, "oltp_point_select", &changes);
    assert_eq!((record.failure.clone(), record.stopped_by), (None, "time"));
    let (arrivals, events) = (total(&record, "arrivals"), total(&record, "events"));
    assert!(arrivals.abs_diff(1000) < 160 && (120..=200).contains(&events), "{arrivals} {events}");
    assert_eq!(record.unserved, arrivals - events);
    let intervals = serde_json::to_value(&record.intervals).unwrap();
    let mut due = 0;
    let mut ended = 0;
    for interval in intervals.as_array().unwrap() {
        let count = |name: &str| interval[name].as_u64().unwrap();
        (due, ended) = (due + count("arrivals"), ended + count("events"));
        assert_eq!(count("backlog"), due - ended - count("in_flight"), "{interval}");
    }
}

/// 2 ms for one connection and 1000 a second: the warm-up leaves a backlog of some 250.
#[test]
fn the_backlog_of_the_warmup_is_not_carried_into_the_window() {
    let server = server(Script { service_time: Duration::from_millis(2), ..Script::default() });
    let changes = json!({"rate_per_s": 1000, "arrival": "uniform", "connections": 1,
        "warmup_s": 0.5, "window_s": 0.2});
    let record = go(&server, "oltp_point_select", &changes);
    let warmup = in_phase(&record, "warmup");
    let left = warmup.last().unwrap()["backlog"].as_u64().unwrap();
    assert!(left > 200, "{left}");
    let measured = in_phase(&record, "measured");
    let arrivals: u64 = measured.iter().map(|it| it["arrivals"].as_u64().unwrap()).sum();
    assert_eq!(arrivals, 200);
    let last = measured.last().unwrap()["backlog"].as_u64().unwrap();
    assert!((80..180).contains(&last), "{last} due in the window and not begun");
    assert_eq!(record.unserved, last);
    let longest = measured.iter().map(|it| it["latency_ns_max"].as_u64().unwrap()).max();
    assert!(longest.unwrap() < 200_000_000, "{longest:?} ns in a window of 200 ms");
}

#[test]
fn an_event_limit_ends_a_run_at_a_rate_at_once() {
    let server = server(Script::default());
    let changes = json!({"rate_per_s": 0.5, "arrival": "uniform", "events": 1, "window_s": 0});
    let record = go(&server, "oltp_point_select", &changes);
    assert_eq!((total(&record, "events"), record.stopped_by), (1, "events"));
    // The first is due at 2 s, and nobody waits for a second, which would fall due at 4 s.
    assert_eq!(total(&record, "arrivals"), 1);
}

#[test]
fn a_connection_thinks_between_its_events() {
    let server = server(Script { service_time: Duration::from_millis(5), ..Script::default() });
    for reactor in reactors() {
        let changes = json!({"think_time_ms": [10, 20], "connections": 10, "window_s": 1.5,
            "reactor": reactor});
        let record = go(&server, "oltp_point_select", &changes);
        let events = total(&record, "events");
        // X = N / (Z + S): 10 / (15 + 5 ms) for 1.5 s; on a crowded machine the server wakes late.
        assert!((400..=765).contains(&events), "{events} events with {reactor}");
        assert_eq!(total(&record, "arrivals"), events + record.unserved, "{reactor}");
        let p50_ms = histogram(&record, "event").quantile(0.5) / 1_000_000;
        assert!((5..10).contains(&p50_ms), "thinking is no latency: {p50_ms} ms");
        assert!(histogram(&record, "timer_lag").count() == events);
    }
}

#[test]
fn one_seed_gives_the_same_events_in_a_closed_loop_at_a_rate_and_with_thinking() {
    let texts = |schedule: serde_json::Value| {
        let server = server(Script { log_statements: true, ..Script::default() });
        let mut changes = json!({"connections": 1, "events": 30, "window_s": 0, "prepared": false});
        changes.as_object_mut().unwrap().extend(schedule.as_object().unwrap().clone());
        go(&server, "oltp_read_write", &changes);
        server.log().into_iter().map(|statement| statement.text).collect::<Vec<_>>()
    };
    let closed = texts(json!({}));
    assert_eq!(closed.len(), 600);
    assert_eq!(closed, texts(json!({"rate_per_s": 500})));
    assert_eq!(closed, texts(json!({"think_time_ms": [0, 2]})));
}

#[test]
fn stopping_a_rate_that_is_rare_takes_no_longer() {
    let server = server(Script::default());
    let changes = json!({"rate_per_s": 0.01, "window_s": 0.3});
    let began = std::time::Instant::now();
    let record = go(&server, "oltp_point_select", &changes);
    // The first event would be due after 100 s.
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    assert_eq!((total(&record, "events"), record.stopped_by), (0, "time"));
}

/// Nearly all events of this workload have nothing to send, and end as they begin.
#[test]
fn events_without_a_request_fall_due_at_a_rate_too() {
    let server = server(Script::default());
    let changes = json!({"rate_per_s": 50_000, "arrival": "uniform", "connections": 3,
        "warmup_s": 0.3, "window_s": 0.3});
    let record = go(&server, "bulk_insert", &changes);
    assert_eq!(record.failure.clone(), None);
    assert!(total(&record, "arrivals").abs_diff(30_000) <= 1);
    let (events, left) = (total(&record, "events"), record.unserved);
    // On a crowded machine some of the warm-up's are dropped at its end.
    assert!((20_000..=30_000).contains(&(events + left)), "{events} and {left}");
}
