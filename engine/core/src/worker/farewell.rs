//! How a connection leaves when no event is begun on it any more.

use super::{Worker, slot_number};
use crate::error::Failure;
use crate::reactor::Reactor;
use dbdyno_wire::mysql::command;

impl<R: Reactor> Worker<'_, R> {
    /// The connection's events are over: what its workload kept back is sent, unless the run was
    /// stopped, and then it rests.
    pub(super) fn leave(&mut self, slot: usize) -> Result<(), Failure> {
        let connection = &mut self.connections[slot];
        let is_mute = self.orders.control.is_over() || connection.is_gone();
        if is_mute || connection.is_leaving() || !connection.leave(self.orders.workload) {
            self.rest(slot);
            return Ok(());
        }
        connection.asked_ns = self.orders.clock.now_ns();
        self.send(slot)
    }

    pub(super) fn rest(&mut self, slot: usize) {
        self.connections[slot].rest();
        self.staying -= 1;
    }

    /// Logs out where nothing is asked, so that the server does not count an aborted client. A
    /// connection with a request in flight is only closed.
    pub(super) fn say_goodbye(&mut self) {
        let mut packet = Vec::new();
        command::quit(&mut packet);
        for (slot, connection) in self.connections.iter_mut().enumerate() {
            if !connection.is_in_flight() && !connection.is_gone() {
                let _ = self.reactor.send(slot_number(slot), connection.goodbye(&packet));
            }
        }
        let _ = self.reactor.flush();
    }
}
