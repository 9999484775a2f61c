//! sysbench's options of the OLTP scripts, with its defaults.
//!
//! A plan has one set of options for loading the tables and for running on them, so options of the
//! tables alone are read here too, and their type is checked.

use serde_json::{Map, Value};

use super::spelling::nearest;

/// The most tables: beyond it the statement texts alone would fill the memory.
const TABLES_MAX: u32 = 100_000;
/// The most rows of a table and the widest range: ids are signed 32-bit integers.
const ROWS_MAX: u32 = i32::MAX as u32;
/// The most statements of one kind in an event, so that an event's packets stay far below 4 GiB.
const STATEMENTS_MAX: u32 = 100_000;

/// The most parameters of a statement: MySQL counts them in 16 bits.
const PARAMETERS_MAX: u32 = 65_535;

/// The options that shape an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub tables: u32,
    pub table_size: u32,
    pub range_size: u32,
    pub point_selects: u32,
    pub simple_ranges: u32,
    pub sum_ranges: u32,
    pub order_ranges: u32,
    pub distinct_ranges: u32,
    pub index_updates: u32,
    pub non_index_updates: u32,
    pub delete_inserts: u32,
    pub range_selects: bool,
    pub skip_trx: bool,
    pub auto_inc: bool,
    pub random_points: u32,
    pub number_of_ranges: u32,
    pub delta: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tables: 1,
            table_size: 10_000,
            range_size: 100,
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            range_selects: true,
            skip_trx: false,
            auto_inc: true,
            random_points: 10,
            number_of_ranges: 10,
            delta: 5,
        }
    }
}

/// Target of an option's value, with its allowed values.
enum Slot<'a> {
    Number(&'a mut u32, u32, u32),
    Switch(&'a mut bool),
    /// A switch that concerns only the tables.
    TableSwitch,
    /// A word that concerns only the tables.
    TableWord,
}

const KNOWN: [&str; 20] = [
    "tables",
    "table_size",
    "range_size",
    "point_selects",
    "simple_ranges",
    "sum_ranges",
    "order_ranges",
    "distinct_ranges",
    "index_updates",
    "non_index_updates",
    "delete_inserts",
    "range_selects",
    "skip_trx",
    "auto_inc",
    "random_points",
    "number_of_ranges",
    "delta",
    "secondary",
    "create_secondary",
    "mysql_storage_engine",
];

impl Options {
    /// Reads the options of a plan; returns them with all mistakes.
    pub(super) fn read(given: &Map<String, Value>) -> (Self, Vec<String>) {
        let mut options = Self::default();
        let mut mistakes = Vec::new();
        for (name, value) in given {
            let result = match options.slot(name) {
                Some(slot) => slot.put(value),
                None => Err(match nearest(name, &KNOWN) {
                    Some(near) => format!("is not known, perhaps {near}?"),
                    None => "is not known".to_owned(),
                }),
            };
            if let Err(why) = result {
                mistakes.push(format!("option {name} {why}"));
            }
        }
        (options, mistakes)
    }

    fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        let count = |slot| Some(Slot::Number(slot, 0, STATEMENTS_MAX));
        match name {
            "tables" => Some(Slot::Number(&mut self.tables, 1, TABLES_MAX)),
            "table_size" => Some(Slot::Number(&mut self.table_size, 1, ROWS_MAX)),
            "range_size" => Some(Slot::Number(&mut self.range_size, 1, ROWS_MAX)),
            "point_selects" => count(&mut self.point_selects),
            "simple_ranges" => count(&mut self.simple_ranges),
            "sum_ranges" => count(&mut self.sum_ranges),
            "order_ranges" => count(&mut self.order_ranges),
            "distinct_ranges" => count(&mut self.distinct_ranges),
            "index_updates" => count(&mut self.index_updates),
            "non_index_updates" => count(&mut self.non_index_updates),
            "delete_inserts" => count(&mut self.delete_inserts),
            "range_selects" => Some(Slot::Switch(&mut self.range_selects)),
            "skip_trx" => Some(Slot::Switch(&mut self.skip_trx)),
            "auto_inc" => Some(Slot::Switch(&mut self.auto_inc)),
            "random_points" => Some(Slot::Number(&mut self.random_points, 1, PARAMETERS_MAX)),
            "number_of_ranges" => {
                Some(Slot::Number(&mut self.number_of_ranges, 1, PARAMETERS_MAX / 2))
            }
            "delta" => Some(Slot::Number(&mut self.delta, 0, ROWS_MAX)),
            "secondary" | "create_secondary" => Some(Slot::TableSwitch),
            "mysql_storage_engine" => Some(Slot::TableWord),
            _ => None,
        }
    }
}

