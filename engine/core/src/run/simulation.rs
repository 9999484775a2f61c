//! Whole runs under a virtual clock, with exact results.

use super::*;
use crate::random::Random;
use crate::reactor::simulated::{
    Coming, DEADLOCK, MS, OK, Server, Simulated, Socket, Wire, World, answering_after_ms, stalling,
};
use crate::test_record::{end_s, histogram, in_phase, largest, total};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;

/// Spec of a small run with `changes`.
pub(super) fn spec(changes: &Value) -> RunSpec {
    let mut whole = json!({
        "endpoint": {"socket": "/nowhere"}, "user": "nobody", "database": "sbtest", "seed": 7,
        "connections": 4, "window_s": 1, "interval_s": 0.1, "threads": 1,
        "workload": {"name": "oltp_point_select"},
    });
    whole.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn simulate(server: Server, changes: &Value) -> RunRecord {
    let stop = AtomicBool::new(false);
    let alone = |_: &Rc<RefCell<Wire>>, _| Reconnect::default();
    play(&spec(changes), &World::of(server), &stop, alone, |_, connection| connection)
}

/// Plays a whole run in this thread: each engine thread gets its turn when it has something to do.
///
/// `sessions` gives the reconnecting side of a thread by its number of connections, and `wrap` puts
/// compression or TLS around a connection.
///
/// # Panics
/// On an invalid state of a worker, or a run without end.
pub(super) fn play(
    spec: &RunSpec,
    world: &Rc<World>,
    stop: &AtomicBool,
    sessions: impl Fn(&Rc<RefCell<Wire>>, usize) -> Reconnect,
    wrap: impl Fn(Socket, Connection) -> Connection,
) -> RunRecord {
    let delay = spec.round_trip();
    if delay.is_zero() {
        return play_through(spec, world, stop, sessions, wrap, |simulated| simulated);
    }
    play_through(spec, world, stop, sessions, wrap, |simulated| Delayed::new(simulated, delay))
}

fn play_through<R: Reactor>(
    spec: &RunSpec,
    world: &Rc<World>,
    stop: &AtomicBool,
    sessions: impl Fn(&Rc<RefCell<Wire>>, usize) -> Reconnect,
    wrap: impl Fn(Socket, Connection) -> Connection,
    behind: impl Fn(Simulated) -> R,
) -> RunRecord {
    let workload = spec.workload().unwrap();
    let threads = threads::dry_run(spec, &*workload);
    let shared = Shared::new(spec, threads.len(), stop);
    let (finished, arriving) = channel();
    let wires: Vec<_> =
        (0..threads.len()).map(|thread| Rc::new(RefCell::new(Wire::of(thread)))).collect();
    let mut workers: Vec<_> = threads
        .into_iter()
        .enumerate()
        .map(|(number, ThreadConnections { connections, .. })| {
            let reactor = behind(Simulated::on(world, &wires[number], MAX_WAIT));
            let reconnect = sessions(&wires[number], connections.len());
            let numbered = connections.into_iter().zip(0..);
            let connections = numbered.map(|(one, slot)| wrap((number, slot, 0), one)).collect();
            let thread = Thread { connections, reactor, reconnect };
            let recorder = Recorder::new(spec.timetable(), number, finished.clone());
            Some(worker(spec, &*workload, thread, recorder, Clock::start(), &shared))
        })
        .collect();
    drop(finished);
    let mut ends = Vec::new();
    let mut turn = |at: usize, is_first: bool| {
        let Some(mut worker) = workers[at].take() else { return };
        let outcome = if is_first { worker.begin() } else { worker.turn() };
        if outcome.is_ok() {
            worker.check();
        }
        match outcome.and_then(|()| worker.wait()) {
            Ok(()) if worker.goes_on() => workers[at] = Some(worker),
            outcome => {
                ends.push(worker.end(outcome.err()));
                wires[at].borrow_mut().end();
            }
        }
    };
    (0..wires.len()).for_each(|at| turn(at, true));
    for turns in 0_u64.. {
        let times = wires.iter().map(|wire| wire.borrow().next_ns());
        let Some((next_ns, at)) = times.zip(0..).min().filter(|first| first.0 < u64::MAX) else {
            break;
        };
        assert!(turns < 10_000_000, "it does not end, at {next_ns} ns");
        world.now_ns.set(next_ns.max(world.now_ns.get()));
        turn(at, false);
    }
    let collected = collect(spec, &arriving, wires.len(), &mut |_| {});
    record_of::<R>(spec, collected, ends, &shared.control)
}

#[test]
fn a_known_service_time_is_the_latency_and_gives_the_throughput() {
    for threads in [1, 2] {
        let record =
            simulate(answering_after_ms(5), &json!({"window_s": 0.25, "threads": threads}));
        // X = N / S, and N = X · R.
        let counts = ["events", "latency_ns_sum"].map(|name| total(&record, name));
        assert_eq!(counts, [200, 200 * 5 * MS]);
        assert_eq!((largest(&record, "latency_ns_max"), record.unfinished), (5 * MS, 0));
        assert_eq!(record.stopped_by, "time");
    }
}

/// N connections with service time S and delay D: X = N / (S + D), for any ratio of D to S, and for
/// each statement of a transaction.
#[test]
fn a_network_adds_its_round_trip_to_each_reply() {
    for (threads, round_trip_ms) in [(1, 0.8), (2, 0.8), (1, 45.0)] {
        let per_event = json!({"threads": threads, "round_trip_ms": round_trip_ms, "window_s": 1});
        let record = simulate(answering_after_ms(5), &per_event);
        let event_ns = 5 * MS + (round_trip_ms * 1e6) as u64;
        let events = total(&record, "events");
        assert!(events.abs_diff(4 * 1000 * MS / event_ns) <= 4, "{events} events");
        assert_eq!(total(&record, "latency_ns_sum"), events * event_ns);
        assert_eq!(largest(&record, "latency_ns_max"), event_ns);
    }
    let transactions = json!({"round_trip_ms": 5, "workload": {"name": "oltp_read_only"}});
    let record = simulate(answering_after_ms(0), &transactions);
    // BEGIN, 14 reads, COMMIT.
    assert_eq!(largest(&record, "latency_ns_max"), 16 * 5 * MS);
}

/// Four connections of 5 ms and 20 ms of delay serve 160 a second.
#[test]
fn a_network_is_in_the_queue_of_an_open_loop() {
    let lighter = json!({"rate_per_s": 100, "arrival": "uniform", "round_trip_ms": 20});
    let record = simulate(answering_after_ms(5), &lighter);
    assert_eq!((largest(&record, "latency_ns_max"), record.unserved), (25 * MS, 0));
    let heavier = json!({"rate_per_s": 200, "arrival": "uniform", "round_trip_ms": 20});
    let record = simulate(answering_after_ms(5), &heavier);
    assert_eq!(total(&record, "events"), 160);
    assert!(record.unserved >= 35, "{} unserved", record.unserved);
}

#[test]
fn both_latencies_of_an_event_hold_the_attempts_before_the_last() {
    let mut is_refused = false;
    let server: Server = Box::new(move |_| {
        is_refused = !is_refused;
        let answer = if is_refused { DEADLOCK } else { OK };
        vec![(5 * MS, Coming::Bytes(answer.to_vec()))]
    });
    let record = simulate(server, &json!({"connections": 1}));
    assert_eq!((total(&record, "events"), total(&record, "restarts")), (100, 100));
    for name in ["event", "event_service"] {
        let latency = histogram(&record, name);
        assert!(latency.min().abs_diff(10 * MS) < MS / 100, "{name}: {latency:?}");
    }
}

#[test]
fn a_rate_is_kept_within_the_poisson_error() {
    let record = simulate(answering_after_ms(0), &json!({"rate_per_s": 2000, "connections": 8}));
    let arrivals = total(&record, "arrivals");
    // Five standard deviations of a Poisson count.
    assert!(arrivals.abs_diff(2000) < 225, "{arrivals} arrivals");
    assert_eq!((total(&record, "events"), record.unserved, record.unfinished), (arrivals, 0, 0));
    assert_eq!((record.rate_per_s, record.stopped_by), (2000.0, "time"));
    let lag = histogram(&record, "timer_lag");
    assert_eq!((lag.count(), lag.max()), (arrivals, 0), "no event is late");
}

/// Connections with think time see the whole stall together, however they are spread over threads:
/// the connection answered first may have asked last.
#[test]
fn a_stall_among_threads_that_think_is_as_long_as_in_one() {
    for seed in 1..=8 {
        let silence_ns = |threads: u32| {
            let thinking = json!({"think_time_ms": [150, 450], "connections": 4, "threads": threads,
                "window_s": 3, "seed": seed});
            largest(&simulate(stalling(4, 800, 1000), &thinking), "silence_ns_max")
        };
        let whole_ns = silence_ns(1);
        assert!(whole_ns > 700 * MS, "{whole_ns} ns of silence");
        assert_eq!([2, 4].map(silence_ns), [whole_ns; 2]);
    }
}

#[test]
fn equal_gaps_give_the_exact_count_whatever_the_threads() {
    for threads in [1, 2] {
        let changes = json!({"rate_per_s": 400, "arrival": "uniform", "connections": 6,
            "threads": threads});
        let record = simulate(answering_after_ms(1), &changes);
        // An event every 2.5 ms from 2.5 ms on; the event at 1 s is due after the end.
        assert_eq!((total(&record, "arrivals"), total(&record, "events")), (399, 399));
    }
}

/// Half of the capacity of four connections at 4 ms, and a stall of 1 s in 3 s: an event due in
/// that second waits for its rest and then for earlier events. A closed loop asks four times in it.
#[test]
fn a_stall_is_in_the_p99_of_an_open_loop_and_in_the_max_of_a_closed_one() {
    let stalled = || stalling(4, 800, 1000);
    let open = simulate(stalled(), &json!({"window_s": 3, "rate_per_s": 400}));
    let latency = histogram(&open, "event");
    assert!((900 * MS..1100 * MS).contains(&latency.quantile(0.99)), "{latency:?}");
    assert!(latency.quantile(0.75) > 200 * MS, "{latency:?}");
    // The service time, counted from the sending, excludes the queue.
    assert!(histogram(&open, "event_service").quantile(0.95) < 5 * MS);
    let closed = simulate(stalled(), &json!({"window_s": 3}));
    assert_eq!(total(&closed, "events"), 2000);
    assert!(histogram(&closed, "event").quantile(0.99) < 5 * MS);
    assert_eq!(largest(&closed, "latency_ns_max"), 1004 * MS);
    for record in [open, closed] {
        let silence_ns = largest(&record, "silence_ns_max");
        assert!((1000 * MS..1010 * MS).contains(&silence_ns), "{silence_ns} ns of silence");
    }
}

/// A thread whose answers take half a second, beside a thread that is always answered.
#[test]
fn a_stall_is_one_of_all_threads() {
    let threads = json!({"threads": 2, "connections": 2});
    let server: Server = Box::new(|request| {
        let service_ms = if request.socket.0 == 0 { 5 } else { 500 };
        vec![(service_ms * MS, Coming::Bytes(OK.to_vec()))]
    });
    assert_eq!(largest(&simulate(server, &threads), "silence_ns_max"), 5 * MS);
    // No answers from 400 ms on.
    let record = simulate(stalling(4, 400, 300), &threads);
    assert_eq!(largest(&record, "silence_ns_max"), 304 * MS);
}

/// Server with exponential service times, mean 10 ms, independent per connection.
fn exponential() -> Server {
    let mut random = Random::for_stream(3, 0);
    Box::new(move |_| {
        let service_ns = -1e7 * (1.0 - random.uniform_double()).ln();
        vec![(service_ns as u64, Coming::Bytes(OK.to_vec()))]
    })
}

/// A size class is a thousandth wide, and a quantile of n draws has the standard error √(q (1 - q)
/// / n) / density.
#[test]
fn percentiles_are_those_of_the_servers_law_within_three_standard_errors() {
    let changes = json!({"connections": 16, "window_s": 60, "interval_s": 10});
    let record = simulate(exponential(), &changes);
    let latency = histogram(&record, "event");
    assert!(latency.count() > 90_000, "{latency:?}");
    for q in [0.5, 0.95, 0.99] {
        let wanted_ns = -1e7 * (1.0_f64 - q).ln();
        let error_ns = 1e7 * (q / ((1.0 - q) * latency.count() as f64)).sqrt();
        let off_ns = (latency.quantile(q) as f64 - wanted_ns).abs();
        assert!(off_ns < 0.001 * wanted_ns + 3.0 * error_ns, "{q}: off by {off_ns} ns");
    }
}

/// 99th percentile of the response time in an M/M/c system, in service times, from P(T > t) (Erlang
/// C; Gross and Harris, Fundamentals of Queueing Theory, section 2.3).
fn erlang_c_p99(servers: u32, load: f64) -> f64 {
    let offered = f64::from(servers) * load;
    let blocking = (1..=servers).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
    let waits = blocking / (1.0 - load * (1.0 - blocking));
    let idle = f64::from(servers) - 1.0 - offered;
    let beyond = |t: f64| (-t).exp() * (1.0 + waits * (1.0 - (-idle * t).exp()) / idle);
    let (mut low, mut high) = (0.0, 1e3);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if beyond(middle) > 0.01 { low = middle } else { high = middle }
    }
    low
}

