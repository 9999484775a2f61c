//! The blocking client against the reference server: each end checks the other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use dbdyno_core::reference::{Fail, Malformed, RANGE_ROWS, ROW_LENGTH, Reference, Script};
use dbdyno_core::session::{CONNECT_TIMEOUT, Endpoint, Login, Session, SessionError};
use dbdyno_wire::mysql::auth::Plugin;
use dbdyno_wire::mysql::capability;
use dbdyno_wire::mysql::command::{self, Parameter};
use dbdyno_wire::mysql::handshake::{Handshake, NONCE_LENGTH};
use dbdyno_wire::mysql::packet::{begin_packet, end_packet};
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, Scanner};

fn reference(script: Script) -> Reference {
    Reference::start(script).expect("a reference server")
}

fn session(reference: &Reference) -> Session {
    Session::connect(&reference.endpoint(), &reference.login(), CONNECT_TIMEOUT).expect("a session")
}

/// Refusal of a session, in time even on a busy machine.
fn refused(endpoint: &Endpoint, login: &Login) -> SessionError {
    Session::connect(endpoint, login, Duration::from_secs(2)).expect_err("no session")
}

#[test]
fn statements_are_answered_over_tcp_and_over_a_socket() {
    for deprecate_eof in [true, false] {
        let reference = reference(Script { deprecate_eof, ..Script::default() });
        for endpoint in [reference.endpoint(), reference.socket_endpoint()] {
            let mut session = Session::connect(&endpoint, &reference.login(), CONNECT_TIMEOUT)
                .expect("a session");
            assert_eq!(session.deprecate_eof(), deprecate_eof);
            assert_eq!(session.server_version(), "8.0.0-dbdyno-reference");
            let rows = session.query("SELECT c FROM t WHERE id BETWEEN 1 AND 100").expect("rows");
            assert_eq!(rows, vec![vec![Some("7".repeat(ROW_LENGTH))]; RANGE_ROWS]);
            assert_eq!(session.query("SELECT 1").expect("a row").len(), 1);
            assert_eq!(session.query("BEGIN").expect("no rows").len(), 0);
            assert_eq!(session.execute("DELETE FROM t WHERE id=1").expect("OK"), 1);
            assert_eq!(session.execute("SELECT 1").expect("rows that are skipped"), 0);
            session.quit();
        }
    }
}

#[test]
fn a_prepared_session_is_handed_over_without_losing_a_byte() {
    for deprecate_eof in [true, false] {
        let reference = reference(Script { deprecate_eof, ..Script::default() });
        let mut session = session(&reference);
        let sql = "SELECT c FROM t WHERE id BETWEEN ? AND ?";
        let statement_id = session.prepare(sql).expect("a statement");
        let mut scanner = Scanner::new(session.deprecate_eof());
        let mut stream = TcpStream::from(session.into_stream().0);
        let mut packet = Vec::new();
        let values = [Parameter::BigInt(1), Parameter::BigInt(100)];
        command::statement_execute(&mut packet, statement_id, &values, true);
        stream.write_all(&packet).expect("sent");
        scanner.begin(ReplyShape::Binary);
        let mut buffer = [0; 4096];
        let outcome = loop {
            let length = stream.read(&mut buffer).expect("a reply");
            if let Some(outcome) = scanner.feed(&buffer[..length]).expect("in step") {
                break outcome;
            }
        };
        let Outcome::Done(summary) = outcome else { panic!("{outcome:?}") };
        assert_eq!(summary.rows, RANGE_ROWS as u64);
    }
}

#[test]
fn an_empty_password_opens_a_session() {
    let reference = reference(Script { password: String::new(), ..Script::default() });
    assert_eq!(session(&reference).query("SELECT 1").expect("a row").len(), 1);
}