impl Slot<'_> {
    fn put(self, value: &Value) -> Result<(), String> {
        match self {
            Self::Number(slot, low, high) => {
                let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                match number.filter(|number| (low..=high).contains(number)) {
                    Some(number) => *slot = number,
                    None => {
                        return Err(format!(
                            "must be a whole number from {low} to {high}, not {value}"
                        ));
                    }
                }
            }
            Self::Switch(slot) => *slot = switch(value)?,
            Self::TableSwitch => drop(switch(value)?),
            Self::TableWord if value.is_string() => {}
            Self::TableWord => return Err(format!("must be a word, not {value}")),
        }
        Ok(())
    }
}

/// `true`/`false`, or sysbench's `on`/`off`, which YAML 1.2 reads as words.
pub(super) fn switch(value: &Value) -> Result<bool, String> {
    match (value.as_bool(), value.as_str()) {
        (Some(on), _) => Ok(on),
        (_, Some("on")) => Ok(true),
        (_, Some("off")) => Ok(false),
        _ => Err(format!("must be true or false, not {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, Options};
    use serde_json::{Value, json};

    fn read(value: Value) -> (Options, Vec<String>) {
        Options::read(value.as_object().expect("a map"))
    }

    #[test]
    fn defaults_are_those_of_sysbench() {
        assert_eq!(read(json!({})), (Options::default(), vec![]));
    }

    #[test]
    fn every_known_name_has_a_place() {
        let mut options = Options::default();
        assert!(KNOWN.iter().all(|name| options.slot(name).is_some()));
    }

    #[test]
    fn values_arrive() {
        let (options, mistakes) = read(json!({
            "tables": 4, "table_size": 1000, "skip_trx": "on", "range_selects": false,
            "secondary": true, "mysql_storage_engine": "innodb",
        }));
        assert_eq!(mistakes, Vec::<String>::new());
        assert_eq!((options.tables, options.table_size), (4, 1000));
        assert_eq!((options.skip_trx, options.range_selects), (true, false));
    }

    #[test]
    fn all_mistakes_at_once() {
        let (_, mistakes) = read(json!({
            "table-size": 5, "tables": 0, "point_selects": "10k", "skip_trx": "yes", "x": 1,
            "mysql_storage_engine": 3, "table_size": 3_000_000_000_u64, "number_of_ranges": 0,
            "random_points": 65_536, "delta": -1,
        }));
        assert_eq!(
            mistakes,
            [
                "option delta must be a whole number from 0 to 2147483647, not -1",
                "option mysql_storage_engine must be a word, not 3",
                "option number_of_ranges must be a whole number from 1 to 32767, not 0",
                "option point_selects must be a whole number from 0 to 100000, not \"10k\"",
                "option random_points must be a whole number from 1 to 65535, not 65536",
                "option skip_trx must be true or false, not \"yes\"",
                "option table-size is not known, perhaps table_size?",
                "option table_size must be a whole number from 1 to 2147483647, not 3000000000",
                "option tables must be a whole number from 1 to 100000, not 0",
                "option x is not known",
            ]
        );
    }
}
