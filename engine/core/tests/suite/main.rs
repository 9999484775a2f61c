//! All integration tests that need no process of their own, in one program: it links once.

mod dataset;
mod legacy;
mod link;
mod null_responder;
mod opening;
mod random;
mod reactor;
mod reconnect;
mod reference;
mod run;
mod session;
mod several_servers;
mod spec;
mod support;
mod timeouts;
mod tls;
mod worker;
mod workload;
