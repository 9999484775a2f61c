prepare: DELETE FROM sbtest1 WHERE id=?
prepare: DELETE FROM sbtest2 WHERE id=?
prepare: DELETE FROM sbtest3 WHERE id=?
DELETE FROM sbtest2 WHERE id=50158
DELETE FROM sbtest3 WHERE id=52267
