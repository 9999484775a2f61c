//! `run`, `prepare`, `prewarm`, `cleanup` and the flag to stop them.
//!
//! The GIL is released while the engine works and taken only to report an interval or progress. A
//! callback's exception stops the run and is raised after its end.
use crate::value::{from_python, to_python};
use dbdyno_core::dataset::{self, PrepareSpec, Report};
use dbdyno_core::error::Failure;
use dbdyno_core::run::run as drive;
use dbdyno_core::spec::RunSpec;
use dbdyno_core::workload;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag to end a run or a load from another thread.
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

/// Names of the workloads from before sysbench 1.0, with tables of a different layout.
#[pyfunction]
pub fn legacy_workloads() -> Vec<&'static str> {
    workload::legacy_names()
}

/// Drives a load as `spec` says and returns the record.
#[pyfunction]
#[pyo3(signature = (spec, on_interval, stop))]
pub fn run<'py>(
    py: Python<'py>,
    spec: &Bound<'py, PyAny>,
    on_interval: Option<Py<PyAny>>,
    stop: &Stop,
) -> PyResult<Bound<'py, PyAny>> {
    let spec: RunSpec = from_python(spec)?;
    spec.workload().map_err(|mistakes| PyValueError::new_err(mistakes.join("\n")))?;
    let mut listener = Listener::new(on_interval, &stop.flag);
    let record = py.detach(|| drive(&spec, &stop.flag, &mut |progress| listener.tell(progress)));
    listener.finish()?;
    to_python(py, &record.map_err(|failure| refused(py, &failure))?)
}

/// Creates and fills the tables of a dataset spec; returns a report.
#[pyfunction]
#[pyo3(signature = (spec, on_progress, stop))]
pub fn prepare<'py>(
    py: Python<'py>,
    spec: &Bound<'py, PyAny>,
    on_progress: Option<Py<PyAny>>,
    stop: &Stop,
) -> PyResult<Bound<'py, PyAny>> {
    told(py, spec, on_progress, stop, dataset::prepare)
}

/// Reads the tables of a dataset spec into the server's memory; returns a report.
#[pyfunction]
#[pyo3(signature = (spec, on_progress, stop))]
pub fn prewarm<'py>(
    py: Python<'py>,
    spec: &Bound<'py, PyAny>,
    on_progress: Option<Py<PyAny>>,
    stop: &Stop,
) -> PyResult<Bound<'py, PyAny>> {
    told(py, spec, on_progress, stop, dataset::prewarm)
}

/// Drops the tables of a dataset spec.
#[pyfunction]
pub fn cleanup<'py>(
    py: Python<'py>,
    spec: &Bound<'py, PyAny>,
    stop: &Stop,
) -> PyResult<Bound<'py, PyAny>> {
    let spec: dataset::CleanupSpec = from_python(spec)?;
    let report = py.detach(|| dataset::cleanup(&spec, &stop.flag));
    to_python(py, &report.map_err(|failure| refused(py, &failure))?)
}

type Work<P> = fn(&PrepareSpec, &mut dyn FnMut(P), &AtomicBool) -> Result<Report, Failure>;

/// Works on the tables of a dataset spec and reports progress to Python.
fn told<'py, P: Serialize>(
    py: Python<'py>,
    spec: &Bound<'py, PyAny>,
    on_progress: Option<Py<PyAny>>,
    stop: &Stop,
    work: Work<P>,
) -> PyResult<Bound<'py, PyAny>> {
    let spec: PrepareSpec = from_python(spec)?;
    let mut listener = Listener::new(on_progress, &stop.flag);
    let report = py.detach(|| work(&spec, &mut |progress| listener.tell(&progress), &stop.flag));
    listener.finish()?;
    to_python(py, &report.map_err(|failure| refused(py, &failure))?)
}

/// A RuntimeError with the failure as a dict for its argument.
pub fn refused(py: Python<'_>, failure: &Failure) -> PyErr {
    to_python(py, failure).map_or_else(|error| error, |told| PyRuntimeError::new_err(told.unbind()))
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
        let outcome = Python::attach(|py| callback.call1(py, (to_python(py, news)?,)).map(|_| ()));
        if let Err(error) = outcome {
            self.stop.store(true, Ordering::Relaxed);
            self.raised = Some(error);
        }
    }

    fn finish(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}
