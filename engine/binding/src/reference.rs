//! The reference server for Python: a queueing system of known truth, speaking MySQL's protocol.
use crate::histogram::Histogram;
use dbdyno_core::reference::{self, Script, Service, Stall};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::time::Duration;

/// Serves on a free port of 127.0.0.1 until it is dropped.
#[pyclass(module = "dbdyno._engine", frozen)]
pub struct Reference {
    server: reference::Reference,
}

#[pymethods]
impl Reference {
    #[new]
    #[pyo3(signature = (law, time_s, *, sigma = 0.0, workers = None, stall_s = None))]
    fn new(
        law: &str,
        time_s: f64,
        sigma: f64,
        workers: Option<usize>,
        stall_s: Option<(f64, f64)>,
    ) -> PyResult<Self> {
        let time = seconds(time_s)?;
        let service = match law {
            "fixed" => Service::Fixed(time),
            "exponential" => Service::Exponential(time),
            "lognormal" => Service::Lognormal(time, sigma),
            _ => {
                let known = "fixed, exponential and lognormal are known";
                return Err(PyValueError::new_err(format!("law {law:?}: {known}")));
            }
        };
        let stall = match stall_s {
            Some((after_s, lasting_s)) => {
                Some(Stall { after: seconds(after_s)?, lasting: seconds(lasting_s)? })
            }
            None => None,
        };
        let script = Script { service, workers, stall, ..Script::default() };
        let server = reference::Reference::start(script).map_err(PyOSError::new_err)?;
        Ok(Self { server })
    }

    /// The port on 127.0.0.1.
    #[getter]
    const fn port(&self) -> u16 {
        self.server.port
    }

    /// User, password and database of its only login.
    #[getter]
    fn login(&self) -> (String, String, String) {
        let login = self.server.login();
        (login.user, login.password, login.database)
    }

    /// The planned times of all statements so far and their exact sum in ns.
    fn truth(&self) -> (Histogram, u64) {
        let truth = self.server.truth();
        let sum_ns = u64::try_from(truth.sum.as_nanos()).unwrap_or(u64::MAX);
        (Histogram::from(truth.times), sum_ns)
    }
}

fn seconds(value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|error| PyValueError::new_err(error.to_string()))
}