#[test]
fn a_wrong_password_is_a_refusal_that_does_not_show_it() {
    let reference = reference(Script::default());
    let login = Login { password: "wrong-secret".into(), ..reference.login() };
    let error = refused(&reference.endpoint(), &login);
    assert_eq!(error.server_code(), Some(1045));
    assert_eq!(error.sqlstate().as_deref(), Some("28000"));
    let text = error.to_string();
    assert!(text.starts_with(&format!("127.0.0.1:{}: wanted a session", reference.port)), "{text}");
    assert!(text.contains("\"bench\"") && text.contains("try another user or password"), "{text}");
    assert!(!format!("{text} {error:?} {login:?}").contains("wrong-secret"));
}

#[test]
fn a_refused_statement_leaves_the_session_usable() {
    let fail = Fail::every(2, 1213, b"40001", "Deadlock found").only_containing("UPDATE");
    let reference = reference(Script { fail: Some(fail), ..Script::default() });
    let mut session = session(&reference);
    assert_eq!(session.execute("UPDATE t SET k=1").expect("the first"), 1);
    let error = session.execute("UPDATE t SET k=2").expect_err("the second");
    assert_eq!((error.server_code(), error.sqlstate().as_deref()), (Some(1213), Some("40001")));
    assert!(error.to_string().contains("wanted the answer to \"UPDATE t SET k=2\""), "{error}");
    assert_eq!(session.query("SELECT 1").expect("a row").len(), 1);
}

#[test]
fn nobody_listening_is_told_with_what_to_try() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("its address").port();
    drop(free);
    let login = Login { user: "bench".into(), password: String::new(), database: String::new() };
    let tcp = refused(&Endpoint::Tcp { host: "127.0.0.1".into(), port }, &login).to_string();
    assert!(
        tcp.contains("found no connection") && tcp.contains("try starting the server"),
        "{tcp}"
    );
    let path = std::env::temp_dir().join("dbdyno-no-such.sock").to_string_lossy().into_owned();
    let unix = refused(&Endpoint::Unix { path }, &login);
    assert!(unix.to_string().contains("its socket setting"), "{unix}");
    assert_eq!(unix.server_code(), None);
}

/// Accepts a client and sends `greeting`, possibly empty.
fn impostor(greeting: &'static [u8]) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        client.write_all(greeting).expect("sent");
        drop(client.read(&mut [0; 64]));
    });
    Endpoint::Tcp { host: "127.0.0.1".into(), port }
}

#[test]
fn a_server_that_speaks_something_else_is_told_apart() {
    let login = Login { user: "bench".into(), password: String::new(), database: String::new() };
    let cases: [(&[u8], &str); 5] = [
        (b"", "no answer within the time limit"),
        (b"\x01\x40\0\0", "a message longer than 16384 bytes"),
        (b"\x05\0\0\0\x05\0\0\0\x0b", "does not speak MySQL"),
        (b"SSH-2.0-OpenSSH", "packet number 45 where 0 comes next"),
        (b"\x09\0\0\0\xff\x57\x0cplease", "error 3159"),
    ];
    for (greeting, words) in cases {
        let text = refused(&impostor(greeting), &login).to_string();
        assert!(text.contains(words), "{text:?} should say {words:?}");
    }
}

/// Accepts a client over a Unix socket, with `answers` to its login, numbered from 2.
fn caching_server(name: &str, answers: Vec<&'static [u8]>) -> Endpoint {
    let path = std::env::temp_dir().join(format!("dbdyno-{name}-{}.sock", std::process::id()));
    drop(std::fs::remove_file(&path));
    let listener = UnixListener::bind(&path).expect("a socket");
    let endpoint = Endpoint::Unix { path: path.to_string_lossy().into_owned() };
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        drop(std::fs::remove_file(path));
        let (mut out, mut sequence) = (Vec::new(), 0);
        let greeting = Handshake {
            server_version: "8.0.33".into(),
            connection_id: 1,
            nonce: vec![7; NONCE_LENGTH],
            capabilities: capability::SERVER,
            collation: 45,
            status: 2,
            plugin: Plugin::CachingSha2.name().into(),
        };
        greeting.write(&mut out, &mut sequence);
        for answer in answers {
            client.write_all(&out).expect("sent");
            out.clear();
            if answer != KEEP_WAITING || sequence < 2 {
                sequence = sequence.wrapping_add(1);
                assert!(client.read(&mut [0; 512]).expect("an answer") > 0);
            }
            let start = begin_packet(&mut out, sequence);
            out.extend_from_slice(answer);
            sequence = end_packet(&mut out, start);
            if answer == WELCOME {
                sequence = 0; // of the request that comes next
            }
        }
        drop(client.write_all(&out));
        drop(client.read(&mut [0; 512]));
    });
    endpoint
}

