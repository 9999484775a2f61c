//! All integration tests that need no process of their own, in one program: it links once.

mod foreign_bytes;
mod support;

/// From an address to a session that can be used, what becomes of one that is lost, and the server of
/// the project's own that they are tried on.
mod connections {
    mod link;
    mod opening;
    mod reconnect;
    mod reference;
    mod relay;
    mod session;
    mod several_servers;
    mod timeouts;
    mod tls;
}

/// What is loaded and asked: data, statements, and the draws behind them.
mod workloads {
    mod dataset;
    mod legacy;
    mod random;
    mod workload;
}

/// From a spec to load, and what is recorded of it.
mod runs {
    mod hostile_scripts;
    mod null_responder;
    mod reactor;
    mod run;
    mod scripts;
    mod spec;
    mod worker;
    mod yardstick;
}
