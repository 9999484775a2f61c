//! Whole runs under a virtual clock: what schedules and pauses give, exactly.

use super::*;
use crate::reactor::simulated::Simulated;
use crate::test_record::{end_s, histogram, in_phase, largest, total};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

fn simulate<R: Reactor>(changes: &Value) -> RunRecord {
    let mut whole = json!({
        "endpoint": {"socket": "/nowhere"}, "user": "nobody", "database": "sbtest", "seed": 7,
        "connections": 4, "window_s": 1, "interval_s": 0.1, "threads": 1,
        "workload": {"name": "oltp_point_select"},
    });
    whole.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let spec: RunSpec = serde_json::from_value(whole).unwrap();
    let workload = spec.workload().unwrap();
    let connections = threads::dry_run(&spec, &*workload);
    let sources = connections.into_iter().map(ConnectionSource::Open).collect();
    load::<R>(&spec, &*workload, sources, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

#[test]
fn a_known_service_time_is_the_latency_and_gives_the_throughput() {
    for threads in [1, 2] {
        let record = simulate::<Simulated<5>>(&json!({"window_s": 0.25, "threads": threads}));
        // X = N / S, and N = X · R.
        let counts = ["events", "latency_ns_sum"].map(|name| total(&record, name));
        assert_eq!(counts, [200, 200 * 5 * MS]);
        assert_eq!((largest(&record, "latency_ns_max"), record.unfinished), (5 * MS, 0));
        assert_eq!(record.stopped_by, "time");
    }
}

#[test]
fn a_rate_is_kept_within_the_poisson_error() {
    let record = simulate::<Simulated<0>>(&json!({"rate_per_s": 2000, "connections": 8}));
    let arrivals = total(&record, "arrivals");
    // Five standard deviations of a Poisson count.
    assert!(arrivals.abs_diff(2000) < 225, "{arrivals} arrivals");
    assert_eq!((total(&record, "events"), record.unserved, record.unfinished), (arrivals, 0, 0));
    assert_eq!((record.rate_per_s, record.stopped_by), (2000.0, "time"));
    let lag = histogram(&record, "timer_lag");
    assert_eq!((lag.count(), lag.max()), (arrivals, 0), "no event is late");
}

#[test]
fn equal_gaps_give_the_exact_count_whatever_the_threads() {
    for threads in [1, 2] {
        let changes = json!({"rate_per_s": 400, "arrival": "uniform", "connections": 6,
            "threads": threads});
        let record = simulate::<Simulated<1>>(&changes);
        // One every 2.5 ms from 2.5 ms on; the one at 1 s is due when the time is over.
        assert_eq!((total(&record, "arrivals"), total(&record, "events")), (399, 399));
    }
}

/// Half of what four connections can do at 4 ms, and a stall of 1 s in 3 s: whoever comes in that second
/// waits for its rest, and then for those before. A closed loop asks four times in that second.
#[test]
fn a_stall_is_in_the_p99_of_an_open_loop_and_in_the_max_of_a_closed_one() {
    type Stalled = Simulated<4, 800, 1000>;
    let open = simulate::<Stalled>(&json!({"window_s": 3, "rate_per_s": 400}));
    let latency = histogram(&open, "event");
    assert!((900 * MS..1100 * MS).contains(&latency.quantile(0.99)), "{latency:?}");
    assert!(latency.quantile(0.75) > 200 * MS, "{latency:?}");
    // What the server took for each, once it was asked, is another truth.
    assert!(histogram(&open, "event_service").quantile(0.95) < 5 * MS);
    let closed = simulate::<Stalled>(&json!({"window_s": 3}));
    assert_eq!(total(&closed, "events"), 2000);
    assert!(histogram(&closed, "event").quantile(0.99) < 5 * MS);
    assert_eq!(largest(&closed, "latency_ns_max"), 1004 * MS);
    for record in [open, closed] {
        let silence_ns = largest(&record, "silence_ns_max");
        assert!((1000 * MS..1010 * MS).contains(&silence_ns), "{silence_ns} ns of silence");
    }
}

#[test]
fn an_overloaded_run_goes_on_and_says_what_is_left() {
    let record = simulate::<Simulated<10>>(&json!({"rate_per_s": 1000, "connections": 2}));
    assert_eq!((record.failure.clone(), record.stopped_by), (None, "time"));
    let (arrivals, events) = (total(&record, "arrivals"), total(&record, "events"));
    assert!(arrivals.abs_diff(1000) < 160 && (198..=200).contains(&events), "{arrivals} {events}");
    assert_eq!(record.unserved, arrivals - events);
    let intervals = serde_json::to_value(&record.intervals).unwrap();
    let (mut due, mut ended) = (0, 0);
    for interval in intervals.as_array().unwrap() {
        let count = |name: &str| interval[name].as_u64().unwrap();
        (due, ended) = (due + count("arrivals"), ended + count("events"));
        assert_eq!(count("backlog"), due - ended - count("in_flight"), "{interval}");
    }
}

/// 2 ms for one connection and 1000 a second: the warm-up leaves a backlog of some 250.
#[test]
fn the_backlog_of_the_warmup_is_not_carried_into_the_window() {
    let changes = json!({"rate_per_s": 1000, "arrival": "uniform", "connections": 1,
        "warmup_s": 0.5, "window_s": 0.2});
    let record = simulate::<Simulated<2>>(&changes);
    let left = in_phase(&record, "warmup").last().unwrap()["backlog"].as_u64().unwrap();
    assert!((245..=255).contains(&left), "{left}");
    let measured = in_phase(&record, "measured");
    let counts = |name: &str| measured.iter().map(|it| it[name].as_u64().unwrap()).collect();
    let arrivals: Vec<u64> = counts("arrivals");
    assert_eq!(arrivals.iter().sum::<u64>(), 200);
    let last = measured.last().unwrap()["backlog"].as_u64().unwrap();
    assert!((98..=102).contains(&last), "{last} due in the window and not begun");
    assert_eq!(record.unserved, last);
    let longest: Vec<u64> = counts("latency_ns_max");
    assert!(longest.iter().all(|ns| *ns < 110 * MS), "{longest:?} ns in a window of 200 ms");
}

#[test]
fn a_run_at_a_rare_rate_ends_at_its_limit_of_events_or_of_time() {
    let limited = json!({"rate_per_s": 0.5, "arrival": "uniform", "events": 1, "window_s": 0});
    let record = simulate::<Simulated<0>>(&limited);
    // The first is due at 2 s, and nobody waits for a second, which would fall due at 4 s.
    assert_eq!((total(&record, "events"), total(&record, "arrivals")), (1, 1));
    assert_eq!((end_s(&record), record.stopped_by), (2.0, "events"));
    // The first event would be due after 100 s.
    let record = simulate::<Simulated<0>>(&json!({"rate_per_s": 0.01, "window_s": 0.3}));
    assert_eq!((total(&record, "events"), end_s(&record), record.stopped_by), (0, 0.3, "time"));
}

#[test]
fn a_connection_thinks_between_its_events() {
    let changes = json!({"think_time_ms": [10, 20], "connections": 10, "window_s": 1.5});
    let record = simulate::<Simulated<5>>(&changes);
    let events = total(&record, "events");
    // X = N / (Z + S): 10 / (15 + 5 ms) for 1.5 s, and each begins with an event.
    assert!((745..=765).contains(&events), "{events} events");
    assert_eq!(total(&record, "arrivals"), events + record.unserved);
    assert_eq!(total(&record, "latency_ns_sum"), events * 5 * MS, "thinking is no latency");
    let lag = histogram(&record, "timer_lag");
    assert_eq!((lag.count(), lag.max()), (events, 0));
}

/// Nearly all events of this workload have nothing to send, and end as they begin.
#[test]
fn events_without_a_request_fall_due_at_a_rate_too() {
    let changes = json!({"rate_per_s": 50_000, "arrival": "uniform", "connections": 3,
        "warmup_s": 0.3, "window_s": 0.3, "workload": {"name": "bulk_insert"}});
    let record = simulate::<Simulated<0>>(&changes);
    assert_eq!(record.failure.clone(), None);
    let arrivals = total(&record, "arrivals");
    assert!(arrivals.abs_diff(30_000) <= 1, "{arrivals}");
    assert_eq!(total(&record, "events") + record.unserved, arrivals);
}

/// Four pauses of 50 ms in a window of 2 s, unless said otherwise.
fn paused<R: Reactor>(changes: &Value) -> RunRecord {
    let mut whole = json!({"standstill": {"share": 0.1, "period_s": 0.5}, "window_s": 2});
    whole.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    simulate::<R>(&whole)
}

#[test]
fn a_closed_loop_loses_its_share_of_the_time() {
    let idle_ns = |record: &RunRecord| {
        (end_s(record) * 1e9).round() as u64
            - total(record, "latency_ns_sum") / record.connections as u64
    };
    for connections in [1, 4] {
        assert_eq!(
            idle_ns(&paused::<Simulated<1>>(&json!({"connections": connections}))),
            200 * MS
        );
    }
    let two_percent = json!({"standstill": {"share": 0.02, "period_s": 2}});
    assert_eq!(idle_ns(&paused::<Simulated<2>>(&two_percent)), 40 * MS);
    assert_eq!(idle_ns(&paused::<Simulated<2>>(&json!({"standstill": null}))), 0);
}

#[test]
fn a_pause_is_no_stall_and_no_latency() {
    let changes = json!({"warmup_s": 0.1, "standstill": {"share": 0.5, "period_s": 1}});
    let record = paused::<Simulated<1>>(&changes);
    assert_eq!(largest(&record, "silence_ns_max"), MS);
    assert_eq!(largest(&record, "latency_ns_max"), MS);
    // The warm-up has no pause.
    let warm = in_phase(&record, "warmup");
    assert_eq!(warm.iter().map(|it| it["events"].as_u64().unwrap()).sum::<u64>(), 396);
}

#[test]
fn a_rate_goes_on_falling_due_and_waits() {
    let schedule = json!({"rate_per_s": 400, "arrival": "uniform",
        "standstill": {"share": 0.2, "period_s": 1}});
    let record = paused::<Simulated<1>>(&schedule);
    assert_eq!((total(&record, "arrivals"), total(&record, "events")), (799, 799));
    // A fifth of them is due in 200 ms in which nothing begins: from the intended start that shows.
    let latency = histogram(&record, "event");
    assert!(latency.quantile(0.99) > 150 * MS, "{latency:?}");
    assert!(latency.quantile(0.5) < 2 * MS, "{latency:?}");
    // Who waited for it was not sent late by the generator's fault.
    assert_eq!(histogram(&record, "timer_lag").max(), 0);
}

#[test]
fn thinking_connections_pause_too() {
    let thinking = json!({"think_time_ms": [1, 2], "standstill": {"share": 0.5, "period_s": 1}});
    let record = paused::<Simulated<1>>(&thinking);
    let measured = in_phase(&record, "measured");
    let silent = measured.iter().filter(|it| it["events"].as_u64() == Some(0)).count();
    // Each pause of 500 ms holds four whole tenths of a second at least.
    assert!((8..=10).contains(&silent), "{silent} silent tenths");
}

#[test]
fn a_paused_run_can_end() {
    let few = json!({"events": 900, "window_s": 0, "standstill": {"share": 0.4, "period_s": 0.5}});
    let record = paused::<Simulated<1>>(&few);
    assert_eq!((total(&record, "events"), record.stopped_by), (900, "events"));
    // The window ends in the middle of a pause.
    let long = json!({"window_s": 1, "standstill": {"share": 0.5, "period_s": 1.9}});
    let record = paused::<Simulated<1>>(&long);
    assert_eq!((record.stopped_by, record.unfinished, end_s(&record)), ("time", 0, 1.0));
}
