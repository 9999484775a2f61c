//! Conversion of specs and results from and to Python's dicts, lists, strings and numbers, as in
//! JSON.
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

/// Most levels of nesting, as in JSON's own readers.
const DEPTH_MAX: u32 = 128;

/// Reads a spec from Python's objects; ValueError when it is invalid.
pub fn from_python<T: DeserializeOwned>(object: &Bound<'_, PyAny>) -> PyResult<T> {
    serde_json::from_value(value_of(object, DEPTH_MAX)?).map_err(invalid)
}

/// A result as Python's objects.
pub fn to_python<'py>(py: Python<'py>, result: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    object_of(py, &serde_json::to_value(result).map_err(invalid)?)
}

fn value_of(object: &Bound<'_, PyAny>, depth: u32) -> PyResult<Value> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(invalid("nested too deeply"));
    };
    let value = if object.is_none() {
        Value::Null
    } else if let Ok(flag) = object.cast::<PyBool>() {
        Value::Bool(flag.is_true())
    } else if let Ok(text) = object.cast::<PyString>() {
        Value::String(text.to_str().map_err(|_| invalid("text that is not UTF-8"))?.to_owned())
    } else if object.is_instance_of::<PyInt>() {
        Value::Number(integer_of(object)?)
    } else if object.is_instance_of::<PyFloat>() {
        let number = Number::from_f64(object.extract()?);
        Value::Number(number.ok_or_else(|| invalid("a number that is not finite"))?)
    } else if let Ok(fields) = object.cast::<PyDict>() {
        let field = |(name, one): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name: String = name.extract()?;
            let value = value_of(&one, depth);
            let value = value.map_err(|e| invalid(format!("{name}: {}", e.value(one.py()))))?;
            Ok((name, value))
        };
        Value::Object(fields.iter().map(field).collect::<PyResult<Map<_, _>>>()?)
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items = object.try_iter()?.map(|one| value_of(&one?, depth));
        Value::Array(items.collect::<PyResult<_>>()?)
    } else {
        return Err(invalid(format!("the engine takes no {}", object.get_type().name()?)));
    };
    Ok(value)
}

fn integer_of(object: &Bound<'_, PyAny>) -> PyResult<Number> {
    let number = object.extract::<i64>().map(Number::from);
    number
        .or_else(|_| object.extract::<u64>().map(Number::from))
        .map_err(|_| invalid(format!("{object} has more than 64 bits")))
}

fn object_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => PyInt::new(py, number).into_any(),
            (None, Some(number)) => PyInt::new(py, number).into_any(),
            _ => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(object_of(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (name, field) in fields {
                dict.set_item(name, object_of(py, field)?)?;
            }
            dict.into_any()
        }
    })
}

fn invalid(what: impl ToString) -> PyErr {
    PyValueError::new_err(what.to_string())
}
