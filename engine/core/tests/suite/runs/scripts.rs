//! Runs of Lua scripts with waits of their own, rests, and early ends.

use crate::support::{in_a_quiet_moment, intervals, merged, server, total};
use dbdyno_core::reference::Script;
use dbdyno_core::run::run;
use dbdyno_core::spec::RunSpec;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Run of a script whose threads do their own waiting and are answered at once.
pub(super) fn dry(source: &str, changes: &Value) -> RunSpec {
    let database = json!({"endpoint": {"socket": "/nowhere"}, "user": "nobody", "database": "sbtest",
        "dry_run": true});
    scripted(source, &database, changes)
}

pub(super) fn scripted(source: &str, database: &Value, changes: &Value) -> RunSpec {
    let by_default = |name: &str| json!({"name": name});
    let whole = json!({
        "endpoint": database["endpoint"], "user": "nobody", "database": "sbtest", "seed": 7,
        "connections": 2, "window_s": 1, "interval_s": 0.1,
        "workload": {"name": "script"},
        "script": {
            "source": format!("
                ffi.cdef 'int usleep(unsigned int);'
                function thread_init() con = sysbench.sql.driver():connect() end
                {source}"),
            "chunk": "@test.lua", "name": "test.lua", "version": "1.0.20", "argv": ["sysbench"],
            "command": "run", "script_path": null, "package_path": "", "package_cpath": "",
            "driver": "mysql", "verbosity": 0, "database": database,
            "gaussian": by_default("gaussian"), "special": by_default("special"),
            "pareto": by_default("pareto"), "zipfian": by_default("zipfian"),
        },
    });
    serde_json::from_value(merged(whole, changes)).unwrap()
}

/// A thousand events a second are due, the first after 1 ms, while the first thread waits 350 ms in
/// its first event.
#[test]
fn what_falls_due_while_a_script_waits_counts_where_it_is_due() {
    let source = "function event()
            if sysbench.tid == 0 and not has_waited then has_waited = true; ffi.C.usleep(350000) end
            con:query('SELECT 1')
        end";
    for connections in [1, 2] {
        let changes = json!({"rate_per_s": 1000, "arrival": "uniform", "connections": connections});
        let record = run(&dry(source, &changes), &AtomicBool::new(false), &mut |_| {}).unwrap();
        assert_eq!((record.failure.clone(), record.unfinished), (None, 0));
        let arrivals = intervals(&record).into_iter().map(|it| it["arrivals"].as_u64().unwrap());
        let wanted: Vec<u64> = std::iter::once(99).chain([100; 9]).collect();
        assert_eq!(arrivals.take(10).collect::<Vec<_>>(), wanted, "{connections}");
        assert_eq!(total(&record, "events") + record.unserved, 999, "{connections}");
    }
}

/// The first thread ends with its first event; the second goes on at the rate, and reports all
/// along.
#[test]
fn a_thread_that_ends_early_leaves_the_run_to_the_others() {
    let source = "function event() con:query('SELECT 1'); return sysbench.tid == 0 end";
    let changes = json!({"rate_per_s": 1000, "arrival": "uniform"});
    let mut told = Vec::new();
    let stop = AtomicBool::new(false);
    let record = run(&dry(source, &changes), &stop, &mut |_| told.push(Instant::now())).unwrap();
    assert!(told[1].elapsed() > Duration::from_millis(500), "only told at the end");
    let slices = intervals(&record);
    let count = |name: &str| -> Vec<u64> {
        slices.iter().take(10).map(|it| it[name].as_u64().unwrap()).collect()
    };
    let wanted: Vec<u64> = std::iter::once(99).chain([100; 9]).collect();
    assert_eq!(count("arrivals"), wanted);
    // The event that ends its thread does not count.
    assert_eq!(total(&record, "events") + record.unserved + record.unfinished, 998);
}

/// A rest of 800 ms after an event delays neither a stop nor the end of a run.
#[test]
fn a_rest_that_outlasts_the_run_is_no_unfinished_event() {
    let server = server(Script::default());
    let source = "function thread_run(thread)
            while ffi.C.sb_more_events(thread) do
                ffi.C.sb_event_start(thread)
                con:query('SELECT 1')
                ffi.C.sb_event_stop(thread)
                ffi.C.usleep(800000)
            end
        end";
    let database = json!({"endpoint": {"host": "127.0.0.1", "port": server.port},
        "user": server.login().user, "password": server.login().password, "database": "sbtest"});
    for ending in [json!({"window_s": 60}), json!({"window_s": 0.1, "drain_s": 0.3})] {
        let stop = AtomicBool::new(false);
        let mut end_it = |_: &_| stop.store(ending["window_s"] == 60, Ordering::Relaxed);
        let record = run(&scripted(source, &database, &ending), &stop, &mut end_it).unwrap();
        assert_eq!((record.failure.clone(), total(&record, "events")), (None, 2), "{ending}");
        assert_eq!(record.unfinished, 0, "{ending}");
    }
}

/// With one session per thread the loop waits; with two, threads wait for servers themselves.
#[test]
fn a_network_adds_its_round_trip_to_each_statement_of_a_script() {
    let server = server(Script::default());
    let database = json!({"endpoint": {"host": "127.0.0.1", "port": server.port},
        "user": server.login().user, "password": server.login().password, "database": "sbtest"});
    let event = "function event() con:query('SELECT 1'); con:query('SELECT 2') end";
    let two = "function thread_init()
            con, other = sysbench.sql.driver():connect(), sysbench.sql.driver():connect()
        end";
    let delayed = json!({"round_trip_ms": 20, "window_s": 0, "events": 6});
    for source in [event.to_owned(), format!("{two} {event}")] {
        let spec = scripted(&source, &database, &delayed);
        assert!(in_a_quiet_moment(|| {
            let record = run(&spec, &AtomicBool::new(false), &mut |_| {}).unwrap();
            assert_eq!((record.failure.clone(), total(&record, "events")), (None, 6));
            let mean_ms = total(&record, "latency_ns_sum") as f64 / 6e6;
            assert!(mean_ms >= 40.0, "{mean_ms} ms for {source}");
            mean_ms < 42.0
        }));
    }
}

/// Both for a connection in the loop and for a thread with two connections.
#[test]
fn a_script_asks_for_the_rows_that_were_changed_and_the_key_of_the_last_insert() {
    let server = server(Script::default());
    let database = json!({"endpoint": {"host": "127.0.0.1", "port": server.port},
        "user": server.login().user, "password": server.login().password, "database": "sbtest"});
    let event = "function expect(rows, key)
            assert(con:affected_rows() == rows and con:last_insert_id() == key)
        end
        function event()
            con:query('INSERT INTO t VALUES (1)')
            expect(1, 1)
            con:query('SELECT 1')
            expect(0, 0)
            con:prepare('INSERT INTO t VALUES (1)'):execute()
            expect(1, 1)
        end";
    let two = "function thread_init()
            con, other = sysbench.sql.driver():connect(), sysbench.sql.driver():connect()
        end";
    for source in [event.to_owned(), format!("{two} {event}")] {
        let spec = scripted(&source, &database, &json!({"window_s": 0, "events": 2}));
        let record = run(&spec, &AtomicBool::new(false), &mut |_| {}).unwrap();
        assert_eq!((record.failure.clone(), total(&record, "events")), (None, 2), "{source}");
    }
}
