//! Schemas, prewarm and cleanup.

use super::*;

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
fn on_postgresql_the_server_numbers_on_behind_the_rows() {
    let (statements, ..) = loaded(&spec(json!({"tables": 1, "table_size": 3, "driver": "pgsql"})));
    let id = "  id SERIAL,\n  k INTEGER DEFAULT '0' NOT NULL,\n";
    assert!(statements[0].contains(id) && statements[0].ends_with("  PRIMARY KEY (id)\n)"));
    assert_eq!(statements[1], "SELECT setval(pg_get_serial_sequence('sbtest1', 'id'), 3)");
    assert_eq!(statements.last().unwrap(), "CREATE INDEX k_1 ON sbtest1(k)");
    let own = json!({"tables": 1, "table_size": 3, "driver": "pgsql", "auto_inc": false,
        "table_options": "WITH (fillfactor=70)"});
    let (statements, ..) = loaded(&spec(own));
    assert!(statements[0].contains("  id INTEGER NOT NULL,\n"));
    assert!(statements[0].ends_with("  PRIMARY KEY (id)\n) WITH (fillfactor=70)"));
    assert!(statements[1].starts_with("INSERT INTO sbtest1"));
    let wrong = json!({"driver": "pgsql", "secondary": true, "layout": "legacy"});
    assert_eq!(spec(wrong).mistakes().len(), 2);
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
    let single = json!({"tables": 1, "table_size": 2, "layout": "legacy_one"});
    assert_eq!(
        loaded(&spec(single)).0,
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
    let (statements, progress, _) = loaded(&spec(bulk));
    let names: Vec<&str> = statements.iter().filter_map(|it| it.split(' ').nth(13)).collect();
    assert_eq!(names, ["sbtest0", "sbtest1"]);
    assert_eq!(progress.iter().map(|it| it.table).collect::<Vec<_>>(), [0, 1]);
    let filled = json!({"first_table": 0});
    assert_eq!(spec(filled).mistakes(), ["first_table must be 1 for tables that are given rows"]);
}

#[test]
fn prewarm_reads_each_table_once() {
    let notebook = Notebook::new(|_, _| Ok(()));
    let (mut progress, never) = (Vec::new(), AtomicBool::new(false));
    let mut tell = |it: PrewarmProgress| progress.push(serde_json::to_string(&it).unwrap());
    let single = spec(json!({"table_size": 50}));
    prewarm_through(&|_, _| notebook.connect(), &single, &mut tell, &never).unwrap();
    assert_eq!(progress, [r#"{"table":1,"stage":"prewarm"}"#, r#"{"table":2,"stage":"prewarm"}"#]);
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
        prewarm_through(&|_, _| notebook.connect(), &spec(json!({})), &mut |_| (), &stop)
            .unwrap_err()
    };
    let failure = prewarm(&notebook, false);
    assert_eq!((failure.stage, failure.code), ("prewarm", Some(1146)));
    assert_eq!(notebook.written().len(), 2);
    let stopped = prewarm(&Notebook::new(|_, _| Ok(())), true);
    assert_eq!((stopped.stage, stopped.message.as_str()), ("prewarm", "stopped"));
}

#[test]
fn cleanup_drops_every_table() {
    let spec: CleanupSpec = serde_json::from_value(json!({
        "endpoint": {"socket": "/run/x.sock"}, "user": "u", "password": "", "database": "d", "tables": 3
    }))
    .unwrap();
    let notebook = Notebook::new(|_, _| Ok(()));
    let report = cleanup_through(&|_, _| notebook.connect(), &spec, &NEVER).unwrap();
    let drops = [1, 2, 3].map(|n| format!("DROP TABLE IF EXISTS sbtest{n}"));
    assert_eq!(notebook.written(), drops);
    assert_eq!((report.tables, report.rows), (3, 0));
    let older = CleanupSpec { first_table: 0, tables: 1, ..spec.clone() };
    cleanup_through(&|_, _| notebook.connect(), &older, &NEVER).unwrap();
    let oldest = CleanupSpec { layout: Layout::LegacyOne, tables: 1, ..spec.clone() };
    cleanup_through(&|_, _| notebook.connect(), &oldest, &NEVER).unwrap();
    let further = ["DROP TABLE IF EXISTS sbtest0", "DROP TABLE IF EXISTS sbtest"];
    assert_eq!(notebook.written()[3..], further);
    let denied = Notebook::new(|_, _| Err(server_error(1142, "DROP command denied")));
    let failure = cleanup_through(&|_, _| denied.connect(), &spec, &NEVER).unwrap_err();
    assert_eq!((failure.stage, failure.code), ("drop", Some(1142)));
}
