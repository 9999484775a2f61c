"""What may be said: measurements and plan in, verdicts out; `judgement` is the door."""
