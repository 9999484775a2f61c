//! `Histogram` and `IntervalLog` for Python.
use dbdyno_core::record::histogram::{DecodeError, Histogram as Counts, IntervalLog as Log};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Counts of latencies in ns by size class (HDR, 3 significant digits).
#[pyclass(module = "dbdyno._engine")]
pub struct Histogram {
    counts: Counts,
}

impl From<Counts> for Histogram {
    fn from(counts: Counts) -> Self {
        Self { counts }
    }
}

#[pymethods]
impl Histogram {
    #[new]
    fn new() -> Self {
        Self { counts: Counts::new() }
    }

    #[staticmethod]
    fn decode(blob: &[u8]) -> PyResult<Self> {
        let counts = Counts::decode(blob).map_err(|error| wrong(&error))?;
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

/// HdrHistogram's interval log, format 1.3, of encoded histograms.
#[pyclass(module = "dbdyno._engine")]
pub struct IntervalLog {
    log: Log,
}

#[pymethods]
impl IntervalLog {
    #[new]
    #[pyo3(signature = (description, *, decimals, start_time = None))]
    fn new(description: &str, decimals: usize, start_time: Option<&str>) -> Self {
        Self { log: Log::new(description, start_time, decimals) }
    }

    fn comment(&mut self, text: &str) {
        self.log.comment(text);
    }

    #[pyo3(signature = (histogram, start_s, length_s, *, tag = None, max_ns = None))]
    fn add(
        &mut self,
        histogram: &[u8],
        start_s: f64,
        length_s: f64,
        tag: Option<&str>,
        max_ns: Option<u64>,
    ) -> PyResult<()> {
        self.log.add(histogram, start_s, length_s, tag, max_ns).map_err(|error| wrong(&error))
    }

    fn text(&self) -> &str {
        self.log.text()
    }
}

fn wrong(error: &DecodeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
