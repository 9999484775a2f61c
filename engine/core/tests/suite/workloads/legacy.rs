//! Workloads of before 1.0 against the statements of their scripts.
//!
//! `golden/legacy_*.sql` holds two events of one thread, sent by Debian's sysbench 1.0.20 for
//! scripts with the draws and statements of the legacy ones, and `db_query` replaced by a print
//! (`--rand-seed=7 --oltp-tables-count=3 --oltp-table-size=100000 --oltp-point-selects=2
//! --oltp-delete-inserts=2 --oltp-range-size=50`). A suffix of the file's name after a dot is a
//! further option.

use super::workload::{first_thread, made, spec};
use dbdyno_core::random::Random;
use dbdyno_core::workload::event::{Event, Reply};
use dbdyno_core::workload::{Client, Workload, build, legacy_names, names};
use dbdyno_wire::mysql::packet::HEADER_LENGTH;
use serde_json::{Value, json};

/// The SQL of all packets of `count` events, which must travel as text.
fn sent(workload: &dyn Workload, count: usize) -> Vec<String> {
    let mut client = Client::new(0, vec![], first_thread());
    let mut event = Event::default();
    let mut all = Vec::new();
    for _ in 0..count {
        workload.fill(&mut client, &mut event);
        assert!(event.steps.iter().all(|step| step.reply == Reply::Text));
        for index in 0..event.steps.len() {
            let sql = &event.packet(index)[HEADER_LENGTH + 1..];
            all.push(String::from_utf8(sql.to_vec()).expect("SQL is ASCII here"));
        }
    }
    all
}

fn golden(name: &str) -> Vec<String> {
    let path = format!("{}/tests/golden/{name}.sql", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a golden file");
    text.lines().map(str::to_owned).collect()
}

fn oracle_options() -> Value {
    json!({"tables": 3, "table_size": 100_000, "point_selects": 2, "delete_inserts": 2,
        "range_size": 50})
}

#[test]
fn two_events_are_those_of_the_scripts() {
    for name in legacy_names() {
        if ["bulk", "random"].iter().any(|part| name.contains(part)) {
            continue; // proved below
        }
        // 0.5 prepares nothing, for either setting.
        for prepared in [true, false] {
            let workload = made(name, oracle_options(), prepared);
            assert_eq!(workload.statements(), [], "{name}");
            assert_eq!(sent(&*workload, 2), golden(name), "{name}");
        }
    }
}

#[test]
fn options_leave_statements_out_as_in_the_script() {
    for (file, more) in [
        ("legacy_oltp.myisam_read_only", json!({"table_locks": true, "read_only": true})),
        ("legacy_oltp.write_only_skip_trx", json!({"write_only": true, "skip_trx": true})),
    ] {
        let mut options = oracle_options();
        options.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        assert_eq!(sent(&*made("legacy_oltp", options, false), 2), golden(file), "{file}");
    }
    let count = |options: Value| sent(&*made("legacy_oltp", options, false), 1).len();
    assert_eq!(count(json!({})), 20);
    assert_eq!(count(json!({"read_only": true})), 16);
    assert_eq!(count(json!({"write_only": true})), 6);
    assert_eq!(count(json!({"range_selects": false})), 16);
    assert_eq!(count(json!({"one_table": true})), 21);
}

/// Statements of sysbench 0.4: 14 reads, 5 writes, 2 others.
#[test]
fn one_table_speaks_as_0_4() {
    let options = json!({"one_table": true, "table_size": 1000, "point_selects": 1});
    let numbers = |sql: &String| sql.replace(|it: char| it.is_ascii_digit(), "").replace('-', "");
    let said: Vec<String> =
        sent(&*made("legacy_oltp", options, false), 1).iter().map(numbers).collect();
    assert_eq!(
        said,
        [
            "BEGIN",
            "SELECT c from sbtest where id=",
            "SELECT c from sbtest where id between  and ",
            "SELECT SUM(K) from sbtest where id between  and ",
            "SELECT c from sbtest where id between  and  order by c",
            "SELECT DISTINCT c from sbtest where id between  and  order by c",
            "UPDATE sbtest set k=k+ where id=",
            "UPDATE sbtest set c='' where id=",
            "UPDATE sbtest set k=k+ where id=",
            "DELETE from sbtest where id=",
            "INSERT INTO sbtest values(,,' ','aaaaaaaaaaffffffffffrrrrrrrrrreeeeeeeeeeyyyyyyyyyy')",
            "COMMIT",
        ]
    );
}

#[test]
fn one_table_is_prepared_but_for_begin() {
    let workload = made("legacy_oltp", json!({"one_table": true}), true);
    let prepared: Vec<&str> = workload.statements().iter().map(|it| it.sql.as_str()).collect();
    assert_eq!(prepared.len(), 10);
    assert_eq!((prepared[0], prepared[9]), ("SELECT c from sbtest where id=?", "COMMIT"));
    let ids = (70..80).collect();
    let mut event = Event::default();
    workload.fill(&mut Client::new(0, ids, Random::for_stream(1, 1)), &mut event);
    assert_eq!(event.packet(0)[HEADER_LENGTH..], *b"\x03BEGIN");
    assert!(event.steps[1..].iter().all(|step| step.reply == Reply::Binary));
    let last = event.packet(event.steps.len() - 1);
    assert_eq!(last[HEADER_LENGTH + 1], 79, "COMMIT by its id");
    let locked = made("legacy_oltp", json!({"one_table": true, "table_locks": true}), true);
    assert!(locked.statements().iter().all(|it| !it.sql.contains("TABLES")), "text only");
}

#[test]
fn ranges_of_0_4_stay_within_the_table() {
    let workload = made(
        "legacy_oltp",
        json!({"one_table": true, "table_size": 120, "range_size": 100}),
        false,
    );
    for sql in sent(&*workload, 50).iter().filter(|sql| sql.contains("between")) {
        let ends = sql.split("between ").nth(1).expect("a range").replace(" order by c", "");
        let (low, high) = ends.split_once(" and ").expect("two ends");
        let (low, high): (u32, u32) = (low.parse().expect("a number"), high.parse().expect("one"));
        assert!((1..=20).contains(&low), "{sql}");
        assert_eq!(high - low, if sql.contains("DISTINCT") { 100 } else { 99 }, "{sql}");
    }
}

#[test]
fn the_delete_of_0_4_visits_every_row_once() {
    let workload = made("legacy_delete", json!({"one_table": true, "table_size": 500}), false);
    let mut rows = sent(&*workload, 500);
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), 500);
}

