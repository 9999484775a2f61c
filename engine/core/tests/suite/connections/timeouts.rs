//! Work on tables at silent servers: it ends soon after a stop, and after a time limit.

use crate::support::in_a_quiet_moment;
use dbdyno_core::dataset::{CleanupSpec, PrepareSpec, cleanup, prepare, prewarm};
use dbdyno_core::error::Failure;
use dbdyno_core::reference::{Files, Reference, Script, Service, Stall};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Allowance for a busy machine; 1.5 s are promised.
const END_MAX: Duration = Duration::from_secs(2);
/// Pause of the server within a file.
const HANG: Duration = Duration::from_secs(60);

/// Work on tables; returns the failure.
type Work = fn(&Value, &AtomicBool) -> Option<Failure>;

fn prepared(spec: &Value, stop: &AtomicBool) -> Option<Failure> {
    let spec: PrepareSpec = serde_json::from_value(spec.clone()).expect("a specification");
    prepare(&spec, &mut |_| (), stop).err()
}

fn prewarmed(spec: &Value, stop: &AtomicBool) -> Option<Failure> {
    let spec: PrepareSpec = serde_json::from_value(spec.clone()).expect("a specification");
    prewarm(&spec, &mut |_| (), stop).err()
}

fn cleaned(spec: &Value, stop: &AtomicBool) -> Option<Failure> {
    let mut spec = spec.clone();
    let keys = spec.as_object_mut().expect("a map");
    keys.retain(|key, _| !["table_size", "seed", "threads"].contains(&key.as_str()));
    let spec: CleanupSpec = serde_json::from_value(spec).expect("a specification");
    cleanup(&spec, stop).err()
}

const WORKS: [(&str, Work); 3] = [("create", prepared), ("prewarm", prewarmed), ("drop", cleaned)];

fn spec(port: u16) -> Value {
    let login = Reference::start(Script::default()).expect("a server").login();
    json!({
        "endpoint": {"host": "127.0.0.1", "port": port}, "user": login.user,
        "password": login.password, "database": login.database, "tables": 4, "table_size": 0,
        "seed": 1, "threads": 3,
    })
}

/// Server that accepts all clients, and stalls from the first statement on or a moment later.
fn stalled(after: Duration, lasting: Duration) -> Reference {
    let service_time = after * 2;
    let stall = Some(Stall { after, lasting });
    Reference::start(Script { stall, service: Service::Fixed(service_time), ..Script::default() })
        .expect("a free port")
}

#[test]
fn a_stop_ends_all_work_whatever_the_server_does() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_port = silent.local_addr().expect("its address").port();
    let stalled = stalled(Duration::ZERO, Duration::from_secs(3600));
    thread::scope(|scope| {
        for (stage, work) in WORKS {
            for (stage, port) in [("connect", silent_port), (stage, stalled.port)] {
                scope.spawn(move || {
                    assert!(in_a_quiet_moment(|| {
                        let stop = AtomicBool::new(false);
                        thread::scope(|scope| {
                            let working = scope.spawn(|| work(&spec(port), &stop));
                            thread::sleep(Duration::from_millis(300));
                            assert!(!working.is_finished(), "{stage}");
                            stop.store(true, Ordering::Relaxed);
                            let stopped = Instant::now();
                            let failure = working.join().expect("no panic").expect("a failure");
                            // On a busy machine the session may still be opening.
                            assert!([stage, "connect"].contains(&failure.stage), "{failure}");
                            assert_eq!(failure.message, "stopped");
                            stopped.elapsed() < END_MAX && failure.stage == stage
                        })
                    }));
                });
            }
        }
    });
}

#[test]
fn a_server_that_says_nothing_for_too_long_is_a_failure() {
    let stalled = stalled(Duration::ZERO, Duration::from_secs(3600));
    let mut spec = spec(stalled.port);
    spec["answer_timeout_s"] = json!(0.3);
    for (stage, work) in WORKS {
        assert!(in_a_quiet_moment(|| {
            let began = Instant::now();
            let failure = work(&spec, &AtomicBool::new(false)).expect("a failure");
            assert_eq!(failure.stage, stage);
            let says = failure.message.contains("the server has said nothing for 0.3 s");
            assert!(says, "{}", failure.message);
            began.elapsed() < END_MAX
        }));
    }
}

#[test]
fn a_server_that_stops_reading_a_file_is_not_written_to_for_ever() {
    let script = Script {
        files: Some(Files::HangsAfter(100_000)),
        log_statements: true,
        ..Script::default()
    };
    let server = Reference::start(script).expect("a free port");
    let mut spec = spec(server.port);
    (spec["load"], spec["table_size"]) = (json!("infile"), json!(200_000));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let working = scope.spawn(|| prepared(&spec, &stop));
        while !server.log().iter().any(|it| it.text.starts_with("LOAD DATA")) {
            thread::sleep(Duration::from_millis(10));
        }
        // Wait until the file's first 100,000 bytes are sent.
        thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        let stopped = Instant::now();
        let failure = working.join().expect("no panic").expect("a failure");
        assert!(stopped.elapsed() < HANG, "{:?}", stopped.elapsed());
        assert_eq!(failure.stage, "insert");
        assert!(failure.message.starts_with("stopped; "), "{}", failure.message);
    });
    spec["answer_timeout_s"] = json!(0.3);
    let failure = prepared(&spec, &AtomicBool::new(false)).expect("a failure");
    let says = failure.message.contains("the server has said nothing for 0.3 s");
    assert!(says, "{}", failure.message);
}

#[test]
fn an_index_may_take_as_long_as_it_takes() {
    // On a busy machine the table itself may take too long.
    assert!(in_a_quiet_moment(|| {
        // The table takes 0.2 s, and then its index 1.2 s.
        let stalled = stalled(Duration::from_millis(100), Duration::from_millis(1100));
        let mut spec = spec(stalled.port);
        spec["tables"] = json!(1);
        spec["answer_timeout_s"] = json!(0.7);
        let began = Instant::now();
        let failure = prepared(&spec, &AtomicBool::new(false));
        let was_silent = began.elapsed() > Duration::from_secs(1);
        assert!(was_silent || failure.is_some(), "the server was not silent");
        failure.is_none()
    }));
}
