//! Fuzz targets of the engine: bytes are refused or understood, without a panic and without
//! unbounded memory. The engine's tests run these functions too.

use dbdyno_core::record::histogram::Histogram;
use dbdyno_core::spec::RunSpec;

/// A histogram, as a bundle, a store or an imported log holds it.
pub fn histogram(bytes: &[u8]) {
    if let Ok(read) = Histogram::decode(bytes) {
        assert!(read.quantile(0.5) <= read.quantile(1.0));
    }
}

/// The JSON of a run.
pub fn spec(bytes: &[u8]) {
    if let Ok(read) = serde_json::from_slice::<RunSpec>(bytes) {
        let _ = read.mistakes();
    }
}
