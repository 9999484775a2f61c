//! On which core the server's thread runs, as far as a client can know.
//!
//! For a TCP socket the kernel notes the core on which the last bytes came in (`SO_INCOMING_CPU`),
//! which on one machine is the core that sent them. A Unix socket only knows the process at the
//! other end; with one connection in use, the thread of that process that uses most CPU is the one.

use rustix::net::sockopt::socket_incoming_cpu;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// How the core of the server's thread is found.
pub(super) enum Server {
    /// The core on which the socket's last bytes were sent.
    Tcp(OwnedFd),
    /// The thread of the process at the other end that has worked most since it was first looked.
    Process { pid: i32, before: Option<Vec<(u32, u64)>> },
    /// That thread.
    Thread { pid: i32, id: u32 },
}

impl Server {
    /// The server behind a connected socket; None if it is on another machine, or its thread cannot be
    /// told from those of other connections.
    pub(super) fn behind(socket: BorrowedFd<'_>, is_alone: bool) -> Option<Self> {
        let socket = socket.try_clone_to_owned().ok()?;
        let stream = TcpStream::from(socket);
        if let (Ok(near), Ok(far)) = (stream.local_addr(), stream.peer_addr()) {
            return is_one_machine(near, far).then(|| Self::Tcp(stream.into()));
        }
        let stream = UnixStream::from(OwnedFd::from(stream));
        let pid = peer_pid(stream.as_fd()).filter(|&pid| is_alone && pid > 0)?;
        Some(Self::Process { pid, before: None })
    }

    /// The core of the server's thread; None as long as it is not known.
    pub(super) fn core(&mut self) -> Option<usize> {
        match self {
            Self::Tcp(socket) => incoming_core(socket.as_fd()),
            Self::Thread { pid, id } => core_of(*pid, *id),
            Self::Process { pid, before } => {
                let (pid, now) = (*pid, worked_ns(*pid));
                let Some(before) = before else {
                    *before = Some(now);
                    return None;
                };
                let grown = |&(id, ns): &(u32, u64)| {
                    let old = before.iter().find(|(other, _)| *other == id);
                    ns - old.map_or(0, |(_, ns)| *ns).min(ns)
                };
                let busiest = now.iter().max_by_key(|one| grown(one)).copied();
                let (id, _) = busiest.filter(|one| grown(one) > 0)?;
                *self = Self::Thread { pid, id };
                core_of(pid, id)
            }
        }
    }
}

fn is_one_machine(near: SocketAddr, far: SocketAddr) -> bool {
    far.ip().is_loopback() || near.ip() == far.ip()
}

fn incoming_core(socket: BorrowedFd<'_>) -> Option<usize> {
    usize::try_from(socket_incoming_cpu(socket).ok()?).ok()
}

/// The process at the other end of a Unix socket; 0 if it is in another PID namespace, for which rustix
/// has no value.
fn peer_pid(socket: BorrowedFd<'_>) -> Option<i32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    let (number, option) = (socket.as_raw_fd(), libc::SO_PEERCRED);
    // SAFETY: the kernel writes at most `length` bytes into `peer`, which has that size.
    let status = unsafe {
        let place = (&raw mut peer).cast();
        libc::getsockopt(number, libc::SOL_SOCKET, option, place, &raw mut length)
    };
    (status == 0).then_some(peer.pid)
}

/// CPU time of each thread of a process, ns, as far as the system tells.
fn worked_ns(pid: i32) -> Vec<(u32, u64)> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let ids = threads.flatten().filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| {
        let told = fs::read_to_string(format!("/proc/{pid}/task/{id}/schedstat")).ok()?;
        Some((id, told.split(' ').next()?.parse().ok()?))
    })
    .collect()
}

fn core_of(pid: i32, thread: u32) -> Option<usize> {
    let told = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    // proc(5): the name, in brackets, is the second field; the processor is the 39th.
    told.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_of_the_process_behind_a_unix_socket_is_found() {
        let (near, _far) = UnixStream::pair().unwrap();
        let mut server = Server::behind(near.as_fd(), true).unwrap();
        assert!(Server::behind(near.as_fd(), false).is_none());
        assert_eq!(server.core(), None, "the first look only counts");
        let busy = std::thread::spawn(|| {
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            let began = std::time::Instant::now();
            while began.elapsed().as_millis() < 300 {}
            u32::try_from(own).unwrap()
        });
        std::thread::sleep(std::time::Duration::from_millis(250));
        let seen = server.core();
        let own = busy.join().unwrap();
        if let Server::Thread { id, .. } = server {
            assert!(seen.is_some());
            // Other tests of this process work too.
            assert!(id == own || worked_ns(std::process::id() as i32).len() > 2);
        } else {
            assert!(seen.is_none() && worked_ns(std::process::id() as i32).is_empty());
        }
    }

    #[test]
    fn a_server_elsewhere_is_not_followed() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert!(is_one_machine(address("10.0.0.1:9"), address("10.0.0.1:3306")));
        assert!(is_one_machine(address("127.0.0.1:9"), address("127.0.0.2:3306")));
        assert!(!is_one_machine(address("10.0.0.1:9"), address("10.0.0.2:3306")));
    }
}
