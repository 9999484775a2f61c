//! A script's thread, driven by the engine's loop: it makes a request, receives the answer, and
//! makes the next request, until its event is over.

use super::connections::HandedOver;
use super::database::{self, Caller};
use super::stack::{CameBack, Thread};
use super::state::Common;
use super::state::State;
use super::task::{Happened, Op};
use super::{common, failure, ready};
use crate::driver::Driver;
use crate::error::Failure;
use crate::random::{Random, Seeding};
use crate::spec::ScriptSpec;
use crate::time::clock::Clock;
use crate::workload::event::{Event, Reply, StatementKind};
use dbdyno_wire::kept::Kept;
use dbdyno_wire::mysql::scanner::{ServerError, Summary};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// A client's next step.
#[derive(Debug)]
pub(crate) enum Next {
    /// It has a request, the last step of its event.
    Request,
    /// Its event is over; true if it counts.
    Ended(bool),
    /// It begins no event any more.
    Leaves,
    /// It begins its event again, if the run goes on.
    Restarts,
    /// Its event begins only now.
    Starts,
    /// Its event is complete; later requests before the next event belong to no event.
    Completes,
    /// It sleeps for this time, ns.
    Sleeps(u64),
    /// It requests another session in place of its own.
    Reconnects,
    /// It failed.
    Fails(Failure),
    /// It was given up with its event, which stays unfinished.
    GivenUp,
}

/// Input to a client, the answer to its last step.
pub(crate) enum Reaction<'a> {
    /// The request succeeded; the number is a newly prepared statement's.
    Answered(&'a Summary, u32),
    /// The server refused.
    Refused(&'a ServerError),
    /// The session was replaced, after a loss or on request.
    Renewed {
        /// True if it was lost in the middle of a statement.
        was_lost: bool,
        /// True if the new session ends its result sets with OK.
        deprecate_eof: bool,
    },
    /// It may go on: its sleep is over, or its event begins or goes on.
    GoesOn,
    /// No event begins any more.
    Leave,
}

/// A thread of a script, with its connection if the loop has it.
pub(crate) struct ScriptThread {
    // Closed before the stack of its suspended Lua thread is freed.
    state: State,
    thread: Thread,
    /// The connection in the loop.
    looped: Option<u32>,
    /// True if the thread waits for its next event, and not for the start of the run.
    awaits_event: bool,
    has_ended: bool,
    reply: Reply,
}

impl std::fmt::Debug for ScriptThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptThread").field("looped", &self.looped).finish_non_exhaustive()
    }
}

impl Drop for ScriptThread {
    fn drop(&mut self) {
        if self.thread.is_suspended() {
            self.state.is_abandoned = true;
        }
    }
}

impl ScriptThread {
    /// Loads the script and runs `thread_init`.
    fn begin(common: &Common, number: u32, random: Random) -> Result<Self, Failure> {
        let mut state = ready(common, number, random)?;
        let thread = state.thread(number).map_err(|error| failure(&error))?;
        let mut thread = Self {
            state,
            thread,
            looped: None,
            awaits_event: false,
            has_ended: false,
            reply: Reply::Text,
        };
        match thread.resume() {
            Next::Fails(failure) => Err(failure),
            _ => Ok(thread),
        }
    }

    /// Starts the run's clock: from now on replies to the script's own sessions are delayed.
    pub(crate) fn begin_run(&mut self, clock: Clock, round_trip: Duration) {
        let caller = &mut self.state.host.caller;
        (caller.clock, caller.round_trip) = (Some(clock), round_trip);
    }

    /// Hands its connection to the loop; `None` unless it has exactly one.
    fn hand_over(&mut self) -> Option<HandedOver> {
        let host = &mut self.state.host.caller;
        let number = host.connections.only()?;
        let handed = host.connections.hand_over(number)?;
        self.looped = Some(number);
        host.task.looped = number;
        Some(handed)
    }

    fn has_one_connection(&self) -> bool {
        self.state.host.caller.connections.only().is_some()
    }

