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
    // A server with room for all is asked nothing.
    assert_eq!(server.log(), []);
}

/// The numbers of a server that refused a connection, whatever its variables say.
const NUMBERS: &str = "; 12 of 40 connections were open: raise max_connections by 28 (SET GLOBAL), \
    or use at most 12 connections; a pooler or proxy before the server has limits of its own";

#[test]
fn a_server_without_room_is_told_with_the_numbers() {
    let full = Script { sessions_max: Some(12), log_statements: true, ..Script::default() };
    let server = Reference::start(full).unwrap();
    let failure = failure(&of(&server, &json!({})));
    assert_eq!((failure.stage, failure.code), ("connect", Some(1040)));
    assert!(failure.message.ends_with(&format!("Too many connections{NUMBERS}")), "{failure}");
    assert!(server.log().iter().all(|one| one.text.starts_with("SHOW VARIABLES")));
    let spec = of(&server, &json!({"connections": 12}));
    // The sessions of the run before may be there for a moment.
    assert!(in_a_quiet_moment(|| open_all(&spec, &AtomicBool::new(false)).is_ok()));
}

#[test]
fn each_of_several_servers_has_limits_of_its_own() {
    let full = || Reference::start(Script { sessions_max: Some(12), ..Script::default() }).unwrap();
    let servers = [full(), full()];
    let places = servers.each_ref().map(|one| json!({"host": "127.0.0.1", "port": one.port}));
    let failure = failure(&of(&servers[0], &json!({"endpoint": places, "connections": 30})));
    assert!(failure.message.contains("; 12 of 15 connections were open"), "{failure}");
}

#[test]
fn a_full_server_that_answers_no_question_is_told_all_the_same() {
    let refused = Fail::every(1, 1064, b"42000", "what is SHOW?").only_containing("SHOW");
    for script in [
        Script { fail: Some(refused), ..Script::default() },
        Script { die_after_statements: Some(0), ..Script::default() },
        Script { malformed: Some(Malformed::Endless), ..Script::default() },
        Script { malformed: Some(Malformed::HugeLength), ..Script::default() },
        Script { malformed: Some(Malformed::Truncated), ..Script::default() },
        Script { malformed: Some(Malformed::BadSequence), ..Script::default() },
    ] {
        let server = Reference::start(Script { sessions_max: Some(12), ..script }).unwrap();
        let failure = failure(&of(&server, &json!({"prepared": false})));
        assert!(failure.message.ends_with(NUMBERS), "{failure}");
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
