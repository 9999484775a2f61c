//! Measurements: recorded by each worker, added up slice by slice, encoded for Python.
pub mod histogram;
pub mod interval;
pub mod recorder;
pub mod run_record;