    /// True if the loop has its connection.
    pub(crate) const fn is_looped(&self) -> bool {
        self.looped.is_some()
    }

    /// The flag that ends every wait of its own sessions for a server.
    pub(crate) fn given_up(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.state.host.caller.connections.database.is_over)
    }

    /// True if the script has closed its connection in the loop.
    pub(crate) fn has_parted(&self) -> bool {
        self.state.host.caller.task.parted != 0
    }

    /// Buffer for the bytes of the answer, if the script may read them: all but the rows of MySQL's
    /// prepared statements.
    pub(crate) fn kept(&mut self) -> Option<&mut Kept> {
        let connections = &mut self.state.host.caller.connections;
        let is_read = match self.reply {
            Reply::Text => true,
            Reply::Binary => connections.database.spec.driver == Driver::Pgsql,
            Reply::Prepare | Reply::Rollback => false,
        };
        self.looped.filter(|_| is_read).map(|number| connections.reply(number))
    }

    /// Takes the next action outside the loop; `None` after the last.
    pub(crate) fn happened(&mut self) -> Option<Happened> {
        self.state.host.caller.happened.pop_front()
    }

    /// The script's name for its current event.
    #[inline]
    pub(crate) fn event_kind(&self) -> Option<&Arc<str>> {
        let host = &self.state.host;
        host.event_kinds.get(host.caller.task.kind.checked_sub(1)? as usize)
    }

    /// Begins an event.
    #[inline]
    pub(crate) fn draw(&mut self, event: &mut Event) -> Next {
        self.state.host.caller.task.kind = 0;
        self.state.host.caller.task.goes_on = 1;
        self.state.host.caller.task.completed = 0;
        if !self.awaits_event {
            let next = self.resume();
            if !self.awaits_event {
                return self.encoded(next, event);
            }
            self.state.host.caller.task.goes_on = 1;
        }
        self.awaits_event = false;
        let next = self.resume();
        self.encoded(next, event)
    }

    /// Passes the outcome of the script's last step to it.
    #[inline]
    pub(crate) fn follow(&mut self, reaction: &Reaction<'_>, event: &mut Event) -> Next {
        let host = &mut self.state.host.caller;
        match reaction {
            Reaction::Answered(summary, statement) => {
                database::answered(host, self.reply, summary, *statement);
            }
            Reaction::Refused(error) => {
                database::refused(host, error);
            }
            Reaction::Renewed { was_lost, deprecate_eof } => {
                let number = self.looped.unwrap_or_default();
                host.connections.renewed(number, *deprecate_eof);
                (host.task.failed, host.task.looped, host.task.parted) = (0, number, 0);
                let asked = database::connection(host);
                (asked.number, asked.is_open) = (number, 1);
                asked.session += 1;
                if *was_lost {
                    let error = database::lost(host, None);
                    database::refused(host, &error);
                }
            }
            Reaction::GoesOn => host.task.goes_on = 1,
            Reaction::Leave => return self.leave(event),
        }
        let next = self.resume();
        self.encoded(next, event)
    }

    /// Lets the script end its thread. A thread between events, or in the middle of one, requests
    /// another event first.
    fn leave(&mut self, event: &mut Event) -> Next {
        let mut next = Next::Leaves;
        for _ in 0..3 {
            if self.has_ended {
                return Next::Leaves;
            }
            self.state.host.caller.task.goes_on = 0;
            self.awaits_event = false;
            next = self.resume();
            if !matches!(next, Next::Ended(_)) {
                break;
            }
        }
        self.encoded(next, event)
    }

    /// Resumes the script until its next request.
    fn resume(&mut self) -> Next {
        match self.thread.resume() {
            CameBack::Asks => {}
            CameBack::Ended => {
                self.has_ended = true;
                return Next::Leaves;
            }
            CameBack::Raised(raised) => {
                self.has_ended = true;
                if self.given_up().load(Ordering::Relaxed) {
                    return Next::GivenUp;
                }
                let Caller { task, log, .. } = &self.state.host.caller;
                let function = ["thread_init", "thread_run", "thread_done"]
                    .get(task.phase as usize)
                    .copied()
                    .unwrap_or("thread_run");
                let words = format!("`{function}' function failed: {raised}");
                if task.phase == database::DONE {
                    log.line(0, &words); // the run is good, as in sysbench
                    return Next::Leaves;
                }
                return Next::Fails(failure(&words));
            }
        }
        let task = &self.state.host.caller.task;
        match task.op() {
            Some(Op::Query | Op::Execute | Op::Prepare) => Next::Request,
            Some(Op::Ready) => Next::Ended(false),
            Some(Op::NextEvent) => {
                let counts = task.completed != 0;
                self.awaits_event = true;
                if counts {
                    self.state.host.end_event();
                }
                Next::Ended(counts)
            }
            Some(Op::Restart) => Next::Restarts,
            Some(Op::StartEvent) => Next::Starts,
            Some(Op::StopEvent) => {
                self.state.host.end_event();
                Next::Completes
            }
            Some(Op::Connect | Op::Reconnect) => Next::Reconnects,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a negative time is none, and a longer one than centuries is cut"
            )]
            Some(Op::Sleep) => Next::Sleeps((task.number.max(0.0) * 1e3) as u64),
            Some(Op::Close | Op::NextResult) | None => {
                Next::Fails(failure("the script asked for what cannot be waited for"))
            }
        }
    }

    /// Encodes the script's request, if it has any, as the event's only packet.
    #[inline]
    fn encoded(&mut self, next: Next, event: &mut Event) -> Next {
        event.clear();
        if !matches!(next, Next::Request) {
            return next;
        }
        let host = &mut self.state.host.caller;
        self.reply = database::write_request(host, &mut event.bytes);
        let kind = match self.reply {
            Reply::Binary => StatementKind::Execute,
            Reply::Text | Reply::Prepare | Reply::Rollback => StatementKind::Query,
        };
        event.close_step(kind, self.reply);
        if let Some(kept) = self.kept() {
            kept.clear();
        }
        next
    }
}

