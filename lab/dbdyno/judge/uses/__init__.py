"""Uses of a judgement: gate, agreement of two runs, power and the noise behind it."""
