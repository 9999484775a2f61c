//! Loads into a notebook in place of a server.

use super::prewarm::prewarm_through;
use super::{
    CleanupSpec, Layout, PrepareSpec, Prewarming, Progress, Report, Stage, cleanup_through,
    prepare_through,
};
use crate::dataset::target::Target;
use crate::error::Failure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Decides what happens to a statement; the number counts all statements of the load.
type Rule = dyn Fn(usize, &str) -> Result<(), Failure> + Send + Sync;

/// Statements in the order they ended, from all sessions.
#[derive(Clone)]
struct Notebook {
    statements: Arc<Mutex<Vec<String>>>,
    count: Arc<AtomicUsize>,
    rule: Arc<Rule>,
}

impl Target for Notebook {
    fn execute(&mut self, sql: &str) -> Result<(), Failure> {
        (self.rule)(self.count.fetch_add(1, Ordering::SeqCst), sql)?;
        self.statements.lock().unwrap().push(sql.to_owned());
        Ok(())
    }

    fn takes_files(&mut self) -> Result<bool, Failure> {
        Err(server_error(1193, "Unknown system variable 'local_infile'"))
    }

    fn load(
        &mut self,
        sql: &str,
        _next: &mut dyn FnMut(&mut Vec<u8>) -> u64,
    ) -> Result<(), Failure> {
        self.execute(sql)
    }
}

/// A server that takes files, or says that it does; a file is noted as its lines.
struct FileNotebook {
    notebook: Notebook,
    says: bool,
}

impl Target for FileNotebook {
    fn execute(&mut self, sql: &str) -> Result<(), Failure> {
        self.notebook.execute(sql)
    }

    fn takes_files(&mut self) -> Result<bool, Failure> {
        Ok(self.says)
    }

    fn load(
        &mut self,
        sql: &str,
        next: &mut dyn FnMut(&mut Vec<u8>) -> u64,
    ) -> Result<(), Failure> {
        self.notebook.execute(sql)?;
        let mut lines = Vec::new();
        while next(&mut lines) > 0 {}
        let table = sql.split(' ').nth(10).expect("a table");
        for line in String::from_utf8(lines).expect("text").lines() {
            let values: Vec<&str> = line.split('\t').collect();
            let [id, k, c, pad] = values[..] else { panic!("{line}") };
            let row =
                format!("INSERT INTO {table}(id, k, c, pad) VALUES({id}, {k}, '{c}', '{pad}')");
            self.notebook.statements.lock().unwrap().push(row);
        }
        Ok(())
    }
}

impl Notebook {
    fn connect_files(&self, says: bool) -> Result<Box<dyn Target>, Failure> {
        Ok(Box::new(FileNotebook { notebook: self.clone(), says }))
    }

    fn new(rule: impl Fn(usize, &str) -> Result<(), Failure> + Send + Sync + 'static) -> Self {
        Self { statements: Arc::default(), count: Arc::default(), rule: Arc::new(rule) }
    }

    fn connect(&self) -> Result<Box<dyn Target>, Failure> {
        Ok(Box::new(self.clone()))
    }

    fn written(&self) -> Vec<String> {
        self.statements.lock().unwrap().clone()
    }
}

fn spec(changes: Value) -> PrepareSpec {
    let mut whole = json!({
        "endpoint": {"host": "127.0.0.1", "port": 3306}, "user": "sbtest", "password": "secret",
        "database": "sbtest", "tables": 2, "table_size": 60_000, "seed": 5, "threads": 1,
        "distribution": {"name": "uniform"},
    });
    let changes = changes.as_object().expect("a map").clone();
    whole.as_object_mut().expect("a map").extend(changes);
    serde_json::from_value(whole).expect("a sound specification")
}

fn loaded(spec: &PrepareSpec) -> (Vec<String>, Vec<Progress>, Report) {
    let notebook = Notebook::new(|_, _| Ok(()));
    let mut told = Vec::new();
    let mut tell = |progress| told.push(progress);
    let never = AtomicBool::new(false);
    let report = prepare_through(&|| notebook.connect(), spec, &mut tell, &never).unwrap();
    (notebook.written(), told, report)
}

fn failed(spec: &PrepareSpec, notebook: &Notebook, stop: &AtomicBool) -> Failure {
    prepare_through(&|| notebook.connect(), spec, &mut |_| (), stop).unwrap_err()
}

fn server_error(code: u16, message: &str) -> Failure {
    Failure { code: Some(code), sqlstate: "HY000".to_owned(), ..Failure::new("load", message) }
}

