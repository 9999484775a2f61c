//! Request packets of the MySQL protocol, until the crate `wire` has them.

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter<'a> {
    /// A signed 64-bit integer, as sysbench binds every number.
    BigInt(i64),
    /// A string.
    Text(&'a [u8]),
}

pub(super) fn begin_packet(out: &mut Vec<u8>, sequence: u8) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, sequence]);
    start
}

pub(super) fn end_packet(out: &mut [u8], start: usize) {
    let length = (out.len() - start - 4) as u32;
    out[start..start + 3].copy_from_slice(&length.to_le_bytes()[..3]);
}

/// `COM_STMT_EXECUTE`.
pub(super) fn statement_execute(
    out: &mut Vec<u8>,
    statement_id: u32,
    parameters: &[Parameter<'_>],
    _new_params_bound: bool,
) {
    let start = begin_packet(out, 0);
    out.push(0x17);
    out.extend_from_slice(&statement_id.to_le_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if !parameters.is_empty() {
        out.resize(out.len() + parameters.len().div_ceil(8), 0);
        out.push(1);
        for parameter in parameters {
            let kind = if matches!(parameter, Parameter::BigInt(_)) { 8 } else { 254 };
            out.extend_from_slice(&[kind, 0]);
        }
        for parameter in parameters {
            match parameter {
                Parameter::BigInt(number) => out.extend_from_slice(&number.to_le_bytes()),
                Parameter::Text(text) => {
                    out.push(text.len() as u8);
                    out.extend_from_slice(text);
                }
            }
        }
    }
    end_packet(out, start);
}
