//! Client's measurements against a server with exactly known results.
//!
//! The server computes the due time of each answer on the statement's arrival, so its results do
//! not depend on the machine. The client's numbers do, and are checked in a quiet moment.

use crate::support::{go, histogram, in_a_quiet_moment, median, reactors, total};
use dbdyno_core::record::histogram::Histogram;
use dbdyno_core::record::run_record::RunRecord;
use dbdyno_core::reference::{Reference, Script, Service, Slowdown, Stall, Truth};
use serde_json::{Value, json};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
/// Allowance for two thread switches and a wake-up on a shared machine, ms.
const OVERHEAD_MS: f64 = 0.5;

fn played(script: &Script, changes: &Value) -> (RunRecord, Truth) {
    let server = Reference::start(script.clone()).unwrap();
    let record = go(&server, "oltp_point_select", changes);
    let truth = server.truth();
    (record, truth)
}

/// Mean latency of the client, ms.
fn mean_ms(record: &RunRecord, truth: &Truth) -> f64 {
    total(record, "latency_ns_sum") as f64 / 1e6 / truth.times.count() as f64
}

/// True if mean and percentiles match the server's, up to the way there and back.
fn agrees(record: &RunRecord, truth: &Truth, quantiles: &[f64]) -> bool {
    let seen = histogram(record, "event_service");
    assert_eq!(seen.count(), truth.times.count(), "every statement was an event");
    let true_ms = truth.sum.as_secs_f64() * 1e3 / seen.count() as f64;
    let near = |seen_ms: f64, true_ms: f64| {
        // A size class is a thousandth wide; no answer comes before it was due.
        assert!(seen_ms > true_ms * 0.998 - 0.001, "{seen_ms} of {true_ms} ms");
        seen_ms < true_ms * 1.01 + OVERHEAD_MS
    };
    let quantile_ms = |of: &Histogram, q| of.quantile(q) as f64 / 1e6;
    near(mean_ms(record, truth), true_ms)
        && quantiles.iter().all(|&q| near(quantile_ms(&seen, q), quantile_ms(&truth.times, q)))
}

#[test]
fn fewer_connections_than_workers_have_the_service_time() {
    let script = Script { service: Service::Fixed(50 * MS), workers: Some(8), ..Script::default() };
    assert!(in_a_quiet_moment(|| {
        let (record, truth) = played(&script, &json!({"connections": 4, "window_s": 0.8}));
        agrees(&record, &truth, &[0.5, 0.99])
            && (mean_ms(&record, &truth) / 50.0 - 1.0).abs() < 0.01
    }));
}

/// X = N / (S + D) for replies delayed by D, where S is the time of the same client without delay.
/// By Little's law X is N events in each mean latency.
#[test]
fn a_network_of_the_clients_has_the_throughput_of_service_and_delay() {
    const PAIRS: usize = 3;
    let loads = [(4 * MS, 0.8), (20 * MS, 0.8), (10 * MS, 40.0)];
    for (reactor, (service, delay_ms)) in
        reactors().into_iter().flat_map(|reactor| loads.map(|load| (reactor, load)))
    {
        let script = Script { service: Service::Fixed(service), ..Script::default() };
        let with_delay_ms = |round_trip_ms: f64| {
            let changes = json!({"connections": 4, "window_s": 0.4,
                "round_trip_ms": round_trip_ms, "reactor": reactor});
            let (record, truth) = played(&script, &changes);
            let mean_ms = mean_ms(&record, &truth);
            let least_ms = service.as_secs_f64() * 1e3 + round_trip_ms;
            assert!(mean_ms >= least_ms, "{mean_ms} of {least_ms} ms with {reactor}");
            mean_ms
        };
        assert!(in_a_quiet_moment(|| {
            let share = || with_delay_ms(delay_ms) / (with_delay_ms(0.0) + delay_ms);
            let shares = (0..PAIRS).map(|_| share());
            (median(shares) - 1.0).abs() < 0.01
        }));
    }
}

/// X = c / S, and by Little's law N connections wait N / X.
#[test]
fn more_connections_than_workers_have_the_workers_throughput() {
    let script = Script { service: Service::Fixed(10 * MS), workers: Some(2), ..Script::default() };
    assert!(in_a_quiet_moment(|| {
        let (record, truth) = played(&script, &json!({"connections": 8, "window_s": 1}));
        let events = total(&record, "events");
        agrees(&record, &truth, &[0.5, 0.99]) && events.abs_diff(200 + 6) <= 2
    }));
}

#[test]
fn the_client_has_the_percentiles_of_the_server() {
    for service in [
        Service::Exponential(10 * MS),
        Service::Lognormal(8 * MS, 0.6),
        Service::Recorded(vec![(5 * MS, 95), (40 * MS, 5)]),
    ] {
        let script = Script { service, ..Script::default() };
        assert!(in_a_quiet_moment(|| {
            let (record, truth) = played(&script, &json!({"connections": 8, "window_s": 0.7}));
            agrees(&record, &truth, &[0.1, 0.5, 0.9, 0.95, 0.99])
        }));
    }
}

/// With a connection for each waiting event, the queue is at the server, where it is known.
#[test]
fn a_rate_has_the_queue_of_the_server_and_its_stall() {
    let service = Service::Exponential(10 * MS);
    let queue = Script { service: service.clone(), workers: Some(4), ..Script::default() };
    let stall = Some(Stall { after: 300 * MS, lasting: 200 * MS });
    let slowdown = Some(Slowdown { after: 100 * MS, lasting: 300 * MS, factor: 4.0 });
    for script in [
        queue.clone(),
        Script { stall, ..queue.clone() },
        Script { slowdown, workers: None, ..queue },
    ] {
        assert!(in_a_quiet_moment(|| {
            let changes = json!({"connections": 200, "window_s": 1, "rate_per_s": 250});
            let (record, truth) = played(&script, &changes);
            agrees(&record, &truth, &[0.5, 0.95, 0.99])
        }));
    }
}

#[test]
fn an_answer_that_comes_byte_by_byte_takes_its_time() {
    let script = Script { drip: Some(MS), ..Script::default() };
    let changes = json!({"connections": 1, "events": 2, "window_s": 0, "prepared": false});
    let (record, _) = played(&script, &changes);
    // The smallest answer with a row has over a hundred bytes.
    assert!(histogram(&record, "event").min() > 100_000_000);
}