/// The rows of all INSERTs by table and id, as text.
fn rows(statements: &[String]) -> BTreeMap<(String, u32), String> {
    let inserts = statements.iter().filter_map(|it| it.strip_prefix("INSERT INTO "));
    let mut rows = BTreeMap::new();
    for insert in inserts {
        let (table, values) = insert.split_once("(id, k, c, pad) VALUES(").expect("an INSERT");
        for row in values.strip_suffix(')').expect("an end").split("),(") {
            let (id, rest) = row.split_once(", ").expect("several columns");
            let id = id.parse().expect("a number");
            let twice = rows.insert((table.to_owned(), id), rest.to_owned());
            assert_eq!(twice, None, "row {id} of {table} comes twice");
        }
    }
    rows
}

#[test]
fn ids_run_from_one_without_gap() {
    let (statements, _, report) = loaded(&spec(json!({"threads": 3})));
    let ids: Vec<(String, u32)> = rows(&statements).into_keys().collect();
    let expected = ["sbtest1", "sbtest2"];
    let expected = expected.iter().flat_map(|t| (1..=60_000).map(|id| ((*t).to_owned(), id)));
    assert!(ids.into_iter().eq(expected));
    assert_eq!((report.tables, report.rows), (2, 120_000));
}

#[test]
fn the_statements_do_not_depend_on_the_number_of_sessions() {
    let sorted = |threads: u32| {
        let (mut statements, ..) = loaded(&spec(json!({"threads": threads})));
        statements.sort();
        statements
    };
    let one = sorted(1);
    assert_eq!(one, sorted(4));
    assert!(one.iter().all(|it| it.len() <= 524_288));
}

#[test]
fn rows_are_the_same_by_file_and_by_insert() {
    let inserted = rows(&loaded(&spec(json!({"load": "insert"}))).0);
    let refused = |_: usize, sql: &str| {
        if sql.starts_with("LOAD") { Err(server_error(3948, "disabled")) } else { Ok(()) }
    };
    for (changes, says, rule, loads) in [
        (json!({}), true, Notebook::new(|_, _| Ok(())), 6),
        (json!({"threads": 3}), true, Notebook::new(|_, _| Ok(())), 6),
        (json!({"load": "infile"}), false, Notebook::new(|_, _| Ok(())), 6),
        (json!({}), false, Notebook::new(|_, _| Ok(())), 0),
        (json!({"load": "insert"}), true, Notebook::new(|_, _| Ok(())), 0),
        (json!({"threads": 2}), true, Notebook::new(refused), 0),
    ] {
        let (mut told, never) = (Vec::new(), AtomicBool::new(false));
        let mut tell = |progress: Progress| told.push(progress.rows_done);
        let spec = spec(changes);
        prepare_through(&|| rule.connect_files(says), &spec, &mut tell, &never).unwrap();
        let written = rule.written();
        assert_eq!(written.iter().filter(|it| it.starts_with("LOAD DATA")).count(), loads);
        assert_eq!(rows(&written), inserted);
        assert_eq!(told.last(), Some(&120_000));
    }
}

#[test]
fn a_file_that_is_refused_is_an_error_where_it_was_asked_for() {
    let refused = |_: usize, sql: &str| {
        if sql.starts_with("LOAD") { Err(server_error(1148, "not allowed")) } else { Ok(()) }
    };
    let notebook = Notebook::new(refused);
    let (spec, never) = (spec(json!({"load": "infile"})), AtomicBool::new(false));
    let failure =
        prepare_through(&|| notebook.connect_files(true), &spec, &mut |_| (), &never).unwrap_err();
    assert_eq!((failure.stage, failure.code), ("insert", Some(1148)));
    assert_eq!(failure.statement, "LOAD DATA INTO sbtest1, rows 1 to 25000");
    assert!(failure.message.ends_with("; 0 of 120000 rows were loaded"), "{}", failure.message);
}

#[test]
fn a_stop_ends_a_file_early_and_counts_its_rows() {
    let stop = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&stop);
    let notebook = Notebook::new(move |_, sql| {
        switch.store(sql.starts_with("LOAD"), Ordering::Relaxed);
        Ok(())
    });
    let failure =
        prepare_through(&|| notebook.connect_files(true), &spec(json!({})), &mut |_| (), &stop)
            .unwrap_err();
    assert_eq!((failure.stage, failure.code), ("insert", None));
    assert_eq!(failure.message, "stopped; 0 of 120000 rows were loaded");
}

