//! sysbench's log, which goes to stdout: a repeated line is counted, not written again.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// The log of all threads of a script: sysbench's log, which goes to stdout.
#[derive(Debug)]
pub struct Log {
    verbosity: u32,
    /// The last line, and the number of its suppressed repetitions.
    last: Mutex<(String, u32)>,
}

const LEVELS: [&str; 6] = ["FATAL: ", "ALERT: ", "WARNING: ", "", "", "DEBUG: "];

impl Log {
    /// Makes a log without the lines above `verbosity`.
    #[must_use]
    pub fn new(verbosity: u32) -> Self {
        Self { verbosity, last: Mutex::default() }
    }

    /// Writes a line, unless it repeats the last.
    pub fn line(&self, level: u32, text: &str) {
        if level > self.verbosity {
            return;
        }
        let line = format!("{}{text}\n", LEVELS.get(level as usize).unwrap_or(&""));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 == line {
            last.1 += 1;
            return;
        }
        let repeated = std::mem::replace(&mut last.1, 0);
        let mut out = String::new();
        if repeated > 0 {
            out = format!("(last message repeated {repeated} times)\n");
        }
        out.push_str(&line);
        last.0 = line;
        // A closed stdout ends the program elsewhere.
        let _ = std::io::stdout().lock().write_all(out.as_bytes());
        let _ = std::io::stdout().lock().flush();
    }
}
