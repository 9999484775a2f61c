//! Events against those of the real sysbench, and packets against their own parser.
//!
//! `golden/*.sql` holds two events of one thread, prepared and sent by Debian's sysbench 1.0.20
//! (`--rand-seed=7 --tables=3 --table-size=100000 --point-selects=2 --delete-inserts=2
//! --range-size=50`, default `special`), printed by a script with replaced statement objects.

use dbdyno_core::driver::Driver;
use dbdyno_core::random::{Distribution, Random, Seeding};
use dbdyno_core::workload::event::{Event, Reply, StatementKind};
use dbdyno_core::workload::{Client, ConnectionRange, Workload, WorkloadSpec, build, names};
use dbdyno_wire::mysql::command::Command;
use dbdyno_wire::mysql::packet::{HEADER_LENGTH, Header};
use dbdyno_wire::mysql::parameter;
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
use serde_json::{Value, json};

pub fn spec(name: &str, options: Value, prepared: bool) -> WorkloadSpec {
    WorkloadSpec {
        driver: Driver::Mysql,
        name: name.to_owned(),
        options: options.as_object().expect("a map").clone(),
        distribution: Distribution::default(),
        prepared,
        connections: 1,
        own: ConnectionRange::ALL,
    }
}

pub fn made(name: &str, options: Value, prepared: bool) -> Box<dyn Workload> {
    build(&spec(name, options, prepared)).expect("a sound specification")
}

fn mistakes(spec: &WorkloadSpec) -> Vec<String> {
    build(spec).err().expect("a refused specification")
}

fn oracle_options() -> Value {
    json!({"tables": 3, "table_size": 100_000, "point_selects": 2, "delete_inserts": 2, "range_size": 50})
}

fn golden(name: &str) -> (Vec<String>, Vec<String>) {
    let path = format!("{}/tests/golden/{name}.sql", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a golden file");
    // Written out: a line break within a statement, a blank at its end.
    let lines = text.lines().map(|line| line.replace("\\n", "\n").replace("\\s", " "));
    let (prepared, sent): (Vec<String>, _) = lines.partition(|it| it.starts_with("prepare: "));
    (prepared.iter().map(|it| it["prepare: ".len()..].to_owned()).collect(), sent)
}

/// All but `bulk_insert`, whose statements have half a megabyte.
fn names_with_golden_files() -> Vec<&'static str> {
    names().into_iter().filter(|name| *name != "bulk_insert").collect()
}

/// SQL of each packet of `event`, with an execution's parameters as literals.
fn texts(workload: &dyn Workload, event: &Event) -> Vec<String> {
    (0..event.steps.len()).map(|index| text(workload, event.packet(index))).collect()
}

fn text(workload: &dyn Workload, packet: &[u8]) -> String {
    let (header, payload) = packet.split_first_chunk::<HEADER_LENGTH>().expect("a header");
    assert_eq!(Header::parse(*header), Header { length: payload.len(), sequence: 0 });
    match Command::parse(payload).expect("a command") {
        Command::Query(sql) => String::from_utf8(sql.to_vec()).expect("SQL is ASCII here"),
        Command::Execute(id, rest) => {
            let statement = &workload.statements()[(id - FIRST_ID) as usize];
            let count = statement.sql.matches('?').count();
            let values = parameter::parse(rest, count, &mut Vec::new()).expect("all parameters");
            values.iter().fold(statement.sql.clone(), |sql, it| sql.replacen('?', &literal(it), 1))
        }
        other => panic!("no workload sends {other:?}"),
    }
}

fn literal(value: &parameter::Value) -> String {
    match value {
        parameter::Value::Integer(number) => number.to_string(),
        parameter::Value::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        other => panic!("no workload binds {other:?}"),
    }
}

/// Draws of the first thread of sysbench with `--rand-seed=7`.
pub fn first_thread() -> Random {
    Seeding::Sysbench.streams(7).next().expect("streams do not end")
}

/// First id a server might give to a workload's statements.
const FIRST_ID: u32 = 40;

fn client(workload: &dyn Workload, random: Random) -> Client {
    Client::new(0, (FIRST_ID..).take(workload.statements().len()).collect(), random)
}

#[test]
fn two_events_are_those_of_sysbench() {
    for name in names_with_golden_files() {
        let workload = made(name, oracle_options(), false);
        let mut client = Client::new(0, vec![], first_thread());
        let mut event = Event::default();
        let mut sent = Vec::new();
        for _ in 0..2 {
            workload.fill(&mut client, &mut event);
            assert!(event.steps.iter().all(|step| step.reply == Reply::Text));
            sent.extend(texts(&*workload, &event));
        }
        assert_eq!(sent, golden(name).1, "{name}");
        assert_eq!(workload.statements(), [], "{name}: nothing is prepared");
    }
}

