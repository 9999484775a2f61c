//! Integration tests without need of a process of their own, in a single program: it links once.

mod foreign_bytes;
mod support;

/// Connections from an address to a usable session, their loss, and the project's own test server.
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

/// Workloads: data, statements, and their random draws.
mod workloads {
    mod dataset;
    mod legacy;
    mod random;
    mod workload;
}

/// Runs from a spec to the record.
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
