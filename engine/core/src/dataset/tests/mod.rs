//! Loads into a notebook in place of a server.

use super::prewarm::prewarm_through;
use super::{
    CleanupSpec, Layout, LoadProgress, PrepareSpec, PrewarmProgress, Report, Stage,
    cleanup_through, prepare_through,
};
use crate::dataset::target::Target;
use crate::error::Failure;
use crate::session::Timeouts;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Outcome of a statement, by its number in the load and its text.
type Rule = dyn Fn(usize, &str) -> Result<(), Failure> + Send + Sync;

/// Statements of all sessions, in order of completion.
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

    fn limit_silence(&mut self, _limit: Option<Duration>) {}

    fn connection_id(&self) -> u32 {
        7
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

/// Server that takes files, or claims to; notes a file as its lines.
struct FileNotebook {
    notebook: Notebook,
    says: bool,
}

impl Target for FileNotebook {
    fn execute(&mut self, sql: &str) -> Result<(), Failure> {
        self.notebook.execute(sql)
    }

    fn limit_silence(&mut self, _limit: Option<Duration>) {}

    fn connection_id(&self) -> u32 {
        self.notebook.connection_id()
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
        "database": "sbtest", "tables": 2, "table_size": 26_000, "seed": 5, "threads": 1,
        "distribution": {"name": "uniform"},
    });
    let changes = changes.as_object().expect("a map").clone();
    whole.as_object_mut().expect("a map").extend(changes);
    serde_json::from_value(whole).expect("a sound specification")
}

fn loaded(spec: &PrepareSpec) -> (Vec<String>, Vec<LoadProgress>, Report) {
    let notebook = Notebook::new(|_, _| Ok(()));
    let mut reports = Vec::new();
    let mut tell = |progress| reports.push(progress);
    let never = AtomicBool::new(false);
    let report = prepare_through(&|_, _| notebook.connect(), spec, &mut tell, &never).unwrap();
    (notebook.written(), reports, report)
}

fn failed(spec: &PrepareSpec, notebook: &Notebook, stop: &AtomicBool) -> Failure {
    prepare_through(&|_, _| notebook.connect(), spec, &mut |_| (), stop).unwrap_err()
}

fn server_error(code: u16, message: &str) -> Failure {
    Failure { code: Some(code), sqlstate: "HY000".to_owned(), ..Failure::new("load", message) }
}

/// Rows of all INSERT statements by table and id, as text.
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

mod failing;
mod loading;
mod tables;
