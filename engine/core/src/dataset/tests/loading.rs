//! Rows and their order.

use super::*;

#[test]
fn ids_run_from_one_without_gap() {
    let (statements, _, report) = loaded(&spec(json!({"threads": 3})));
    let ids: Vec<(String, u32)> = rows(&statements).into_keys().collect();
    let expected = ["sbtest1", "sbtest2"];
    let expected = expected.iter().flat_map(|t| (1..=26_000).map(|id| ((*t).to_owned(), id)));
    assert!(ids.into_iter().eq(expected));
    assert_eq!((report.tables, report.rows), (2, 52_000));
}

#[test]
fn the_statements_do_not_depend_on_the_number_of_sessions() {
    let sorted = |threads: u32| {
        let (mut statements, ..) = loaded(&spec(json!({"threads": threads})));
        statements.sort();
        statements
    };
    let single = sorted(1);
    assert_eq!(single, sorted(4));
    assert!(single.iter().all(|it| it.len() <= 524_288));
}

#[test]
fn rows_are_the_same_by_file_and_by_insert() {
    let inserted = rows(&loaded(&spec(json!({"load": "insert", "tables": 1}))).0);
    let refused = |_: usize, sql: &str| {
        if sql.starts_with("LOAD") { Err(server_error(3948, "disabled")) } else { Ok(()) }
    };
    for (changes, says, rule, loads) in [
        (json!({}), true, Notebook::new(|_, _| Ok(())), 2),
        (json!({"threads": 3}), true, Notebook::new(|_, _| Ok(())), 2),
        (json!({"load": "infile"}), false, Notebook::new(|_, _| Ok(())), 2),
        (json!({}), false, Notebook::new(|_, _| Ok(())), 0),
        (json!({"load": "insert"}), true, Notebook::new(|_, _| Ok(())), 0),
        (json!({"threads": 2}), true, Notebook::new(refused), 0),
    ] {
        let (mut counts, never) = (Vec::new(), AtomicBool::new(false));
        let mut tell = |progress: LoadProgress| counts.push(progress.rows_done);
        let mut spec = spec(changes);
        spec.tables = 1;
        prepare_through(&|_, _| rule.connect_files(says), &spec, &mut tell, &never).unwrap();
        let written = rule.written();
        assert_eq!(written.iter().filter(|it| it.starts_with("LOAD DATA")).count(), loads);
        assert_eq!(rows(&written), inserted);
        assert_eq!(counts.last(), Some(&26_000));
    }
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
fn stages_follow_each_other_and_progress_counts_up() {
    let (statements, progress, _) = loaded(&spec(json!({"threads": 4})));
    let stage_of = |it: &String| match it.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["CREATE", "TABLE"] => Stage::Create,
        ["INSERT", "INTO"] => Stage::Insert,
        _ => Stage::Index,
    };
    let stages: Vec<usize> = statements.iter().map(|it| stage_of(it) as usize).collect();
    assert!(stages.is_sorted(), "no stage begins before the one before has ended");
    assert_eq!(progress.len(), statements.len());
    assert!(progress.is_sorted_by_key(|it| it.rows_done));
    let last = progress.last().expect("progress was told");
    assert_eq!((last.rows_done, last.rows_total, last.stage), (52_000, 52_000, Stage::Index));
    let text = serde_json::to_string(&LoadProgress { table: 2, ..*last }).unwrap();
    assert_eq!(text, r#"{"table":2,"rows_done":52000,"rows_total":52000,"stage":"index"}"#);
}

#[test]
fn one_session_ends_a_table_before_it_begins_the_next() {
    let (_, progress, _) = loaded(&spec(json!({"table_size": 10})));
    let done: Vec<(u32, Stage)> = progress.iter().map(|it| (it.table, it.stage)).collect();
    let whole = |table| Stage::ALL.map(|stage| (table, stage));
    assert_eq!(done, [whole(1), whole(2)].concat());
}