#[test]
fn statements_are_prepared_in_the_order_of_sysbench() {
    for name in names_with_golden_files() {
        let workload = made(name, oracle_options(), true);
        let ours: Vec<&str> = workload.statements().iter().map(|it| it.sql.as_str()).collect();
        assert_eq!(ours, golden(name).0, "{name}");
    }
}

fn on_postgres(name: &str, options: Value, prepared: bool) -> Box<dyn Workload> {
    let spec = WorkloadSpec { driver: Driver::Pgsql, ..spec(name, options, prepared) };
    build(&spec).expect("a sound specification")
}

/// Event of a fresh client.
fn drawn(workload: &dyn Workload) -> Event {
    let ids = (1..).take(workload.statements().len()).collect();
    let mut client = Client::new(0, ids, first_thread());
    let mut event = Event::default();
    workload.fill(&mut client, &mut event);
    event
}

/// SQL without type and length, or header and command, and without the final zero.
fn sql_of(packet: &[u8]) -> &str {
    let packet = if packet[0] == b'Q' { &packet[..packet.len() - 1] } else { packet };
    std::str::from_utf8(&packet[5..]).expect("SQL")
}

#[test]
fn on_postgresql_the_same_is_said_as_text() {
    for name in names_with_golden_files() {
        let (theirs, ours) =
            (made(name, oracle_options(), false), on_postgres(name, oracle_options(), false));
        let (mysql, postgres) = (drawn(&*theirs), drawn(&*ours));
        assert_eq!(mysql.steps.len(), postgres.steps.len(), "{name}");
        for step in 0..mysql.steps.len() {
            let packet = postgres.packet(step);
            let length = u32::from_be_bytes(packet[1..5].try_into().expect("a length"));
            assert_eq!((packet[0], length as usize), (b'Q', packet.len() - 1), "{name}");
            let (said, expected) = (sql_of(packet), sql_of(mysql.packet(step)));
            if name == "oltp_insert" {
                // 0 means the next number to MySQL, and 0 to PostgreSQL.
                let (_, values) = expected.split_once("VALUES (0, ").expect("an id");
                let (head, own) = said.split_once("VALUES (").expect("values");
                assert_eq!(own, values);
                assert!(head.ends_with("(k, c, pad) "), "{head}");
            } else {
                assert_eq!(said, expected, "{name}");
            }
        }
    }
}

#[test]
fn on_postgresql_all_of_a_transaction_is_prepared() {
    let workload = on_postgres("oltp_read_write", json!({"tables": 2}), true);
    let statements = workload.statements();
    assert_eq!((statements[0].sql.as_str(), statements[1].sql.as_str()), ("BEGIN", "COMMIT"));
    assert_eq!(statements.len(), 2 + 2 * 9);
    let range = "SELECT c FROM sbtest2 WHERE id BETWEEN $1 AND $2 ORDER BY c";
    let types = |sql: &str| {
        let statement = statements.iter().find(|it| it.sql == sql);
        statement.expect("a statement of the workload").types.clone()
    };
    // int8 and varchar, as sysbench binds them; not the columns' own int4 and char.
    assert_eq!(types(range), [20, 20]);
    assert_eq!(types("UPDATE sbtest1 SET c=$1 WHERE id=$2"), [1043, 20]);
    let insert = "INSERT INTO sbtest2 (id, k, c, pad) VALUES ($1, $2, $3, $4)";
    assert_eq!(types(insert), [20, 20, 1043, 1043]);
    assert!(types("BEGIN").is_empty());
    let points = on_postgres("select_random_points", json!({"random_points": 3}), true);
    assert_eq!(points.statements()[0].types, [20, 20, 20]);
    let event = drawn(&*workload);
    assert_eq!(event.steps.len(), 20);
    for (step, about) in event.steps.iter().enumerate() {
        let packet = event.packet(step);
        assert!(packet.starts_with(b"B") && packet.ends_with(b"S\0\0\0\x04"));
        assert_eq!(about.reply, Reply::Binary);
    }
    // The unnamed portal of statement 1 without parameters, all columns binary; then Execute and Sync.
    assert_eq!(
        event.packet(0),
        b"B\0\0\0\x10\0s1\0\0\0\0\0\0\x01\0\x01E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
    );
    let older = WorkloadSpec { driver: Driver::Pgsql, ..spec("legacy_oltp", json!({}), true) };
    assert_eq!(mistakes(&older), ["legacy_oltp: workloads of before 1.0 run on MySQL only"]);
}

