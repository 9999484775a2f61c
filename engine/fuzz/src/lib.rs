//! Readers of foreign bytes, a function for each fuzz target.
pub mod engine;
pub mod wire;
