//! Opening connections: in order, within the limits, and over at once on a stop.

use crate::support::{in_a_quiet_moment, merged};
use dbdyno_core::error::Failure;
use dbdyno_core::opening::limits::raise_open_files_limit;
use dbdyno_core::opening::{Opened, open_all};
use dbdyno_core::reference::{Fail, Malformed, Reference, Script};
use dbdyno_core::spec::RunSpec;
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Allowance for a busy machine; a tenth of it is promised.
const AT_ONCE: Duration = Duration::from_secs(2);

fn spec(endpoint: &Value, changes: &Value) -> RunSpec {
    let whole = json!({
        "endpoint": endpoint, "user": "bench", "password": "secret", "database": "sbtest",
        "connections": 40, "window_s": 1, "seed": 1, "workload": {"name": "oltp_point_select"},
    });
    serde_json::from_value(merged(whole, changes)).unwrap()
}

fn of(server: &Reference, changes: &Value) -> RunSpec {
    // Both ends of a connection, and those of other tests, are files of this process; an ordinary
    // user has 1024. If no more are allowed, the tests fail with a message.
    drop(raise_open_files_limit(3000));
    let login = json!({"user": server.login().user, "password": server.login().password});
    spec(&json!({"host": "127.0.0.1", "port": server.port}), &merged(changes.clone(), &login))
}

fn failure(spec: &RunSpec) -> Failure {
    open_all(spec, &AtomicBool::new(false)).map(|all: Vec<Opened>| all.len()).unwrap_err()
}

#[test]
fn all_are_opened_and_have_their_statements() {
    let server = Reference::start(Script { log_statements: true, ..Script::default() }).unwrap();
    for connections in [1, 2, 300] {
        let spec = of(&server, &json!({"connections": connections}));
        let opened = open_all(&spec, &AtomicBool::new(false)).unwrap();
        assert_eq!(opened.len(), connections);
        assert!(opened.iter().all(|one| one.statement_ids == [1]));
        assert_eq!(opened[0].server_version, "8.0.0-dbdyno-reference");
        drop(opened);
    }
    // Asked once a run, on the first connection.
    let asked = server.log().iter().filter(|one| one.text.starts_with("SHOW VARIABLES")).count();
    assert_eq!(asked, 3);
}

#[test]
fn nothing_is_asked_when_it_is_not_wanted() {
    let server = Reference::start(Script { log_statements: true, ..Script::default() }).unwrap();
    let spec = of(&server, &json!({"check_limits": false}));
    assert_eq!(open_all(&spec, &AtomicBool::new(false)).unwrap().len(), 40);
    assert_eq!(server.log(), []);
}

#[test]
fn a_server_that_refuses_the_question_is_loaded_all_the_same() {
    let fail = Fail::every(1, 1064, b"42000", "what is SHOW?").only_containing("SHOW");
    let server = Reference::start(Script { fail: Some(fail), ..Script::default() }).unwrap();
    let spec = of(&server, &json!({}));
    assert_eq!(open_all(&spec, &AtomicBool::new(false)).unwrap().len(), 40);
}

#[test]
fn a_server_that_hangs_up_at_the_question_is_asked_no_more() {
    let script = Script { die_after_statements: Some(0), ..Script::default() };
    let server = Reference::start(script).unwrap();
    // The server is dead for good: the failure reports the connection, not the query.
    let failure = failure(&of(&server, &json!({})));
    assert_eq!(failure.stage, "connect");
}

#[test]
fn a_server_that_talks_nonsense_is_not_listened_to_for_ever() {
    for malformed in
        [Malformed::Endless, Malformed::HugeLength, Malformed::Truncated, Malformed::BadSequence]
    {
        let server =
            Reference::start(Script { malformed: Some(malformed), ..Script::default() }).unwrap();
        let spec = of(&server, &json!({"prepared": false, "connect_timeout_s": 1}));
        // The query is given up; the load can go on. On a busy machine a login may take longer than
        // the limit.
        assert!(in_a_quiet_moment(|| {
            open_all(&spec, &AtomicBool::new(false)).is_ok_and(|all| all.len() == 40)
        }));
    }
}

#[test]
fn a_refused_login_is_told_once() {
    let server = Reference::start(Script::default()).unwrap();
    let mut spec = of(&server, &json!({}));
    spec.password = "wrong".into();
    let failure = failure(&spec);
    assert_eq!((failure.stage, failure.code), ("connect", Some(1045)));
}

#[test]
fn more_connections_than_files_are_refused_before_the_first() {
    let nobody = json!({"socket": "/nowhere"});
    let failure = failure(&spec(&nobody, &json!({"connections": 4_000_000_000_u32})));
    assert_eq!((failure.stage, failure.code), ("limits", None));
    assert!(failure.message.contains("ulimit -n 40000"), "{}", failure.message);
}

/// Server that accepts clients and stays silent.
fn silent() -> (TcpListener, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, json!({"host": "127.0.0.1", "port": port}))
}

#[test]
fn a_stop_does_not_wait_for_a_server_that_hangs() {
    assert!(in_a_quiet_moment(|| {
        let (listener, endpoint) = silent();
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let failure = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                stop.store(true, Ordering::Relaxed);
            });
            open_all(&spec(&endpoint, &json!({})), &stop).map(|all| all.len()).unwrap_err()
        });
        assert_eq!(failure.message, "stopped before all connections were open");
        // The abandoned thread does not wait for its time limit of 10 s.
        let (mut caller, _) = listener.accept().unwrap();
        assert_eq!(caller.read(&mut [0]).unwrap(), 0);
        began.elapsed() < AT_ONCE
    }));
}

#[test]
fn the_time_limit_of_a_login_is_the_specifications() {
    let (_listener, endpoint) = silent();
    let failure = failure(&spec(&endpoint, &json!({"connect_timeout_s": 0.1})));
    assert!(failure.message.contains("no answer within the time limit"), "{}", failure.message);
}

#[test]
fn a_full_queue_of_a_unix_socket_is_not_waited_at_for_ever() {
    let path = std::env::temp_dir().join(format!("dbdyno-queue-{}.sock", std::process::id()));
    drop(std::fs::remove_file(&path));
    let listener = UnixListener::bind(&path).unwrap();
    // SAFETY: no memory is handed over. The shortest queue: one client waits, the next is held.
    unsafe { libc::listen(std::os::fd::AsRawFd::as_raw_fd(&listener), 0) };
    let _waiting = UnixStream::connect(&path).unwrap();
    let endpoint = json!({"socket": path});
    let failure = failure(&spec(&endpoint, &json!({"connect_timeout_s": 0.2})));
    drop(std::fs::remove_file(&path));
    assert!(failure.message.contains("back_log"), "{}", failure.message);
}