#[test]
fn events_have_as_many_statements_as_those_of_sysbench() {
    for (name, queries) in [
        ("oltp_point_select", 1),
        ("oltp_read_only", 16),
        ("oltp_read_write", 20),
        ("oltp_write_only", 6),
        ("oltp_update_index", 1),
        ("oltp_update_non_index", 1),
        ("oltp_delete", 1),
        ("oltp_insert", 1),
        ("select_random_points", 1),
        ("select_random_ranges", 1),
    ] {
        for prepared in [true, false] {
            let workload = made(name, json!({}), prepared);
            let mut event = Event::default();
            workload.fill(&mut client(&*workload, Random::for_stream(1, 1)), &mut event);
            assert_eq!(event.steps.len(), queries, "{name}");
        }
    }
    assert_eq!(names().len(), 11, "and bulk_insert");
}

/// `(--threads=3, thread 2, --rand-type=uniform, two events)`, with parts of fractional length.
#[test]
fn each_client_draws_from_its_own_part() {
    for (name, options) in [
        ("select_random_points", json!({"table_size": 100_000, "random_points": 3})),
        (
            "select_random_ranges",
            json!({"table_size": 100_000, "number_of_ranges": 2, "delta": 7, "tables": 3}),
        ),
    ] {
        let mut spec = spec(name, options, true);
        (spec.connections, spec.distribution) = (3, Distribution::Uniform {});
        let workload = build(&spec).expect("a sound specification");
        let mut client = client(&*workload, first_thread());
        client.number = 2;
        let mut event = Event::default();
        let mut sent = Vec::new();
        for _ in 0..2 {
            workload.fill(&mut client, &mut event);
            assert!(event.steps.iter().all(|step| step.reply == Reply::Binary));
            sent.extend(texts(&*workload, &event));
        }
        let (prepared, expected) = golden(&format!("{name}.client_2_of_3"));
        assert_eq!(sent, expected, "{name}");
        assert_eq!(workload.statements()[0].sql, prepared[0]);
    }
}

#[test]
fn bulk_insert_sends_what_fits_into_half_a_megabyte() {
    let workload = made("bulk_insert", json!({}), true);
    let mut client = client(&*workload, Random::for_stream(1, 1));
    client.number = 6;
    let mut event = Event::default();
    let mut sent = Vec::new();
    for _ in 0..100_000 {
        workload.fill(&mut client, &mut event);
        assert!(event.steps.len() <= 1);
        sent.extend(texts(&*workload, &event));
    }
    assert_eq!(sent.len(), 2, "sysbench sends after row 39033 and so on");
    workload.finish(&mut event);
    sent.extend(texts(&*workload, &event));
    workload.finish(&mut event);
    assert_eq!(event.steps, [], "nothing is left");
    let row = |id: usize| format!("({id},{id})");
    let mut id = 0;
    for sql in &sent {
        let rows = sql.strip_prefix("INSERT INTO sbtest7 VALUES").expect("its own table");
        for found in rows.split_inclusive("),").map(|it| it.trim_end_matches(',')) {
            id += 1;
            assert_eq!(found, row(id));
        }
        // sysbench counts a comma and a byte for the end with each row.
        assert!(sql.len() < 524_288 && (id == 100_000 || sql.len() + row(id).len() + 2 > 524_288));
    }
    assert_eq!(id, 100_000);
}

#[test]
fn options_leave_statements_out() {
    let count = |options| drawn(&*made("oltp_read_write", options, true)).steps.len();
    assert_eq!(count(json!({"skip_trx": true})), 18);
    assert_eq!(count(json!({"range_selects": false})), 16);
    assert_eq!(count(json!({"point_selects": 1, "order_ranges": 0, "delete_inserts": 3})), 14);
    let workload = made(
        "oltp_read_write",
        json!({"skip_trx": true, "range_selects": "off", "tables": 2}),
        true,
    );
    let kinds: Vec<StatementKind> = workload.statements().iter().map(|it| it.kind).collect();
    assert_eq!(kinds.len(), 10, "five kinds on two tables, no COMMIT");
    assert_eq!(kinds[..2], [StatementKind::PointSelects; 2]);
}