#[test]
fn tables_and_seeds_differ() {
    let of_seed = |seed: u32| rows(&loaded(&spec(json!({"seed": seed, "table_size": 1000}))).0);
    let (five, six) = (of_seed(5), of_seed(6));
    let row =
        |of: &BTreeMap<(String, u32), String>, table: &str| of[&(table.to_owned(), 7)].clone();
    assert_ne!(row(&five, "sbtest1"), row(&five, "sbtest2"));
    assert_ne!(row(&five, "sbtest1"), row(&six, "sbtest1"));
}

#[test]
fn rows_have_the_form_of_sysbench() {
    let (statements, ..) = loaded(&spec(json!({"tables": 1, "table_size": 500})));
    let is_grouped = |text: &str, groups: usize| {
        let parts: Vec<&str> = text.trim_matches('\'').split('-').collect();
        let digits = |it: &&str| it.len() == 11 && it.bytes().all(|b| b.is_ascii_digit());
        parts.len() == groups && parts.iter().all(digits)
    };
    for rest in rows(&statements).into_values() {
        let columns: Vec<&str> = rest.split(", ").collect();
        assert!((1..=500).contains(&columns[0].parse::<u32>().expect("k is a number")));
        assert!(is_grouped(columns[1], 10) && is_grouped(columns[2], 5), "{rest}");
    }
}

#[test]
fn the_schema_is_that_of_sysbench() {
    let (statements, ..) = loaded(&spec(json!({"tables": 1, "table_size": 1})));
    assert_eq!(
        statements[0],
        "CREATE TABLE sbtest1(\n  id INTEGER NOT NULL AUTO_INCREMENT,\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
         c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) \
         /*! ENGINE = innodb */ "
    );
    assert_eq!(statements[2], "CREATE INDEX k_1 ON sbtest1(k)");
    let other = json!({"tables": 1, "table_size": 0, "auto_inc": false, "secondary": true,
        "create_secondary": false, "engine": "rocksdb"});
    let (statements, _, report) = loaded(&spec(other));
    assert_eq!((statements.len(), report.rows), (1, 0));
    for part in ["id INTEGER NOT NULL,\n", "  KEY xid (id)\n", "ENGINE = rocksdb */"] {
        assert!(statements[0].contains(part), "{part}");
    }
}

#[test]
fn the_tables_of_bulk_insert_are_empty_and_may_exist() {
    let bulk = |rows| {
        json!({"tables": 2, "layout": "bulk_insert", "table_size": rows,
        "create_secondary": false})
    };
    let (statements, ..) = loaded(&spec(bulk(0)));
    assert_eq!(
        statements[1],
        "        CREATE TABLE IF NOT EXISTS sbtest2 (\n          id INTEGER NOT NULL,\n          \
         k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
    );
    assert_eq!(statements.len(), 2);
    assert_eq!(spec(bulk(7)).mistakes().len(), 1);
}

#[test]
fn the_tables_of_older_scripts_are_made_as_these_made_them() {
    let legacy = json!({"tables": 1, "table_size": 1, "layout": "legacy", "max_rows": 7,
        "table_options": "CHECKSUM=1"});
    let (statements, ..) = loaded(&spec(legacy));
    assert_eq!(
        statements[0],
        "CREATE TABLE sbtest1 (\n  id INTEGER UNSIGNED NOT NULL AUTO_INCREMENT,\n  \
         k INTEGER UNSIGNED DEFAULT '0' NOT NULL,\n  c CHAR(120) DEFAULT '' NOT NULL,\n  \
         pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) \
         /*! ENGINE = innodb MAX_ROWS = 7 */ CHECKSUM=1"
    );
    assert_eq!(statements[2], "CREATE INDEX k_1 ON sbtest1(k)");
    let one = json!({"tables": 1, "table_size": 2, "layout": "legacy_one"});
    assert_eq!(
        loaded(&spec(one)).0,
        [
            "CREATE TABLE sbtest (id INTEGER UNSIGNED NOT NULL auto_increment, \
             k integer UNSIGNED DEFAULT '0' NOT NULL, c char(120) DEFAULT '' NOT NULL, \
             pad char(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) /*! ENGINE=innodb */ ",
            "INSERT INTO sbtest(id, k, c, pad) VALUES\
             (1, 0, ' ', 'qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt'),\
             (2, 0, ' ', 'qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt')",
            "CREATE INDEX k ON sbtest(k)",
        ]
    );
    let wrong = json!({"tables": 2, "layout": "legacy_one", "first_table": 2});
    assert_eq!(
        spec(wrong).mistakes(),
        ["tables must be 1 where there is only sbtest, not 2", "first_table must be 0 or 1, not 2"]
    );
}

