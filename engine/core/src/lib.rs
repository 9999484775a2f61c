//! One run of load against one server: a [`spec`] goes in, a record of what was seen comes out.
pub mod dataset;
pub mod dial;
pub mod event;
pub mod histogram;
pub mod random;
pub mod reference;
pub mod workload;
