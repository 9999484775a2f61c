"""The judge room: from measurements and a plan to verdicts; `judgement` is the door."""
