//! Lua scripts for Python: a script's options, commands and hooks. Its events are run by `run`.
use crate::load::refused;
use crate::value::{from_python, to_python};
use dbdyno_core::spec::ScriptSpec;
use dbdyno_core::{error, script, system};
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// True if the file has the code of sysbench's script of this name (without `.lua`).
#[pyfunction]
pub fn is_released(name: &str, path: PathBuf) -> bool {
    script::is_released(name, &path)
}

/// The text without what steers a terminal.
#[pyfunction]
pub fn printable(text: &Bound<'_, PyString>) -> String {
    error::printable(&text.to_string_lossy())
}

/// Makes programs that scripts leave behind children of this process.
#[pyfunction]
pub fn adopt_orphans() -> PyResult<()> {
    Ok(system::adopt_orphans()?)
}

/// Kills all descendants of this process, if it has adopted its orphans.
#[pyfunction]
pub fn end_descendants(py: Python<'_>) {
    py.detach(system::end_descendants);
}

/// Has the kernel kill this process, or the group that it leads, once its parent has ended.
#[pyfunction]
pub fn end_with_parent() -> PyResult<()> {
    Ok(system::end_with_parent()?)
}

/// A loaded script; its top level has run.
#[pyclass(module = "dbdyno._engine", frozen)]
pub struct Script {
    script: Mutex<script::Script>,
}

#[pymethods]
impl Script {
    #[new]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec: ScriptSpec = from_python(spec)?;
        let loaded = py.detach(|| script::Script::load(&spec));
        Ok(Self { script: Mutex::new(loaded.map_err(|failure| refused(py, &failure))?) })
    }

    /// The options declared by the script.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, script::Script::options)?)
    }

    /// Sets `sysbench.opt`.
    fn set_options(&self, py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<()> {
        let options = from_python(options)?;
        self.with(py, |script| script.set_options(options))
    }

    /// True if the script has a global function of this name.
    fn defines(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.with(py, |script| Ok(script.defines(name)))
    }

    /// True if the script's command runs in all threads, False if in a single thread, None if the
    /// script does not declare it.
    fn command(&self, py: Python<'_>, name: &str) -> PyResult<Option<bool>> {
        self.with(py, |script| script.command(name))
    }

    /// Calls a global function.
    fn call(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |script| script.call(name))
    }

    /// Runs a command of the script; False when the command returned false.
    fn run_command(&self, py: Python<'_>, name: &str, threads: u32) -> PyResult<bool> {
        self.with(py, |script| script.run_command(name, threads))
    }

    /// Loads the script once more, for reports of intervals.
    fn open_reporter(&self, py: Python<'_>, thread: u32) -> PyResult<()> {
        self.with(py, |script| script.open_reporter(thread))
    }

    /// Ends reports of intervals.
    fn close_reporter(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |script| {
            script.close_reporter();
            Ok(())
        })
    }

    /// Calls a hook for reports with its figures; False if the script has no such hook.
    fn report(&self, py: Python<'_>, hook: &str, figures: &Bound<'_, PyAny>) -> PyResult<bool> {
        let figures: Value = from_python(figures)?;
        self.with(py, |script| script.report(hook, &figures))
    }

    /// True if any script of this process has asked for a database.
    #[staticmethod]
    fn uses_database() -> bool {
        script::uses_database()
    }
}

impl Script {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut script::Script) -> Result<T, dbdyno_core::error::Failure> + Send,
    ) -> PyResult<T> {
        let done =
            py.detach(|| work(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner)));
        done.map_err(|failure| refused(py, &failure))
    }
}
