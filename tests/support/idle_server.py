"""A server of an instance's tests that is no process: whether it runs is only remembered."""

import signal


class IdleServer:
    """Runs from the start; ends when it is stopped (cleanly) or killed."""

    pid = 4242
    stop_signal = signal.SIGTERM

    def __init__(self):
        self.running, self.stopped_cleanly, self.kills = True, False, 0

    def alive(self):
        return self.running

    def stop(self):
        self.running, self.stopped_cleanly = False, True

    def kill(self):
        self.running, self.kills = False, self.kills + 1
