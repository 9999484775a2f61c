"""Stand-ins for what watches a run, and for machines that run blocks of it."""

from support import making


class Progress:
    """Keeps all it is told; `at_interval` is called with each interval, `hand_over` always."""

    def __init__(self, at_interval=lambda trial, interval: None, hand_over=lambda: None):
        self.stages, self.begun, self.ended, self.left = [], [], [], []
        self.at_interval, self.hand_over = at_interval, hand_over

    def stage(self, text):
        self.hand_over()
        self.stages.append(text)

    def note(self, text):
        self.stage(text)

    def begin(self, trial, number, total, seconds_left):
        self.hand_over()
        self.begun.append((number, total))
        self.left.append(seconds_left)

    def interval(self, trial, interval, seconds_left):
        self.hand_over()
        self.left.append(seconds_left)
        self.at_interval(trial, interval)

    def end(self, trial, measurement, seconds_left):
        self.hand_over()
        self.ended.append(measurement)
        self.left.append(seconds_left)


class SideBySide:
    """So many machines that run blocks, whose trials of 12 s are made and all begin at once."""

    def __init__(self, machines):
        self.machines = machines

    def count(self):
        return self.machines

    def run(self, context, blocks):
        while trials := blocks.next():
            for trial in trials:
                made = making.measurement(trial.system, threads=trial.cell.threads)
                context.store.append(made.model_copy(update={"trial": trial}))
                context.schedule.ended(trial)
