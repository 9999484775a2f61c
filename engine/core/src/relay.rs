//! Simulated network between two servers: forwards connections to another port with a delay.
//!
//! Bytes are held, not slowed down: per direction, a thread reads arrivals and another sends due
//! bytes, so any number of messages may be on their way. The delay of a byte counts from its
//! arrival in the kernel, so a late wake-up of the reading thread on busy cores does not add to it.

use crate::time::clock::make_timers_exact;
use std::io::{self, Write};
use std::mem;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Largest read, and number of such pieces held per direction. Beyond it the sender blocks, as with
/// any full buffer.
const PIECE_BYTES: usize = 64 * 1024;
const PIECES_MAX: usize = 1024;
/// Step and maximum of the expected lateness of a sleep.
const LATENESS_STEP: Duration = Duration::from_micros(1);
const LATENESS_MAX: Duration = Duration::from_micros(100);
/// Room for a timestamp and its header.
const CONTROL_WORDS: usize = 8;
/// Pause after an accept without resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Listener and target of its connections.
#[derive(Debug)]
pub struct Relay {
    listener: TcpListener,
    target: SocketAddr,
    delay: Duration,
}

/// Received bytes and their due time; empty at the end of the stream.
struct Held {
    due: Instant,
    bytes: Vec<u8>,
}

impl Relay {
    /// Forwards connections from `listener` to `target`, half of the round trip in each direction.
    #[must_use]
    pub fn new(listener: TcpListener, target: SocketAddr, round_trip: Duration) -> Self {
        Self { listener, target, delay: round_trip / 2 }
    }

    /// Forwards connections for ever.
    pub fn serve(&self) {
        loop {
            let Ok((client, _)) = self.listener.accept() else {
                thread::sleep(ACCEPT_PAUSE);
                continue;
            };
            let (target, delay) = (self.target, self.delay);
            // An unreachable server closes the connection, as it would by itself.
            thread::spawn(move || pass_on(client, target, delay));
        }
    }
}

fn pass_on(client: TcpStream, target: SocketAddr, delay: Duration) -> io::Result<()> {
    let server = TcpStream::connect(target)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        stamp_arrivals(stream);
    }
    let (client, server) = (Arc::new(client), Arc::new(server));
    for (from, to) in [(&client, &server), (&server, &client)] {
        let (sender, held) = sync_channel(PIECES_MAX);
        let ends = (Arc::clone(from), Arc::clone(to));
        thread::spawn(move || {
            hold(&ends.0, delay, &sender).unwrap_or_else(|_| hang_up(&ends));
        });
        let ends = (Arc::clone(from), Arc::clone(to));
        thread::spawn(move || send_due(&ends.1, &held).unwrap_or_else(|_| hang_up(&ends)));
    }
    Ok(())
}

/// Closes both ends after one broke, so that both threads of each direction end.
fn hang_up((from, to): &(Arc<TcpStream>, Arc<TcpStream>)) {
    for stream in [from, to] {
        // It may be closed already.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Reads arrivals until the stream ends.
fn hold(from: &TcpStream, delay: Duration, held: &SyncSender<Held>) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let (count, age) = match receive(from, &mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            received => received?,
        };
        let due = Instant::now() + delay.saturating_sub(age);
        let bytes = buffer[..count].to_vec();
        if held.send(Held { due, bytes }).is_err() || count == 0 {
            return Ok(()); // nobody sends any more, or nothing more comes
        }
    }
}

/// Sends due bytes until the stream ends. Sleeps are shortened by their median lateness, tracked in
/// small steps: a sleep far too late on a busy core moves it no more than any other.
fn send_due(mut to: &TcpStream, held: &Receiver<Held>) -> io::Result<()> {
    make_timers_exact();
    let mut lateness = Duration::ZERO;
    for Held { due, bytes } in held {
        let now = Instant::now();
        if now < due {
            thread::sleep(due.saturating_duration_since(now + lateness));
            lateness = if Instant::now() > due {
                (lateness + LATENESS_STEP).min(LATENESS_MAX)
            } else {
                lateness.saturating_sub(LATENESS_STEP)
            };
        }
        if bytes.is_empty() {
            return to.shutdown(Shutdown::Write);
        }
        to.write_all(&bytes)?;
    }
    Ok(())
}

/// Requests kernel timestamps of arrivals; without them bytes count from their reading.
fn stamp_arrivals(stream: &TcpStream) {
    let on: libc::c_int = 1;
    let length = libc::socklen_t::try_from(size_of_val(&on)).expect("4 bytes");
    // SAFETY: the option is an int, which lives through the call.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            length,
        );
    }
}

/// Waits for bytes; returns their number, 0 at the end of the stream, and their age.
fn receive(from: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, Duration)> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut pieces = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all fields of the header may be zero.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut pieces;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: the header points at memory that lives through the call.
    let count = unsafe { libc::recvmsg(from.as_raw_fd(), &raw mut message, 0) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    let arrived = stamp(&message).map_or_else(SystemTime::now, |it| SystemTime::UNIX_EPOCH + it);
    // A wall clock set back meanwhile gives age 0.
    Ok((count, arrived.elapsed().unwrap_or_default()))
}

/// Arrival time among the control messages, since 1970.
fn stamp(message: &libc::msghdr) -> Option<Duration> {
    // SAFETY: the kernel has filled in the header and what it points at; a message of this kind holds a timespec.
    let time = unsafe {
        let header = libc::CMSG_FIRSTHDR(message).as_ref()?;
        let is_stamp =
            header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_TIMESTAMPNS;
        is_stamp.then(|| libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned())?
    };
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}
