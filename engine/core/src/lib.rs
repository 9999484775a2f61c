//! One run of load against one server: a spec goes in, a record of what was seen comes out.
pub mod clock;
pub mod dataset;
pub mod dial;
pub mod error;
pub mod event;
pub mod histogram;
pub mod merge;
pub mod random;
pub mod reactor;
pub mod record;
pub mod reference;
pub mod schedule;
pub mod workload;