/// Runs `thread_init` of all threads of a script, some at a time, and hands their connections over
/// if each has exactly one.
///
/// # Errors
/// The failure of the thread with the lowest number, at stage `script`.
pub(crate) fn open_threads(
    spec: &ScriptSpec,
    threads: u32,
    (seeding, seed): (Seeding, u64),
    stop: &AtomicBool,
) -> Result<Vec<(ScriptThread, Option<HandedOver>)>, Failure> {
    let common = common(spec)?;
    let randoms: Vec<Random> = seeding.streams(seed).take(threads as usize).collect();
    let next = AtomicUsize::new(0);
    let workers = randoms.len().min(OPENING_THREADS);
    let mut opened: Vec<(usize, Result<ScriptThread, Failure>)> = std::thread::scope(|scope| {
        let work = || {
            let mut own = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= randoms.len() || stop.load(Ordering::Relaxed) {
                    return own;
                }
                let number = u32::try_from(place).expect("threads are counted in 32 bits");
                let thread = ScriptThread::begin(&common, number, randoms[place].clone());
                let failed = thread.is_err();
                own.push((place, thread));
                if failed {
                    next.store(randoms.len(), Ordering::Relaxed);
                    return own;
                }
            }
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|one| one.join().expect("no panic")).collect()
    });
    opened.sort_by_key(|(place, _)| *place);
    let opened = opened.into_iter().map(|(_, thread)| thread).collect::<Result<Vec<_>, _>>()?;
    if opened.len() < randoms.len() {
        return Err(failure("stopped before all threads were ready"));
    }
    let all_loop =
        !common.spec.database.dry_run && opened.iter().all(ScriptThread::has_one_connection);
    let hand_over = |mut thread: ScriptThread| {
        let handed = if all_loop { thread.hand_over() } else { None };
        (thread, handed)
    };
    Ok(opened.into_iter().map(hand_over).collect())
}

/// Threads for `thread_init` at a time, which mostly waits for the server.
const OPENING_THREADS: usize = 64;
