//! The null responder behaves as a server towards the engine.

use dbdyno_core::driver::Driver;
use dbdyno_core::reference::{NullResponder, RANGE_ROWS, ROW_LENGTH};
use dbdyno_core::run::run;
use dbdyno_core::session::{Endpoint, Login, PostgresSession, Session, Timeouts, Transport};
use dbdyno_core::spec::RunSpec;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// Serves while `client` works on the port; returns the client's result and the responder.
fn serving<T: Send>(driver: Driver, client: impl FnOnce(u16) -> T + Send) -> (T, NullResponder) {
    let mut responder = NullResponder::bind(driver, None).unwrap();
    let port = responder.port();
    let over = AtomicBool::new(false);
    let given = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let given = client(port);
            over.store(true, Ordering::Relaxed);
            given
        });
        while !over.load(Ordering::Relaxed) && !client.is_finished() {
            responder.serve(10).unwrap();
        }
        client.join().unwrap()
    });
    responder.serve(0).unwrap();
    (given, responder)
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint::Tcp { host: "127.0.0.1".into(), port }
}

fn anybody() -> Login {
    Login { user: "anybody".into(), password: "any".into(), database: "any".into() }
}

fn session(port: u16) -> Session {
    Session::connect(&endpoint(port), &anybody(), SOON).unwrap()
}

#[test]
fn it_answers_by_a_statements_first_words() {
    serving(Driver::Mysql, |port| {
        let mut session = session(port);
        let one = session.query("SELECT c FROM sbtest1 WHERE id=1").unwrap();
        assert_eq!(one, [[Some("7".repeat(ROW_LENGTH))]]);
        let many = session.query("select c from t where id BETWEEN 1 AND 2").unwrap();
        assert_eq!(many.len(), RANGE_ROWS);
        assert_eq!(session.execute("UPDATE t SET k=1").unwrap(), 1);
        assert_eq!(session.execute("BEGIN").unwrap(), 0);
        assert!(session.query("SHOW GLOBAL VARIABLES").unwrap().is_empty());
        assert!(session.prepare("SELECT c FROM t WHERE id=?").unwrap() > 0);
        session.quit();
    });
}

#[test]
fn a_client_of_postgresql_is_answered_in_its_own_words() {
    serving(Driver::Pgsql, |port| {
        let transport = Transport::default();
        let timeouts = Timeouts::of_login(SOON);
        let mut session =
            PostgresSession::connect(&endpoint(port), &anybody(), &transport, &timeouts).unwrap();
        assert_eq!(session.server_version(), "18.0 (null responder)");
        let one = session.query("SELECT c FROM sbtest1 WHERE id=1").unwrap();
        assert_eq!(one, [[Some("7".repeat(ROW_LENGTH))]]);
        let many = session.query("select c from t where id BETWEEN 1 AND 2").unwrap();
        assert_eq!(many.len(), RANGE_ROWS);
        assert!(session.query("UPDATE t SET k=1").unwrap().is_empty());
        session.prepare(7, "SELECT c FROM t WHERE id=$1", &[20]).unwrap();
        session.quit();
    });
}

#[test]
fn the_engine_runs_on_it_and_leaves_no_session_behind() {
    let asked = [
        ("mysql", Driver::Mysql, "oltp_point_select", true),
        ("mysql", Driver::Mysql, "oltp_read_write", true),
        ("pgsql", Driver::Pgsql, "oltp_read_write", true),
        ("pgsql", Driver::Pgsql, "oltp_read_write", false),
    ];
    for (name, driver, workload, prepared) in asked {
        let (record, responder) = serving(driver, |port| {
            let spec: RunSpec = serde_json::from_value(json!({
                "driver": name, "prepared": prepared,
                "endpoint": {"host": "127.0.0.1", "port": port}, "user": "a", "database": "b",
                "connections": 300, "window_s": 0, "events": 600, "seed": 1,
                "workload": {"name": workload},
            }))
            .unwrap();
            run(&spec, &AtomicBool::new(false), &mut |_| ()).unwrap()
        });
        assert_eq!(record.failure, None);
        let record = serde_json::to_value(&record).unwrap();
        let intervals = record["intervals"].as_array().unwrap();
        let total =
            |name: &str| -> u64 { intervals.iter().map(|one| one[name].as_u64().unwrap()).sum() };
        assert_eq!(total("events"), 600);
        if workload == "oltp_read_write" {
            let counts = ["reads", "writes", "others"].map(total);
            assert_eq!(counts, [14 * 600, 4 * 600, 2 * 600], "{name}, prepared: {prepared}");
        }
        assert_eq!(responder.sessions(), 0);
    }
}

#[test]
fn commands_may_come_in_pieces_and_nonsense_ends_only_its_own_session() {
    let (_, responder) = serving(Driver::Mysql, |port| {
        let mut good = session(port);
        let mut bad = TcpStream::connect(("127.0.0.1", port)).unwrap();
        bad.set_read_timeout(Some(SOON)).unwrap();
        for byte in [0x05, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff] {
            bad.write_all(&[byte]).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let greeting_and_end = bad.read_to_end(&mut Vec::new()).unwrap();
        assert!(greeting_and_end > 40);
        assert_eq!(good.execute("BEGIN").unwrap(), 0);
    });
    assert_eq!(responder.sessions(), 0);
}

#[test]
fn a_client_of_postgresql_that_talks_nonsense_is_left_alone() {
    let (_, responder) = serving(Driver::Pgsql, |port| {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.set_read_timeout(Some(SOON)).unwrap();
        client.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap(); // does it speak TLS?
        let mut answer = [0];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"N");
        for byte in b"\0\0\0\x09\0\x03\0\0\0" {
            client.write_all(&[*byte]).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut told = Vec::new();
        while !told.ends_with(b"Z\0\0\0\x05I") {
            client.read_exact(&mut answer).unwrap();
            told.extend(answer);
        }
        client.write_all(b"B\0\0\0\x09\0s99\0").unwrap(); // no such statement
        assert_eq!(client.read(&mut answer).unwrap(), 0);
    });
    assert_eq!(responder.sessions(), 0);
}
