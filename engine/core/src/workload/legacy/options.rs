//! The options of the legacy workloads: today's and four of their own.

use serde_json::{Map, Value};

use super::super::options::{Options, switch};

/// The options that shape an event of a legacy workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LegacyOptions {
    /// Options with today's names.
    pub common: Options,
    /// True to leave out all statements that write (`--oltp-read-only`).
    pub read_only: bool,
    /// True to leave out all statements that read (`--oltp-write-only`).
    pub write_only: bool,
    /// `LOCK TABLES` in place of `BEGIN`, as for MyISAM.
    pub table_locks: bool,
    /// sysbench 0.4: only the table `sbtest`, and the statements of this version.
    pub one_table: bool,
}

impl LegacyOptions {
    /// Reads the options of a spec; returns them with all mistakes.
    pub(super) fn read(given: &Map<String, Value>) -> (Self, Vec<String>) {
        let mut options = Self::default();
        let mut mistakes = Vec::new();
        let mut rest = Map::new();
        for (name, value) in given {
            match options.slot(name) {
                None => drop(rest.insert(name.clone(), value.clone())),
                Some(slot) => match switch(value) {
                    Ok(is_on) => *slot = is_on,
                    Err(why) => mistakes.push(format!("option {name} {why}")),
                },
            }
        }
        let (common, more) = Options::read(&rest);
        mistakes.extend(more);
        if options.read_only && options.write_only {
            mistakes.push("options read_only and write_only exclude each other".to_owned());
        }
        (Self { common, ..options }, mistakes)
    }

    fn slot(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "read_only" => Some(&mut self.read_only),
            "write_only" => Some(&mut self.write_only),
            "table_locks" => Some(&mut self.table_locks),
            "one_table" => Some(&mut self.one_table),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LegacyOptions;
    use serde_json::json;

    #[test]
    fn own_options_and_those_of_today_are_read_together() {
        let given = json!({"read_only": "on", "table_size": 7, "one_table": true});
        let (options, mistakes) = LegacyOptions::read(given.as_object().expect("a map"));
        assert_eq!(mistakes, Vec::<String>::new());
        assert!(options.read_only && options.one_table && !options.write_only);
        assert_eq!(options.common.table_size, 7);
    }

    #[test]
    fn all_mistakes_at_once() {
        let given = json!({"read_only": true, "write_only": true, "one_table": 3, "tabels": 1, "tables": 0});
        let (_, mistakes) = LegacyOptions::read(given.as_object().expect("a map"));
        assert_eq!(
            mistakes,
            [
                "option one_table must be true or false, not 3",
                "option tabels is not known, perhaps tables?",
                "option tables must be a whole number from 1 to 100000, not 0",
                "options read_only and write_only exclude each other",
            ]
        );
    }
}
