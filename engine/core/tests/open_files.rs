//! More connections than a file table may hold. A process of its own: the limit of open files is
//! lowered for good.

use dbdyno_core::driver::Driver;
use dbdyno_core::opening::limits::file_tables_for;
use dbdyno_core::reference::NullResponder;
use dbdyno_core::run::run;
use dbdyno_core::spec::RunSpec;
use dbdyno_core::system::unshare_file_table;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};

const FILES: u64 = 400;
const CONNECTIONS: u32 = 700;
/// Siblings of the responder: enough for all sessions at `FILES` each.
const SIBLINGS: usize = 3;

/// Serves in a file table of its own until it is over.
fn serve(mut responder: NullResponder, over: &AtomicBool) {
    // SAFETY: the responder was opened before, and the thread's own descriptors stay in it.
    unsafe { unshare_file_table() }.unwrap();
    while !over.load(Ordering::Relaxed) {
        responder.serve(10).unwrap();
    }
}

#[test]
fn threads_with_tables_of_their_own_run_them_all() {
    let limit = libc::rlimit { rlim_cur: FILES, rlim_max: FILES };
    // SAFETY: the kernel reads one `rlimit` that lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let responder = NullResponder::bind(Driver::Mysql, None).unwrap();
    let port = responder.port();
    let siblings: Vec<_> = (0..SIBLINGS).map(|_| responder.sibling().unwrap()).collect();
    drop(responder);
    let tables = file_tables_for(CONNECTIONS.into()).unwrap();
    let spec: RunSpec = serde_json::from_value(json!({
        "endpoint": {"host": "127.0.0.1", "port": port}, "user": "anybody", "password": "any",
        "database": "any", "connections": CONNECTIONS, "window_s": 0, "events": 2000, "seed": 7,
        "workload": {"name": "oltp_point_select"},
    }))
    .unwrap();
    let over = AtomicBool::new(false);
    let record = std::thread::scope(|scope| {
        for sibling in siblings {
            scope.spawn(|| serve(sibling, &over));
        }
        let record = run(&spec, &AtomicBool::new(false), &mut |_| {});
        over.store(true, Ordering::Relaxed);
        record
    })
    .unwrap();
    assert_eq!((record.failure, record.connections), (None, CONNECTIONS as usize));
    // A process that may raise its hard limit needs a single table.
    assert!(record.threads >= tables as usize && (1..=3).contains(&tables), "{tables}");
    assert!(!record.server_version.is_empty() && record.transport == "plain");
    let told = serde_json::to_value(&record.intervals).unwrap();
    let intervals = told.as_array().unwrap();
    let events: u64 = intervals.iter().map(|one| one["events"].as_u64().unwrap()).sum();
    assert_eq!(events, 2000);
}
