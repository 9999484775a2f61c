prepare:         SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)\n       \s
        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN (50040, 50158, 49908, 50365, 52267, 49908, 50470, 47994, 49863, 50257)\n       \s
        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN (50384, 58169, 53458, 34219, 50320, 53039, 50419, 44985, 44359, 59137)\n       \s