/// M/M/16: sixteen connections as servers with exponential times of 10 ms, at 80 % load. Separate
/// queues for 16 threads would give M/M/1, with five times this p99.
#[test]
fn one_queue_gives_the_latency_of_erlang_c_whatever_the_threads() {
    let wanted_ms = 10.0 * erlang_c_p99(16, 0.8);
    for threads in [1, 4, 16] {
        let changes = json!({"rate_per_s": 1280, "connections": 16, "threads": threads,
            "warmup_s": 2, "window_s": 60, "interval_s": 10});
        let record = simulate(exponential(), &changes);
        let p99_ms = histogram(&record, "event").quantile(0.99) as f64 / 1e6;
        assert!((p99_ms / wanted_ms - 1.0).abs() < 0.1, "{threads}: {p99_ms} for {wanted_ms} ms");
        assert_eq!(histogram(&record, "timer_lag").max(), 0);
    }
}

#[test]
fn an_overloaded_run_goes_on_and_says_what_is_left() {
    let record = simulate(answering_after_ms(10), &json!({"rate_per_s": 1000, "connections": 2}));
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
    let record = simulate(answering_after_ms(2), &changes);
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
    let record = simulate(answering_after_ms(0), &limited);
    // The first event is due at 2 s; the run does not wait for a second event, due at 4 s.
    assert_eq!((total(&record, "events"), total(&record, "arrivals")), (1, 1));
    assert_eq!((end_s(&record), record.stopped_by), (2.0, "events"));
    // The first event would be due after 100 s.
    let record = simulate(answering_after_ms(0), &json!({"rate_per_s": 0.01, "window_s": 0.3}));
    assert_eq!((total(&record, "events"), end_s(&record), record.stopped_by), (0, 0.3, "time"));
}

