//! Loads through real sessions into the reference server, which keeps every statement.

use dbdyno_core::dataset::{
    CleanupSpec, LoadProgress, PrepareSpec, Report, Stage, cleanup, prepare,
};
use dbdyno_core::error::Failure;
use dbdyno_core::reference::{Fail, Files, Reference, Script};
use dbdyno_core::session::{CONNECT_TIMEOUT, Session};
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;

const ROWS: u32 = 30_000;

fn started(script: Script) -> Reference {
    Reference::start(Script { log_statements: true, ..script }).expect("a free port")
}

fn address(server: &Reference) -> Value {
    let login = server.login();
    json!({
        "endpoint": {"host": "127.0.0.1", "port": server.port},
        "user": login.user, "password": login.password, "database": login.database, "tables": 2,
    })
}

fn load(server: &Reference, threads: u32) -> (Result<Report, Failure>, Vec<LoadProgress>) {
    load_by(server, threads, "auto")
}

fn load_by(
    server: &Reference,
    threads: u32,
    way: &str,
) -> (Result<Report, Failure>, Vec<LoadProgress>) {
    let mut spec = address(server);
    spec["table_size"] = json!(ROWS);
    spec["seed"] = json!(11);
    spec["threads"] = json!(threads);
    spec["load"] = json!(way);
    let spec: PrepareSpec = serde_json::from_value(spec).expect("a sound specification");
    let mut told = Vec::new();
    let report = prepare(&spec, &mut |progress| told.push(progress), &AtomicBool::new(false));
    (report, told)
}

fn sorted_log(server: &Reference) -> Vec<String> {
    let mut texts: Vec<String> = server.log().into_iter().map(|it| it.text).collect();
    texts.sort();
    texts
}

#[test]
fn a_load_is_the_same_through_one_session_and_through_three() {
    let [one, three] = [1, 3].map(|threads| {
        let server = started(Script::default());
        let (report, told) = load(&server, threads);
        let report = report.expect("nothing is refused");
        assert_eq!((report.tables, report.rows), (2, u64::from(2 * ROWS)));
        assert_eq!(told.last().map(|it| it.stage), Some(Stage::Index));
        let mut log = sorted_log(&server);
        log.retain(|it| it != "SELECT @@GLOBAL.local_infile"); // each session asks
        (told.len(), log)
    });
    assert!(one == three, "the statements are the same");
    let (_, log) = one;
    let begin_with = |head: &str| log.iter().filter(|it| it.starts_with(head)).count();
    assert_eq!(begin_with("CREATE TABLE sbtest"), 2);
    assert_eq!(begin_with("CREATE INDEX k_"), 2);
    let rows = |it: &String| it.matches("),(").count() + 1;
    let inserts = log.iter().filter(|it| it.starts_with("INSERT INTO sbtest"));
    assert_eq!(inserts.map(rows).sum::<usize>(), 2 * ROWS as usize);
}

#[test]
fn a_refusal_reaches_the_caller_with_its_code_and_a_hint() {
    let refusal = |code, word: &str| Script {
        fail: Some(Fail::every(1, code, b"42S01", "planned").only_containing(word)),
        ..Script::default()
    };
    for (code, word, stage, hint) in [
        (1050, "CREATE TABLE", "create", "; run cleanup first"),
        (1114, "INSERT", "insert", "; 0 of 60000 rows were loaded; free disk space"),
        (1061, "CREATE INDEX", "index", "planned"),
    ] {
        let server = started(refusal(code, word));
        let failure = load(&server, 2).0.expect_err("a refusal");
        assert_eq!((failure.stage, failure.code), (stage, Some(code)));
        assert_eq!((failure.sqlstate.as_str(), failure.server_message()), ("42S01", "planned"));
        assert!(failure.message.contains(hint), "{}", failure.message);
        assert!(failure.statement.starts_with(word), "{}", failure.statement);
        assert!(failure.statement.len() < 300, "not half a megabyte of rows");
    }
}

#[test]
fn files_are_streamed_and_their_rows_counted() {
    for threads in [1, 3] {
        let server = started(Script { files: Some(Files::Taken), ..Script::default() });
        let report = load_by(&server, threads, "infile").0.expect("nothing is refused");
        let stages = report.stages.expect("a load has stages");
        let sum = stages.create + stages.insert + stages.index;
        assert!(stages.insert > 0.0 && sum <= report.seconds, "{report:?}");
        assert_eq!(report.rows, u64::from(2 * ROWS));
        let log = sorted_log(&server);
        let loads = log.iter().filter(|it| it.starts_with("LOAD DATA LOCAL INFILE"));
        assert_eq!((loads.count(), log.len()), (4, 8));
    }
}

#[test]
fn a_file_that_goes_wrong_ends_the_load_with_what_the_server_said() {
    for (files, code, words) in [
        (Files::RefusesAfter(200_000), Some(1114), "The table 'sbtest1' is full"),
        (Files::DiesAfter(200_000), None, "wanted the answer to \"LOAD DATA"),
        (Files::Foreign, None, "asks for a local file"),
        (Files::LosesOne, None, "24999 of 25000 rows taken, with 0 warnings; try multi-row INSERT"),
    ] {
        let server = started(Script { files: Some(files), ..Script::default() });
        let failure = load_by(&server, 1, "infile").0.expect_err("a failure");
        assert_eq!((failure.stage, failure.code), ("insert", code), "{files:?}");
        assert!(failure.message.contains(words), "{files:?}: {}", failure.message);
        assert!(failure.message.contains("; 0 of 60000 rows were loaded"), "{}", failure.message);
        assert_eq!(failure.statement, "LOAD DATA INTO sbtest1, rows 1 to 25000");
    }
}

#[test]
fn a_session_that_does_not_load_never_answers_a_request_for_a_file() {
    let server = started(Script { files: Some(Files::Foreign), ..Script::default() });
    let mut session =
        Session::connect(&server.endpoint(), &server.login(), CONNECT_TIMEOUT).expect("a session");
    let sql = "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t";
    let refusal = session.execute(sql).expect_err("a refusal").to_string();
    assert!(refusal.contains("asks for a local file"), "{refusal}");
}

#[test]
fn a_server_that_dies_ends_the_load() {
    let server = started(Script { die_after_statements: Some(5), ..Script::default() });
    let failure = load(&server, 2).0.expect_err("a dead server");
    assert_eq!((failure.stage, failure.code), ("insert", None));
    assert!(failure.message.contains(" of 60000 rows were loaded"), "{}", failure.message);
}

#[test]
fn a_wrong_password_is_refused_at_stage_connect() {
    let server = started(Script { password: "right".to_owned(), ..Script::default() });
    let mut wrong = address(&server);
    wrong["password"] = json!("wrong");
    let wrong: CleanupSpec = serde_json::from_value(wrong).expect("a sound specification");
    let failure = cleanup(&wrong, &AtomicBool::new(false)).expect_err("a refused login");
    assert_eq!((failure.stage, failure.code), ("connect", Some(1045)));
    assert!(!format!("{failure:?}{wrong:?}").contains("right"));
}

#[test]
fn cleanup_drops_the_tables() {
    let server = started(Script::default());
    let spec: CleanupSpec = serde_json::from_value(address(&server)).expect("a specification");
    assert_eq!(cleanup(&spec, &AtomicBool::new(false)).expect("nothing is refused").tables, 2);
    let log = sorted_log(&server);
    assert_eq!(log, ["DROP TABLE IF EXISTS sbtest1", "DROP TABLE IF EXISTS sbtest2"]);
}
