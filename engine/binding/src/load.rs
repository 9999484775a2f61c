//! `run`, `prepare`, `prewarm`, `cleanup` and the flag that stops them. Specs and results cross as JSON, so
//! that the same text works from Python, through a pipe and out of a file.
//!
//! The GIL is released while the engine works and taken only to tell an interval. A callback that
//! raises stops the run, and its exception is raised when the run has ended.
use dbdyno_core::dataset::{self, PrepareSpec, Report};
use dbdyno_core::error::Failure;
use dbdyno_core::run::run as drive;
use dbdyno_core::spec::RunSpec;
use dbdyno_core::workload;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that ends a run or a load from another thread.
#[pyclass(module = "dbdyno._engine", frozen)]
#[derive(Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
}

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

/// Names of the built-in workloads.
#[pyfunction]
pub fn workloads() -> Vec<&'static str> {
    workload::names()
}

/// Names of the workloads of before sysbench 1.0, which run on tables of their own layout.
#[pyfunction]
pub fn legacy_workloads() -> Vec<&'static str> {
    workload::legacy_names()
}

/// Drives a load as the JSON `spec` says and returns the record as JSON.
#[pyfunction]
#[pyo3(signature = (spec, on_interval, stop))]
pub fn run(
    py: Python<'_>,
    spec: &str,
    on_interval: Option<Py<PyAny>>,
    stop: &Stop,
) -> PyResult<String> {
    let spec: RunSpec = parsed(spec)?;
    spec.workload().map_err(|mistakes| PyValueError::new_err(mistakes.join("\n")))?;
    let mut listener = Listener::new(on_interval, &stop.flag);
    let record = py.detach(|| drive(&spec, &stop.flag, &mut |progress| listener.tell(progress)));
    listener.finish()?;
    json(&record.map_err(|failure| refused(&failure))?)
}

/// Creates and fills the tables of a dataset spec (JSON); returns a JSON report.
#[pyfunction]
#[pyo3(signature = (spec, on_progress, stop))]
pub fn prepare(
    py: Python<'_>,
    spec: &str,
    on_progress: Option<Py<PyAny>>,
    stop: &Stop,
) -> PyResult<String> {
    told(py, spec, on_progress, stop, dataset::prepare)
}

/// Reads the tables of a dataset spec (JSON) into the server's memory; returns a JSON report.
#[pyfunction]
#[pyo3(signature = (spec, on_progress, stop))]
pub fn prewarm(
    py: Python<'_>,
    spec: &str,
    on_progress: Option<Py<PyAny>>,
    stop: &Stop,
) -> PyResult<String> {
    told(py, spec, on_progress, stop, dataset::prewarm)
}

/// Drops the tables of a dataset spec (JSON).
#[pyfunction]
pub fn cleanup(py: Python<'_>, spec: &str, stop: &Stop) -> PyResult<String> {
    let spec: dataset::CleanupSpec = parsed(spec)?;
    let report = py.detach(|| dataset::cleanup(&spec, &stop.flag));
    json(&report.map_err(|failure| refused(&failure))?)
}

type Work<P> = fn(&PrepareSpec, &mut dyn FnMut(P), &AtomicBool) -> Result<Report, Failure>;

/// Work on the tables of a dataset spec, whose progress Python is told.
fn told<P: Serialize>(
    py: Python<'_>,
    spec: &str,
    on_progress: Option<Py<PyAny>>,
    stop: &Stop,
    work: Work<P>,
) -> PyResult<String> {
    let spec: PrepareSpec = parsed(spec)?;
    let mut listener = Listener::new(on_progress, &stop.flag);
    let report = py.detach(|| work(&spec, &mut |progress| listener.tell(&progress), &stop.flag));
    listener.finish()?;
    json(&report.map_err(|failure| refused(&failure))?)
}

pub fn parsed<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

pub fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

pub fn refused(failure: &Failure) -> PyErr {
    json(failure).map_or_else(|error| error, PyRuntimeError::new_err)
}

/// Calls Python from the engine's threads.
struct Listener {
    callback: Option<Py<PyAny>>,
    stop: Arc<AtomicBool>,
    raised: Option<PyErr>,
}

impl Listener {
    fn new(callback: Option<Py<PyAny>>, stop: &Arc<AtomicBool>) -> Self {
        Self { callback, stop: Arc::clone(stop), raised: None }
    }

    fn tell(&mut self, news: &impl Serialize) {
        let Some(callback) = self.callback.as_ref().filter(|_| self.raised.is_none()) else {
            return;
        };
        let outcome = Python::attach(|py| callback.call1(py, (json(news)?,)).map(|_| ()));
        if let Err(error) = outcome {
            self.stop.store(true, Ordering::Relaxed);
            self.raised = Some(error);
        }
    }

    fn finish(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}
