//! One run of load against one server: a [`spec`] goes in, a [`record`] of what was seen comes out.
pub mod dataset;
pub mod error;
pub mod opening;
pub mod placement;
pub mod random;
pub mod reactor;
pub mod record;
pub mod reference;
pub mod run;
pub mod session;
pub mod spec;
pub mod system;
pub mod time;
pub mod worker;
pub mod workload;