const FULL: &[u8] = &[1, 4];
const KEEP_WAITING: &[u8] = &[1, 3];
const WELCOME: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

#[test]
fn a_session_is_shown_without_the_password_it_has_just_sent() {
    let endpoint = caching_server("full", vec![FULL, WELCOME]);
    let login = Login { user: "u".into(), password: "secret".into(), database: String::new() };
    let session = Session::connect(&endpoint, &login, CONNECT_TIMEOUT).expect("a session");
    let shown = format!("{session:?}");
    assert!(shown.contains("8.0.33"), "{shown}");
    assert!(!shown.contains("secret") && !shown.contains("115, 101, 99"), "{shown}");
}

#[test]
fn a_login_that_never_ends_is_ended() {
    let endpoint = caching_server("endless", vec![KEEP_WAITING; 100]);
    let login = Login { user: "u".into(), password: "secret".into(), database: String::new() };
    let text = refused(&endpoint, &login).to_string();
    assert!(text.contains("a login that does not come to an end"), "{text}");
}

#[test]
fn a_login_has_one_time_limit_however_slowly_the_server_speaks() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    // A greeting of 255 bytes, one every 50 ms; returns the number sent.
    let speaking = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let greeting = std::iter::once(255).chain(std::iter::repeat_n(0, 258));
        let is_heard = |byte: u8| {
            std::thread::sleep(Duration::from_millis(50));
            client.write_all(&[byte]).is_ok()
        };
        greeting.map(is_heard).take_while(|is_heard| *is_heard).count()
    });
    let login = Login { user: "bench".into(), password: String::new(), database: String::new() };
    let text = refused(&Endpoint::Tcp { host: "localhost".into(), port }, &login).to_string();
    assert!(text.contains("no answer within the time limit"), "{text}");
    assert!(speaking.join().expect("no panic") < 250, "the client waited for all of it");
}

#[test]
fn lengths_that_a_server_claims_are_not_believed() {
    let login = Login { user: "u".into(), password: "secret".into(), database: String::new() };
    let packet_of_columns = &[0xfe, 0, 0, 0, 0, 2, 0, 0, 0]; // 2^33
    let endpoint = caching_server("columns", vec![FULL, WELCOME, packet_of_columns]);
    let mut session = Session::connect(&endpoint, &login, CONNECT_TIMEOUT).expect("a session");
    let text = session.query("SELECT 1").expect_err("nonsense").to_string();
    assert!(text.contains("a result of 8589934592 columns"), "{text}");
    let reference =
        reference(Script { malformed: Some(Malformed::HugeLength), ..Script::default() });
    let mut session = self::session(&reference);
    let text = session.query("SELECT 1").expect_err("nonsense").to_string();
    assert!(text.contains("a message longer than 8388608 bytes"), "{text}");
}

#[test]
fn a_server_that_dies_is_told() {
    let reference = reference(Script { die_after_statements: Some(1), ..Script::default() });
    let mut session = session(&reference);
    session.execute("BEGIN").expect("the first");
    let text = session.execute("COMMIT").expect_err("the second").to_string();
    assert!(text.contains("the server closed the connection"), "{text}");
}