fn any_options() -> impl Strategy<Value = Value> {
    let count = || 0..4_u32;
    let counts = (count(), count(), count(), count(), count(), count(), count(), count());
    let sizes = (1..6_u32, 1..=2_147_483_647_u32, 1..=1000_u32);
    (counts, sizes, any::<[bool; 3]>()).prop_map(
        |((p, s, m, o, d, i, n, di), (tables, rows, range), [skip_trx, ranges, auto_inc])| {
            json!({"point_selects": p, "simple_ranges": s, "sum_ranges": m, "order_ranges": o,
                "distinct_ranges": d, "index_updates": i, "non_index_updates": n,
                "delete_inserts": di, "tables": tables, "table_size": rows, "range_size": range,
                "skip_trx": skip_trx, "range_selects": ranges, "auto_inc": auto_inc})
        },
    )
}

proptest! {
    /// Packets parse back, with as many parameters as placeholders, to the SQL of the text protocol.
    #[test]
    fn both_protocols_say_the_same(options in any_options(), seed: u64, name in 0..10_usize) {
        let name = names_with_golden_files()[name];
        let Ok(text) = build(&spec(name, options.clone(), false)) else {
            // Options without any work.
            return Ok(());
        };
        let prepared = made(name, options, true);
        let [sent, executed] = [&*text, &*prepared].map(|workload| {
            let mut event = Event::default();
            let mut client = client(workload, Random::for_stream(seed, 0));
            workload.fill(&mut client, &mut event);
            let kinds: Vec<StatementKind> = event.steps.iter().map(|step| step.kind).collect();
            (texts(workload, &event), kinds, client.random)
        });
        prop_assert_eq!(sent, executed);
    }
}

#[test]
fn begin_is_text_and_commit_is_prepared() {
    let workload = made("oltp_write_only", json!({}), true);
    let mut event = Event::default();
    let ids = vec![11, 12, 13, 14, 15];
    workload.fill(&mut Client::new(0, ids, Random::for_stream(1, 1)), &mut event);
    let last = event.steps.len() - 1;
    assert_eq!(event.packet(0), b"\x06\0\0\0\x03BEGIN");
    assert_eq!(event.steps[0].reply, Reply::Text);
    assert_eq!(event.packet(last), b"\x0a\0\0\0\x17\x0b\0\0\0\0\x01\0\0\0");
    assert_eq!(event.steps[last].reply, Reply::Binary);
}

#[test]
fn an_event_grows_no_memory_after_the_first() {
    for (name, options) in [
        ("oltp_read_write", json!({"table_size": 10})),
        ("select_random_ranges", json!({"table_size": 10})),
        ("legacy_oltp", json!({"tables": 3})),
        ("legacy_oltp", json!({"one_table": true})),
        ("legacy_select_random_points", json!({})),
    ] {
        let workload = made(name, options, false);
        let mut client = client(&*workload, Random::for_stream(1, 1));
        let mut event = Event::default();
        event.bytes.reserve(8192);
        workload.fill(&mut client, &mut event);
        let (bytes, steps) = (event.bytes.as_ptr(), event.steps.as_ptr());
        for _ in 0..100 {
            workload.fill(&mut client, &mut event);
        }
        assert_eq!((bytes, steps), (event.bytes.as_ptr(), event.steps.as_ptr()), "{name}");
    }
}

#[test]
fn inserts_without_auto_inc_have_ids_of_their_own() {
    let workload = made("oltp_insert", json!({"auto_inc": false}), true);
    let mut event = Event::default();
    let mut ids = Vec::new();
    for stream in 0..2 {
        workload.fill(&mut client(&*workload, Random::for_stream(1, stream)), &mut event);
        let text = texts(&*workload, &event).remove(0);
        let id = text.split_once("VALUES (").expect("a row").1.split(',').next().expect("an id");
        ids.push(id.parse::<i64>().expect("a number") + 2_147_483_648);
    }
    assert_eq!(ids, [2_672_933_100, 2_916_245_674], "the first two values of rand.unique()");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let mut wrong = spec("oltp_readwrite", json!({"table": 3, "tables": -1}), true);
    wrong.distribution = Distribution::Pareto { h: 2.0 };
    let found = mistakes(&wrong);
    assert!(found[0].starts_with("workload oltp_readwrite is not known, perhaps oltp_read_write?"));
    assert_eq!(
        found[1..],
        [
            "option table is not known, perhaps tables?",
            "option tables must be a whole number from 1 to 100000, not -1",
            "distribution: h must lie between 0 and 1, not 2",
        ]
    );
}

#[test]
fn an_event_without_statements_is_refused() {
    let empty = spec("oltp_update_index", json!({"index_updates": 0}), true);
    assert_eq!(
        mistakes(&empty),
        ["oltp_update_index: these options leave an event without statements"]
    );
}
