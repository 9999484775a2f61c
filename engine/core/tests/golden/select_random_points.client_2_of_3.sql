prepare:         SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN (?, ?, ?)\n       \s
        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN (84658, 88580, 80259)\n       \s
        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN (70067, 84675, 91792)\n       \s
