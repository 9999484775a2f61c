//! A thread per connection, which sends and then waits in `recv`, as in sysbench.

use crate::load::{Load, Tally};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

/// Drives the load until the tally is over.
pub fn drive(sockets: Vec<OwnedFd>, load: &Load, tally: &Tally) {
    std::thread::scope(|scope| {
        for (socket, first) in sockets.into_iter().zip(0..) {
            scope.spawn(move || converse(socket, load, tally, first));
        }
    });
}

fn converse(socket: OwnedFd, load: &Load, tally: &Tally, mut number: u64) {
    // Any kind of stream: it is only read and written.
    let mut stream = TcpStream::from(socket);
    let mut buffer = [0; 16 * 1024];
    while !tally.is_over() {
        stream.write_all(load.request(number)).expect("the server listens");
        number += 1;
        let length = stream.read(&mut buffer).expect("the server answers");
        load.packets(&buffer[..length]);
        tally.add();
    }
}
