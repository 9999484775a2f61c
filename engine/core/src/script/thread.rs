//! One thread of a script, as the engine's loop drives it: it asks for something, is told the answer, and
//! asks for the next thing, until its event is over.

use super::connections::HandedOver;
use super::database;
use super::stack::{CameBack, Thread};
use super::state::Common;
use super::state::State;
use super::task::{Happened, Op};
use super::{common, failure, ready};
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

/// What a client does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// It has a request, the last step of its event.
    Request,
    /// Its event is over; whether it counts.
    Ended(bool),
    /// It begins no event any more.
    Leaves,
    /// It begins its event again, if the run goes on.
    Restarts,
    /// Its event begins only now.
    Starts,
    /// Its event is complete; what it does until the next one belongs to none.
    Completes,
    /// It wants to be left alone for so long.
    Sleeps(u64),
    /// It wants another session in the place of its own.
    Reconnects,
    /// It gave up.
    Fails(Failure),
    /// It was given up with its event, which stays unfinished.
    GivenUp,
}

/// What a client is told.
pub(crate) enum Reaction<'a> {
    /// The server did what was asked; the number is that of a statement it prepared.
    Answered(&'a Summary, u32),
    /// The server refused.
    Refused(&'a ServerError),
    /// The connection was lost and is there again, or was renewed as asked; and whether its result sets
    /// end with OK.
    Renewed {
        /// Whether it was lost in the middle of a statement.
        was_lost: bool,
        /// As agreed in the new session.
        deprecate_eof: bool,
    },
    /// It may go on: it has slept, or its event begins again.
    GoesOn,
    /// No event is begun any more.
    Leave,
}

/// A thread of a script and its connection, if the loop has it.
pub(crate) struct ScriptThread {
    // Closed before the stack is freed on which its Lua thread rests.
    state: State,
    thread: Thread,
    /// The connection that the loop has.
    looped: Option<u32>,
    /// Whether it waits for an event, and not to be told that it is ready.
    awaits_event: bool,
    has_ended: bool,
    reply: Reply,
}

impl std::fmt::Debug for ScriptThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptThread").field("looped", &self.looped).finish_non_exhaustive()
    }
}

impl ScriptThread {
    /// Loads the script and runs `thread_init`.
    fn begin(common: &Common, number: u32, random: Random) -> Result<Self, Failure> {
        let mut state = ready(common, number, random)?;
        let thread =
            state.thread(number).map_err(|error| failure(&format!("no stack: {error}")))?;
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

    /// The run's clock reads 0 now, and from now on replies to the script's own sessions are held.
    pub(crate) fn begin_run(&mut self, clock: Clock, round_trip: Duration) {
        let caller = &mut self.state.host.caller;
        (caller.clock, caller.round_trip) = (Some(clock), round_trip);
    }

    /// Hands its connection to the loop; None unless it has exactly one.
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

    /// Whether the loop has its connection.
    pub(crate) const fn is_looped(&self) -> bool {
        self.looped.is_some()
    }

    /// Once this is set, none of the sessions that are its own waits for a server any more.
    pub(crate) fn given_up(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.state.host.caller.connections.database.is_over)
    }

    /// Whether the script has closed the connection that the loop has.
    pub(crate) fn has_parted(&self) -> bool {
        self.state.host.caller.task.parted != 0
    }

    /// Where the bytes of the answer are to be kept, if the script may read them.
    pub(crate) fn kept(&mut self) -> Option<&mut Kept> {
        if self.reply != Reply::Text {
            return None;
        }
        self.looped.map(|number| self.state.host.caller.connections.reply(number))
    }

    /// What happened next at servers, without the loop; None when all was told.
    pub(crate) fn happened(&mut self) -> Option<Happened> {
        self.state.host.caller.happened.pop_front()
    }

    /// What the script has called the event that it was asked for last.
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

    /// Tells the script what has become of its request.
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
                    let message = "Lost connection to the server during query".to_owned();
                    database::refused(host, &database::lost(message));
                }
            }
            Reaction::GoesOn => host.task.goes_on = 1,
            Reaction::Leave => return self.leave(event),
        }
        let next = self.resume();
        self.encoded(next, event)
    }

    /// Lets the script end its thread. One that has not begun an event, or is in the middle of one, asks
    /// for another event first.
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

    /// Goes on until the script asks for something.
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
                let function = ["thread_init", "thread_run", "thread_done"]
                    .get(self.state.host.caller.task.phase as usize)
                    .copied()
                    .unwrap_or("thread_run");
                return Next::Fails(failure(&format!("`{function}' function failed: {raised}")));
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

    /// The same, with the request as the event's only packet.
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

/// Runs `thread_init` of all threads of a script, some at a time, and hands their connections over if each
/// has exactly one.
///
/// # Errors
/// What the thread with the lowest number failed with, at stage `script`.
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

/// `thread_init` waits for the server most of the time.
const OPENING_THREADS: usize = 64;