#[test]
fn inserts_without_auto_inc_fill_the_range_of_an_unsigned_id() {
    let workload = made("legacy_insert", json!({"auto_inc": false}), false);
    let ids: Vec<String> = sent(&*workload, 2)
        .iter()
        .map(|sql| {
            let values = sql.split_once("VALUES (").expect("a row").1;
            values.split(',').next().expect("an id").to_owned()
        })
        .collect();
    assert_eq!(ids, ["2672933100", "2916245674"], "the first two values of sb_rand_uniq()");
}

#[test]
fn tables_of_bulk_insert_count_from_zero() {
    let workload = made("legacy_bulk_insert", json!({}), true);
    let mut client = Client::new(2, vec![], Random::for_stream(1, 1));
    let mut event = Event::default();
    workload.fill(&mut client, &mut event);
    workload.finish(&mut event);
    assert_eq!(event.packet(0)[HEADER_LENGTH + 1..], *b"INSERT INTO sbtest2 VALUES(1,1)");
}

#[test]
fn random_points_and_ranges_have_the_text_of_the_script() {
    let text = |name, options: Value| made(name, options, true).statements()[0].sql.clone();
    assert_eq!(
        text("legacy_select_random_points", json!({"random_points": 3})),
        "        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN (?, ?, ?)\n        "
    );
    assert_eq!(
        text("legacy_select_random_ranges", json!({"number_of_ranges": 2})),
        "        SELECT count(k)\n          FROM sbtest1\n          \
         WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?         "
    );
    for prepared in [true, false] {
        let workload = made("legacy_select_random_ranges", json!({}), prepared);
        assert_eq!(workload.statements().len(), usize::from(prepared));
    }
}

#[test]
fn legacy_names_are_no_names_of_today() {
    assert_eq!(legacy_names().len(), 10);
    assert!(legacy_names().iter().all(|name| !names().contains(name)));
    let empty = spec(
        "legacy_oltp",
        json!({"skip_trx": true, "read_only": true,
        "point_selects": 0, "range_selects": false}),
        false,
    );
    assert_eq!(
        build(&empty).err().expect("a refused specification"),
        ["legacy_oltp: these options leave an event without statements"]
    );
    let both = spec("legacy_oltp", json!({"read_only": true, "write_only": true}), false);
    assert_eq!(
        build(&both).err().expect("a refused specification"),
        ["options read_only and write_only exclude each other"]
    );
}
