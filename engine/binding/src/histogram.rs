//! `Histogram` for Python.
use dbdyno_core::record::histogram::Histogram as Counts;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Counts of latencies in ns by size class (HDR, 3 significant digits).
#[pyclass(module = "dbdyno._engine")]
pub struct Histogram {
    counts: Counts,
}

#[pymethods]
impl Histogram {
    #[new]
    fn new() -> Self {
        Self { counts: Counts::new() }
    }

    #[staticmethod]
    fn decode(blob: &[u8]) -> PyResult<Self> {
        let counts = Counts::decode(blob).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(Self { counts })
    }

    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.counts.encode())
    }

    fn record(&mut self, value_ns: u64) {
        self.counts.record(value_ns);
    }

    fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
    }

    fn recorded(&self) -> Vec<(u64, u64)> {
        self.counts.recorded()
    }

    fn quantile(&self, fraction: f64) -> u64 {
        self.counts.quantile(fraction)
    }

    fn count(&self) -> u64 {
        self.counts.count()
    }

    fn max(&self) -> u64 {
        self.counts.max()
    }

    fn min(&self) -> u64 {
        self.counts.min()
    }
}
