//! Several servers: connections and loading sessions are dealt out in turn, and failures name the
//! server.

use crate::support::merged;
use dbdyno_core::dataset::{self, PrepareSpec};
use dbdyno_core::reference::{Fail, Reference, Script, Service};
use dbdyno_core::run::run;
use dbdyno_core::spec::RunSpec;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn server(script: Script) -> Reference {
    Reference::start(Script { log_statements: true, ..script }).expect("a reference server")
}

fn spec<T: DeserializeOwned>(servers: &[&Reference], changes: Value) -> T {
    let place = |server: &&Reference| json!({"host": "127.0.0.1", "port": server.port});
    let whole = json!({
        "endpoint": servers.iter().map(place).collect::<Vec<Value>>(),
        "user": servers[0].login().user,
        "password": servers[0].login().password,
        "database": "sbtest",
        "seed": 7,
    });
    serde_json::from_value(merged(whole, &changes)).expect("a spec")
}

fn load(connections: u32) -> Value {
    json!({
        "connections": connections, "window_s": 0, "events": 50,
        "workload": {"name": "oltp_point_select"},
    })
}

/// Number of sessions with statements.
fn sessions(server: &Reference) -> usize {
    server.log().iter().map(|line| line.connection_id).collect::<BTreeSet<_>>().len()
}

#[test]
fn connections_are_dealt_out_in_turn() {
    let (first, second) = (server(Script::default()), server(Script::default()));
    let spec: RunSpec = spec(&[&first, &second], load(5));
    let record = run(&spec, &AtomicBool::new(false), &mut |_| {}).expect("a record");
    assert_eq!((sessions(&first), sessions(&second)), (3, 2));
    assert_eq!((record.connections, record.failure), (5, None));
    assert_eq!(record.transport, "plain");
}

#[test]
fn the_first_server_gives_the_version() {
    let other = Script { server_version: "5.7.0-other".into(), ..Script::default() };
    let (first, second) = (server(other), server(Script::default()));
    let spec: RunSpec = spec(&[&first, &second], load(4));
    let record = run(&spec, &AtomicBool::new(false), &mut |_| {}).expect("a record");
    assert_eq!(record.server_version, "5.7.0-other");
}

#[test]
fn a_failure_says_where() {
    let fail = Fail::every(50, 1105, b"HY000", "no more");
    let (first, second) =
        (server(Script::default()), server(Script { fail: Some(fail), ..Script::default() }));
    let mut spec: RunSpec = spec(&[&first, &second], load(2));
    spec.events = 0; // the failure ends the run
    let record = run(&spec, &AtomicBool::new(false), &mut |_| {}).expect("a record");
    let failure = record.failure.expect("a failure");
    assert_eq!(failure.message, format!("127.0.0.1:{}: no more", second.port));
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let (first, mut second) = (server(Script::default()), server(Script::default()));
    let spec: RunSpec = spec(&[&first, &second], load(2));
    second.stop();
    let failure = run(&spec, &AtomicBool::new(false), &mut |_| {}).expect_err("no connection");
    assert_eq!(failure.stage, "connect");
    let named = format!("127.0.0.1:{}: wanted a session", second.port);
    assert!(failure.message.starts_with(&named), "{failure}");
}

#[test]
fn loading_sessions_are_dealt_out_too() {
    let slow = || Script { service: Service::Fixed(Duration::from_millis(3)), ..Script::default() };
    let (first, second) = (server(slow()), server(slow()));
    let sized = json!({"tables": 40, "table_size": 10, "threads": 4});
    let spec: PrepareSpec = spec(&[&first, &second], sized);
    let report = dataset::prepare(&spec, &mut |_| {}, &AtomicBool::new(false)).expect("a report");
    assert_eq!(report.rows, 400);
    assert!(sessions(&first) > 0 && sessions(&second) > 0);
    assert!(sessions(&first) <= 2 && sessions(&second) <= 2);
}

#[test]
fn an_empty_list_is_a_mistake() {
    let mut spec: RunSpec = spec(&[&server(Script::default())], load(1));
    spec.endpoint = serde_json::from_str("[]").expect("a list");
    assert_eq!(spec.mistakes(), ["endpoint must name at least one server"]);
}
