//! The null responder for Python: it answers every statement at once, so a run against it measures
//! the generator itself.
use crate::load::Stop;
use dbdyno_core::driver::Driver;
use dbdyno_core::reference::NullResponder;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Interval between a responder's checks of its stop flag, in milliseconds.
const LOOK_MS: i32 = 20;

/// Speaks to clients of a driver on a free port of 127.0.0.1, knows no SQL and keeps no data.
#[pyclass(module = "dbdyno._engine", frozen)]
pub struct Responder {
    port: u16,
    responder: Mutex<NullResponder>,
}

#[pymethods]
impl Responder {
    #[new]
    fn new(driver: &str) -> PyResult<Self> {
        let driver = match driver {
            "mysql" => Driver::Mysql,
            "pgsql" => Driver::Pgsql,
            other => return Err(PyValueError::new_err(format!("mysql or pgsql, not {other}"))),
        };
        let responder = NullResponder::bind(driver, None).map_err(PyOSError::new_err)?;
        let port = responder.port();
        Ok(Self { port, responder: Mutex::new(responder) })
    }

    /// The port on 127.0.0.1.
    #[getter]
    const fn port(&self) -> u16 {
        self.port
    }

    /// Serves until `stop` is set; the GIL is released meanwhile.
    fn serve(&self, py: Python<'_>, stop: &Stop) -> PyResult<()> {
        py.detach(|| {
            let mut responder = self.responder.lock().unwrap_or_else(PoisonError::into_inner);
            while !stop.is_set() {
                responder.serve(LOOK_MS)?;
            }
            Ok(())
        })
        .map_err(|error: std::io::Error| PyOSError::new_err(error))
    }
}
