//! `dbdyno._engine`: the engine's interface for Python, with conversions and error mapping only,
//! beside the distribution functions of the statistics.
mod distributions;
mod histogram;
mod load;
mod reference;
mod relay;
mod responder;
mod script;
mod session;
mod value;

use pyo3::prelude::*;

/// The engine's version.
#[pyfunction]
const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<histogram::Histogram>()?;
    module.add_class::<histogram::IntervalLog>()?;
    module.add_class::<load::Stop>()?;
    module.add_class::<responder::Responder>()?;
    module.add_class::<reference::Reference>()?;
    module.add_class::<script::Script>()?;
    module.add_class::<session::Session>()?;
    module.add("SessionError", module.py().get_type::<session::SessionError>())?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    distributions::add_to(module)?;
    module.add_function(wrap_pyfunction!(load::workloads, module)?)?;
    module.add_function(wrap_pyfunction!(load::legacy_workloads, module)?)?;
    module.add_function(wrap_pyfunction!(script::adopt_orphans, module)?)?;
    module.add_function(wrap_pyfunction!(script::end_descendants, module)?)?;
    module.add_function(wrap_pyfunction!(script::end_with_parent, module)?)?;
    module.add_function(wrap_pyfunction!(script::is_released, module)?)?;
    module.add_function(wrap_pyfunction!(script::printable, module)?)?;
    module.add_function(wrap_pyfunction!(session::password_in_file, module)?)?;
    module.add_function(wrap_pyfunction!(load::run, module)?)?;
    module.add_function(wrap_pyfunction!(relay::relay, module)?)?;
    module.add_function(wrap_pyfunction!(load::prepare, module)?)?;
    module.add_function(wrap_pyfunction!(load::prewarm, module)?)?;
    module.add_function(wrap_pyfunction!(load::cleanup, module)?)
}
