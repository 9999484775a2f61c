//! Connections driven by a script, which chooses its next request after each answer.

use super::Worker;
use crate::error::Failure;
use crate::reactor::Reactor;
use crate::script::{Happening, Next, Reaction};
use crate::workload::event::StatementKind;
use std::cmp::Reverse;

/// Longest sleep of a script after the end of the run.
const SLEEP_AT_END_NS: u64 = 1_000_000_000;

/// State of an event after its start or its continuation.
pub(super) enum Drawn {
    /// A request is ready to be sent.
    Request,
    /// The event has ended.
    Over,
    /// The event continues after the script's sleep, or after its session was renewed.
    Waits,
    /// The script has left or given up: the connection is retired and runs no further event.
    Left,
}

impl<R: Reactor> Worker<'_, R> {
    /// Passes a reaction to the connection's script, and carries out its next step.
    pub(super) fn follow(&mut self, slot: usize, reaction: &Reaction<'_>) -> Result<(), Failure> {
        let next = self.connections[slot].follow(reaction);
        match self.drawn(slot, next)? {
            Drawn::Request if self.connections[slot].is_gone() => {
                let workload = self.orders.workload;
                let failure = self.connections[slot].loss(workload, "it was closed at rest");
                self.lost(slot, failure)
            }
            Drawn::Request => {
                self.connections[slot].asked_ns = self.reactor.now_ns(&self.orders.clock);
                self.send(slot)
            }
            Drawn::Over if self.connections[slot].is_leaving() => {
                self.retire(slot);
                Ok(())
            }
            Drawn::Over => {
                self.read_the_clock();
                self.complete(slot);
                self.go_on(slot)
            }
            Drawn::Waits | Drawn::Left => Ok(()),
        }
    }

    /// Carries out a script's steps up to its next request, its wait or its end.
    pub(super) fn drawn(&mut self, slot: usize, mut next: Next) -> Result<Drawn, Failure> {
        loop {
            self.book(slot);
            if self.connections[slot].has_parted() && !matches!(next, Next::Reconnects) {
                self.hang_up(slot)?;
            }
            let reaction = match next {
                Next::Request => return Ok(Drawn::Request),
                Next::Ended(counts) => {
                    self.connections[slot].counts = counts;
                    return Ok(Drawn::Over);
                }
                Next::Leaves | Next::GivenUp => {
                    if matches!(next, Next::Leaves) && !self.connections[slot].is_leaving() {
                        self.recorder.abandon();
                    }
                    self.retire(slot);
                    return Ok(Drawn::Left);
                }
                Next::Restarts if self.is_over() => {
                    self.connections[slot].begin_leaving();
                    Reaction::Leave
                }
                Next::Restarts => {
                    self.recorder.restart();
                    Reaction::GoesOn
                }
                Next::Starts => {
                    let now_ns = self.reactor.now_ns(&self.orders.clock);
                    let connection = &mut self.connections[slot];
                    connection.sent_ns = now_ns;
                    if self.pacing.is_closed() {
                        connection.due_ns = now_ns; // at a rate it has waited since it was due
                    }
                    Reaction::GoesOn
                }
                Next::Completes => {
                    self.read_the_clock();
                    self.connections[slot].counts = true;
                    self.complete(slot);
                    // The rest of the script's event is not counted as an event.
                    self.recorder.begun(self.now_ns);
                    Reaction::GoesOn
                }
                Next::Sleeps(for_ns) => {
                    self.lie_down(slot, for_ns);
                    return Ok(Drawn::Waits);
                }
                Next::Reconnects => {
                    self.renew(slot)?;
                    return Ok(Drawn::Waits);
                }
                Next::Fails(failure) => return Err(failure),
            };
            next = self.connections[slot].follow(&reaction);
        }
    }

    /// Puts the script on this connection to sleep; `wake_up` continues it.
    fn lie_down(&mut self, slot: usize, for_ns: u64) {
        let until_ns = self.reactor.now_ns(&self.orders.clock).saturating_add(for_ns);
        self.sleeping.push(Reverse((until_ns, slot)));
        if !self.connections[slot].is_leaving() {
            self.recorder.rests();
        }
    }

    /// Begins an event of the script, which may run for a while before its first request.
    pub(super) fn draw_script(&mut self, slot: usize, due_ns: u64) -> Result<Drawn, Failure> {
        let now_ns = self.reactor.now_ns(&self.orders.clock);
        self.recorder.begun(now_ns);
        let next = self.connections[slot].draw_script(due_ns, now_ns);
        let drawn = self.drawn(slot, next)?;
        match drawn {
            Drawn::Request => {
                self.connections[slot].asked_ns = self.reactor.now_ns(&self.orders.clock);
            }
            Drawn::Over => {
                self.read_the_clock();
                self.recorder.advance(self.now_ns);
            }
            Drawn::Waits | Drawn::Left => {}
        }
        Ok(drawn)
    }

    /// Lets the script end its thread, which may send requests; no event begins any more.
    pub(super) fn dismiss_script(&mut self, slot: usize) -> Result<(), Failure> {
        self.connections[slot].begin_leaving();
        self.follow(slot, &Reaction::Leave)
    }

    /// Continues the scripts at the end of their sleep. After the end of the run, long sleepers,
    /// such as terminals with thinking users, are retired instead.
    #[cold]
    pub(super) fn wake_up(&mut self) -> Result<(), Failure> {
        if self.is_over() {
            let latest_ns = self.now_ns.saturating_add(SLEEP_AT_END_NS).min(self.give_up_ns);
            for Reverse((until_ns, slot)) in std::mem::take(&mut self.sleeping) {
                if until_ns <= latest_ns {
                    self.sleeping.push(Reverse((until_ns, slot)));
                } else {
                    if !self.connections[slot].is_leaving() {
                        self.recorder.wakes(self.now_ns);
                        self.recorder.abandon();
                    }
                    self.retire(slot);
                }
            }
        }
        while let Some(&Reverse((until_ns, slot))) = self.sleeping.peek() {
            if until_ns > self.now_ns {
                break;
            }
            self.sleeping.pop();
            if !self.connections[slot].is_leaving() {
                self.recorder.wakes(self.now_ns);
            }
            self.follow(slot, &Reaction::GoesOn)?;
        }
        Ok(())
    }

    /// Records the script's own requests outside the loop and its counters, each after all events
    /// due before it.
    fn book(&mut self, slot: usize) {
        while let Some(one) = self.connections[slot].happened() {
            if one.done_ns >= self.next_ns {
                self.now_ns = self.now_ns.max(one.done_ns);
                self.fall_due();
            }
            match one.what {
                Happening::Answered(answer, is_prepared) => {
                    let kind =
                        if is_prepared { StatementKind::Execute } else { StatementKind::Query };
                    self.recorder.asked_alone(one.asked_ns);
                    self.recorder.statement(kind, one.asked_ns, one.done_ns, answer);
                }
                Happening::Refused(code) => {
                    self.recorder.asked_alone(one.asked_ns);
                    self.recorder.refused(code, one.done_ns);
                }
                Happening::Reconnected => {
                    self.recorder.asked_alone(one.asked_ns);
                    self.recorder.reconnect(one.done_ns);
                }
                Happening::Counted(counter, by) => self.recorder.counted(counter, by, one.done_ns),
            }
        }
    }
}
