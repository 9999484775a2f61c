//! The null responder for Python: it answers every statement at once, so a run against it shows
//! what the generator itself can do.
use crate::load::Stop;
use dbdyno_core::reference::NullResponder;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// How often a responder looks whether it should stop, in milliseconds.
const LOOK_MS: i32 = 20;

/// Speaks MySQL on a free port of 127.0.0.1, knows no SQL and keeps no data.
#[pyclass(module = "dbdyno._engine", frozen)]
pub struct Responder {
    port: u16,
    responder: Mutex<NullResponder>,
}

#[pymethods]
impl Responder {
    #[new]
    fn new() -> PyResult<Self> {
        let responder = NullResponder::bind(1, None).map_err(PyOSError::new_err)?;
        let port = responder.addresses()[0].port();
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