#[test]
fn a_rate_that_nobody_can_follow_does_not_hold_up_the_end() {
    let changes = json!({"rate_per_s": 5e8, "arrival": "uniform"});
    let record = simulate(answering_after_ms(500), &changes);
    let arrivals = total(&record, "arrivals");
    assert!(arrivals < 10_000_000, "{arrivals} were noted");
    assert_eq!(arrivals, total(&record, "events") + record.unserved + record.unfinished);
    assert_eq!((total(&record, "events"), record.stopped_by), (8, "time"));
}

#[test]
fn a_connection_thinks_between_its_events() {
    let changes = json!({"think_time_ms": [10, 20], "connections": 10, "window_s": 1.5});
    let record = simulate(answering_after_ms(5), &changes);
    let events = total(&record, "events");
    // X = N / (Z + S): 10 / (15 + 5 ms) for 1.5 s, and each connection begins with an event.
    assert!((745..=765).contains(&events), "{events} events");
    assert_eq!(total(&record, "arrivals"), events + record.unserved);
    assert_eq!(total(&record, "latency_ns_sum"), events * 5 * MS, "thinking is no latency");
    let lag = histogram(&record, "timer_lag");
    assert_eq!((lag.count(), lag.max()), (events, 0));
}

/// Nearly all events of this workload send nothing, and end as they begin.
#[test]
fn events_without_a_request_fall_due_at_a_rate_too() {
    let changes = json!({"rate_per_s": 50_000, "arrival": "uniform", "connections": 3,
        "warmup_s": 0.3, "window_s": 0.3, "workload": {"name": "bulk_insert"}});
    let record = simulate(answering_after_ms(0), &changes);
    assert_eq!(record.failure.clone(), None);
    let arrivals = total(&record, "arrivals");
    assert!(arrivals.abs_diff(30_000) <= 1, "{arrivals}");
    assert_eq!(total(&record, "events") + record.unserved, arrivals);
}
