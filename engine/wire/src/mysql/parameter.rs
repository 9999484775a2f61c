//! Reads the parameters of `COM_STMT_EXECUTE`: the server's half of [`super::command::Parameter`].
//!
//! Foreign clients (sysbench, the vendors' libraries) bind more types than this client. All types
//! of numbers and strings are read, to compare a recorded stream value by value.

use super::{Malformed, cursor::Cursor};

/// A parameter's type: its code, and 0x80 in the second byte when unsigned.
pub type TypeCode = [u8; 2];

/// The value of a placeholder.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// Any of the integer types.
    Integer(i64),
    /// An unsigned integer beyond the signed ones.
    Unsigned(u64),
    /// FLOAT or DOUBLE.
    Real(f64),
    /// Strings, decimals and other values sent as strings.
    Text(Vec<u8>),
}

/// Reads `count` values from the bytes of [`super::command::Command::Execute`]. `types` holds the
/// types bound by the statement's last execution, and is replaced when this execution binds anew.
///
/// # Errors
/// [`Malformed`] when bytes are missing, or no types were ever bound.
pub fn parse(
    bytes: &[u8],
    count: usize,
    types: &mut Vec<TypeCode>,
) -> Result<Vec<Value>, Malformed> {
    let mut cursor = Cursor::new("execution of a statement", bytes);
    if count == 0 {
        return Ok(Vec::new());
    }
    let nulls = cursor.take(count.div_ceil(8), "NULL bitmap")?;
    if cursor.u8("flag of new types")? == 1 {
        types.clear();
        for _ in 0..count {
            types.push(cursor.array("types")?);
        }
    }
    if types.len() != count {
        return Err(cursor.malformed("types"));
    }
    let is_null = |index: usize| nulls[index / 8] >> (index % 8) & 1 == 1;
    let value = |(index, &code)| {
        if is_null(index) { Ok(Value::Null) } else { value_of(&mut cursor, code) }
    };
    types.iter().enumerate().map(value).collect()
}

fn value_of(cursor: &mut Cursor<'_>, [code, flags]: TypeCode) -> Result<Value, Malformed> {
    let width = match code {
        0x01 => 1,
        0x02 | 0x0d => 2,
        0x03 | 0x09 => 4,
        0x08 => 8,
        0x04 => return Ok(Value::Real(f32::from_le_bytes(cursor.array("FLOAT")?).into())),
        0x05 => return Ok(Value::Real(f64::from_le_bytes(cursor.array("DOUBLE")?))),
        0x06 => return Ok(Value::Null),
        _ => return Ok(Value::Text(cursor.string("string")?.to_vec())),
    };
    let bytes = cursor.take(width, "integer")?;
    let unsigned = flags & 0x80 != 0;
    let negative = !unsigned && bytes[width - 1] & 0x80 != 0;
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..width].copy_from_slice(bytes);
    let signed = i64::from_le_bytes(wide);
    if unsigned && signed < 0 {
        return Ok(Value::Unsigned(u64::from_le_bytes(wide)));
    }
    Ok(Value::Integer(signed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_keep_their_sign() {
        let mut bytes = vec![0, 1];
        bytes.extend_from_slice(&[1, 0, 2, 0, 3, 0, 3, 0x80, 8, 0x80]);
        bytes.push(0xff);
        bytes.extend_from_slice(&(-300_i16).to_le_bytes());
        bytes.extend_from_slice(&70_000_i32.to_le_bytes());
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        bytes.extend_from_slice(&u64::MAX.to_le_bytes());
        let values = parse(&bytes, 5, &mut Vec::new()).expect("a whole execution");
        let expected = [-1, -300, 70_000, i64::from(u32::MAX)].map(Value::Integer);
        assert_eq!(values[..4], expected);
        assert_eq!(values[4], Value::Unsigned(u64::MAX));
    }

    #[test]
    fn a_null_takes_no_bytes() {
        let bytes = [0b10, 1, 0xfe, 0, 0xfe, 0, 1, b'a'];
        let values = parse(&bytes, 2, &mut Vec::new());
        assert_eq!(values, Ok(vec![Value::Text(b"a".to_vec()), Value::Null]));
    }

    #[test]
    fn types_must_have_been_bound_once() {
        assert!(parse(&[0, 0, 1], 1, &mut Vec::new()).is_err());
    }

    #[test]
    fn missing_bytes_are_refused() {
        assert!(parse(&[], 1, &mut Vec::new()).is_err());
        assert!(parse(&[0, 1, 3, 0, 1, 2], 1, &mut Vec::new()).is_err());
    }
}
