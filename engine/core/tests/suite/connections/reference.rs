//! Behaviour of the reference server, on which other tests rely.

use std::time::{Duration, Instant};

use dbdyno_core::reference::{Malformed, Reference, Script, Service, Stall, Statement};
use dbdyno_core::session::{CONNECT_TIMEOUT, Session, SessionError};

fn reference(script: Script) -> Reference {
    Reference::start(script).expect("a reference server")
}

fn connect(reference: &Reference) -> Result<Session, SessionError> {
    Session::connect(&reference.endpoint(), &reference.login(), CONNECT_TIMEOUT)
}

fn session(reference: &Reference) -> Session {
    connect(reference).expect("a session")
}

#[test]
fn every_answer_takes_the_service_time() {
    let service_time = Duration::from_millis(20);
    let reference =
        reference(Script { service: Service::Fixed(service_time), ..Script::default() });
    let mut session = session(&reference);
    let begun = Instant::now();
    for _ in 0..5 {
        session.execute("BEGIN").expect("OK");
    }
    assert!(begun.elapsed() >= 5 * service_time);
}

#[test]
fn nothing_is_answered_during_a_stall() {
    let stall = Stall { after: Duration::from_millis(50), lasting: Duration::from_millis(200) };
    let reference = reference(Script { stall: Some(stall), ..Script::default() });
    let mut session = session(&reference);
    let begun = Instant::now();
    session.execute("BEGIN").expect("OK");
    // The server counts from the arrival of the first statement, which lies between the two.
    std::thread::sleep(stall.after);
    session.execute("BEGIN").expect("OK");
    assert!(begun.elapsed() >= stall.after + stall.lasting);
}

#[test]
fn the_log_keeps_each_sessions_statements_in_order() {
    let reference = reference(Script { log_statements: true, ..Script::default() });
    let (mut first, mut second) = (session(&reference), session(&reference));
    for (session, text) in [(&mut first, "BEGIN"), (&mut second, "SELECT 1")] {
        session.execute(text).expect("an answer");
    }
    first.execute("COMMIT").expect("an answer");
    let of = |connection_id: u32| -> Vec<String> {
        let log = reference.log();
        let own = log.into_iter().filter(|line| line.connection_id == connection_id);
        own.map(|Statement { text, .. }| text).collect()
    };
    assert_eq!((of(1), of(2)), (vec!["BEGIN".into(), "COMMIT".into()], vec!["SELECT 1".into()]));
    assert_eq!((reference.statements(), reference.sessions()), (3, 2));
}

#[test]
fn a_dead_server_ends_every_session_and_accepts_none() {
    let reference = reference(Script { die_after_statements: Some(1), ..Script::default() });
    let (mut first, mut second) = (session(&reference), session(&reference));
    first.execute("BEGIN").expect("the last answer");
    assert!(first.execute("COMMIT").is_err());
    assert!(second.execute("BEGIN").is_err());
    let dead = Instant::now();
    while connect(&reference).is_ok() {
        assert!(dead.elapsed() < Duration::from_secs(5), "it still listens");
    }
}

#[test]
fn nonsense_is_found_by_the_scanner() {
    let cases = [
        (Malformed::BadSequence, "wanted packet number 1 of the reply, found number 2"),
        (Malformed::HugeLength, "found a packet of 16777215 bytes"),
        (Malformed::Truncated, "the server closed the connection"),
    ];
    for (malformed, words) in cases {
        let reference = reference(Script { malformed: Some(malformed), ..Script::default() });
        let text = session(&reference).execute("SELECT 1").expect_err("nonsense").to_string();
        assert!(text.contains(words), "{text:?} should say {words:?}");
    }
}

#[test]
fn endless_rows_end_with_the_server() {
    let script = Script { malformed: Some(Malformed::Endless), ..Script::default() };
    let mut reference = reference(script);
    let mut session = session(&reference);
    let client = std::thread::spawn(move || session.execute("SELECT 1").map_err(|e| e.to_string()));
    std::thread::sleep(Duration::from_millis(50));
    assert!(!client.is_finished());
    reference.stop();
    assert!(client.join().expect("no panic").is_err());
}

#[test]
fn a_stopped_server_leaves_no_socket_file() {
    let mut reference = reference(Script::default());
    assert!(reference.socket.exists());
    reference.stop();
    assert!(!reference.socket.exists());
    assert!(connect(&reference).is_err());
}
