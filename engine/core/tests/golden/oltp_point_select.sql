prepare: SELECT c FROM sbtest1 WHERE id=?
prepare: SELECT c FROM sbtest2 WHERE id=?
prepare: SELECT c FROM sbtest3 WHERE id=?
SELECT c FROM sbtest2 WHERE id=50158
SELECT c FROM sbtest3 WHERE id=52267
