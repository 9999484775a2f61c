//! What a script may `require`: files that stand for modules of ours, and compiled modules.

pub(super) mod c_functions;
mod released;

pub use released::is_released;
