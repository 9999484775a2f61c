prepare:         SELECT count(k)\n          FROM sbtest1\n          WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?
        SELECT count(k)\n          FROM sbtest1\n          WHERE k BETWEEN 84658 AND 84665 OR k BETWEEN 88580 AND 88587
        SELECT count(k)\n          FROM sbtest1\n          WHERE k BETWEEN 95501 AND 95508 OR k BETWEEN 70067 AND 70074