#[test]
fn the_tables_of_the_older_bulk_insert_count_from_zero() {
    let bulk = json!({"tables": 2, "layout": "bulk_insert", "table_size": 0, "first_table": 0,
        "create_secondary": false});
    let (statements, told, _) = loaded(&spec(bulk));
    let names: Vec<&str> = statements.iter().filter_map(|it| it.split(' ').nth(13)).collect();
    assert_eq!(names, ["sbtest0", "sbtest1"]);
    assert_eq!(told.iter().map(|it| it.table).collect::<Vec<_>>(), [0, 1]);
    let filled = json!({"first_table": 0});
    assert_eq!(spec(filled).mistakes(), ["first_table must be 1 for tables that are given rows"]);
}

#[test]
fn prewarm_reads_each_table_once() {
    let notebook = Notebook::new(|_, _| Ok(()));
    let (mut told, never) = (Vec::new(), AtomicBool::new(false));
    let mut tell = |it: Prewarming| told.push(serde_json::to_string(&it).unwrap());
    let one = spec(json!({"table_size": 50}));
    prewarm_through(&|| notebook.connect(), &one, &mut tell, &never).unwrap();
    assert_eq!(told, [r#"{"table":1,"stage":"prewarm"}"#, r#"{"table":2,"stage":"prewarm"}"#]);
    assert_eq!(
        notebook.written()[..5],
        [
            "SET tmp_table_size=2*1024*1024*1024",
            "SET max_heap_table_size=2*1024*1024*1024",
            "ANALYZE TABLE sbtest1",
            "SELECT AVG(id) FROM (SELECT * FROM sbtest1 FORCE KEY (PRIMARY) LIMIT 50) t",
            "SELECT COUNT(*) FROM (SELECT * FROM sbtest1 WHERE k LIKE '%0%' LIMIT 50) t",
        ]
    );
    assert_eq!(notebook.written().len(), 8);
}

#[test]
fn a_prewarm_ends_at_the_first_failure_and_when_stopped() {
    let missing = || Err(server_error(1146, "Table 'sbtest.sbtest1' doesn't exist"));
    let notebook = Notebook::new(move |number, _| if number < 2 { Ok(()) } else { missing() });
    let prewarm = |notebook: &Notebook, stop| {
        let stop = AtomicBool::new(stop);
        prewarm_through(&|| notebook.connect(), &spec(json!({})), &mut |_| (), &stop).unwrap_err()
    };
    let failure = prewarm(&notebook, false);
    assert_eq!((failure.stage, failure.code), ("prewarm", Some(1146)));
    assert_eq!(notebook.written().len(), 2);
    let stopped = prewarm(&Notebook::new(|_, _| Ok(())), true);
    assert_eq!((stopped.stage, stopped.message.as_str()), ("prewarm", "stopped"));
}

#[test]
fn stages_follow_each_other_and_progress_counts_up() {
    let (statements, told, _) = loaded(&spec(json!({"threads": 4})));
    let stage_of = |it: &String| match it.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["CREATE", "TABLE"] => Stage::Create,
        ["INSERT", "INTO"] => Stage::Insert,
        _ => Stage::Index,
    };
    let stages: Vec<usize> = statements.iter().map(|it| stage_of(it) as usize).collect();
    assert!(stages.is_sorted(), "no stage begins before the one before has ended");
    assert_eq!(told.len(), statements.len());
    assert!(told.is_sorted_by_key(|it| it.rows_done));
    let last = told.last().expect("progress was told");
    assert_eq!((last.rows_done, last.rows_total, last.stage), (120_000, 120_000, Stage::Index));
    let text = serde_json::to_string(&Progress { table: 2, ..*last }).unwrap();
    assert_eq!(text, r#"{"table":2,"rows_done":120000,"rows_total":120000,"stage":"index"}"#);
}

#[test]
fn an_existing_table_asks_for_cleanup() {
    let exists = || Err(server_error(1050, "Table 'sbtest1' already exists"));
    let notebook = Notebook::new(move |_, _| exists());
    let failure = failed(&spec(json!({})), &notebook, &AtomicBool::new(false));
    assert_eq!((failure.stage, failure.code), ("create", Some(1050)));
    assert_eq!(failure.message, "Table 'sbtest1' already exists; run cleanup first");
    assert_eq!(notebook.written(), Vec::<String>::new(), "nothing goes on after a failure");
}

#[test]
fn a_full_disk_says_how_far_the_load_came() {
    for (code, message) in [
        (1114, "The table 'sbtest2' is full"),
        (1021, "Disk full"),
        (1026, "Error writing file 'x' (Errcode: 28 - No space left on device)"),
    ] {
        let full = move |number, _: &str| {
            if number < 4 { Ok(()) } else { Err(server_error(code, message)) }
        };
        let failure = failed(&spec(json!({})), &Notebook::new(full), &AtomicBool::new(false));
        assert_eq!((failure.stage, failure.code), ("insert", Some(code)));
        let done = failure.message.split("; ").nth(1).expect("how far").to_owned();
        assert!(done.ends_with(" of 120000 rows were loaded") && !done.starts_with("0 "), "{done}");
        assert!(failure.message.contains("free disk space"), "{}", failure.message);
        assert!(
            failure.statement.starts_with("INSERT INTO sbtest1, rows "),
            "{}",
            failure.statement
        );
    }
}

#[test]
fn a_stop_is_heeded_between_statements() {
    let stop = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&stop);
    let notebook = Notebook::new(move |number, _| {
        if number == 3 {
            switch.store(true, Ordering::Relaxed);
        }
        Ok(())
    });
    let failure = failed(&spec(json!({})), &notebook, &stop);
    assert_eq!((failure.stage, failure.code), ("insert", None));
    assert!(failure.message.starts_with("stopped; "), "{}", failure.message);
    assert_eq!(notebook.written().len(), 4);
}

#[test]
fn a_refused_login_ends_the_load() {
    let refuse = || Err(Failure::new("connect", "Access denied"));
    let never = AtomicBool::new(false);
    let four = spec(json!({"threads": 4}));
    let failure = prepare_through(&refuse, &four, &mut |_| (), &never).unwrap_err();
    assert_eq!((failure.stage, failure.message.as_str()), ("connect", "Access denied"));
}

#[test]
fn all_mistakes_are_told_at_once() {
    let wrong = spec(json!({"tables": 0, "table_size": 4_000_000_000_u32, "threads": 5000,
        "engine": "innodb */ x", "distribution": {"name": "pareto", "h": 3.0}}));
    let notebook = Notebook::new(|_, _| Ok(()));
    let failure = failed(&wrong, &notebook, &AtomicBool::new(false));
    assert_eq!(failure.stage, "spec");
    let expected = [
        "tables must be at least 1, not 0",
        "table_size must be at most 2147483647, not 4000000000",
        "threads must be at most 1024, not 5000",
        "engine must be the name of a storage engine, not \"innodb */ x\"",
        "distribution: h must lie between 0 and 1, not 3",
    ];
    assert_eq!(failure.message.lines().collect::<Vec<_>>(), expected);
    assert!(!format!("{wrong:?}").contains("secret"));
}

#[test]
fn cleanup_drops_every_table() {
    let spec: CleanupSpec = serde_json::from_value(json!({
        "endpoint": {"socket": "/run/x.sock"}, "user": "u", "password": "", "database": "d", "tables": 3
    }))
    .unwrap();
    let notebook = Notebook::new(|_, _| Ok(()));
    let report = cleanup_through(&|| notebook.connect(), &spec).unwrap();
    let drops = [1, 2, 3].map(|n| format!("DROP TABLE IF EXISTS sbtest{n}"));
    assert_eq!(notebook.written(), drops);
    assert_eq!((report.tables, report.rows), (3, 0));
    let older = CleanupSpec { first_table: 0, tables: 1, ..spec.clone() };
    cleanup_through(&|| notebook.connect(), &older).unwrap();
    let oldest = CleanupSpec { layout: Layout::LegacyOne, tables: 1, ..spec.clone() };
    cleanup_through(&|| notebook.connect(), &oldest).unwrap();
    let further = ["DROP TABLE IF EXISTS sbtest0", "DROP TABLE IF EXISTS sbtest"];
    assert_eq!(notebook.written()[3..], further);
    let denied = Notebook::new(|_, _| Err(server_error(1142, "DROP command denied")));
    let failure = cleanup_through(&|| denied.connect(), &spec).unwrap_err();
    assert_eq!((failure.stage, failure.code), ("drop", Some(1142)));
}
