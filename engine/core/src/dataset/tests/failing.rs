//! Failures and stops.

use super::*;

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
        assert!(done.ends_with(" of 52000 rows were loaded") && !done.starts_with("0 "), "{done}");
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
fn a_statement_that_takes_long_is_ended_at_the_server_after_a_stop() {
    let (stop, killed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (switch, seen) = (Arc::clone(&stop), Arc::clone(&killed));
    let notebook = Notebook::new(move |_, sql| {
        if sql == "KILL QUERY 7" {
            seen.store(true, Ordering::SeqCst);
        }
        if !sql.starts_with("CREATE INDEX") {
            return Ok(());
        }
        switch.store(true, Ordering::SeqCst);
        while !seen.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Err(server_error(1317, "Query execution was interrupted"))
    });
    let failure = failed(&spec(json!({"table_size": 10})), &notebook, &stop);
    assert!(killed.load(Ordering::SeqCst));
    assert_eq!((failure.stage, failure.code), ("index", None));
    assert_eq!(failure.message, "stopped");
}

#[test]
fn a_refused_login_ends_the_load() {
    let refuse = |_, _: &Timeouts| Err(Failure::new("connect", "Access denied"));
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
fn a_file_that_is_refused_is_an_error_where_it_was_asked_for() {
    let refused = |_: usize, sql: &str| {
        if sql.starts_with("LOAD") { Err(server_error(1148, "not allowed")) } else { Ok(()) }
    };
    let notebook = Notebook::new(refused);
    let (spec, never) = (spec(json!({"load": "infile"})), AtomicBool::new(false));
    let failure = prepare_through(&|_, _| notebook.connect_files(true), &spec, &mut |_| (), &never)
        .unwrap_err();
    assert_eq!((failure.stage, failure.code), ("insert", Some(1148)));
    assert_eq!(failure.statement, "LOAD DATA INTO sbtest1, rows 1 to 25000");
    assert!(failure.message.ends_with("; 0 of 52000 rows were loaded"), "{}", failure.message);
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
        prepare_through(&|_, _| notebook.connect_files(true), &spec(json!({})), &mut |_| (), &stop)
            .unwrap_err();
    assert_eq!((failure.stage, failure.code), ("insert", None));
    assert_eq!(failure.message, "stopped; 0 of 52000 rows were loaded");
}
