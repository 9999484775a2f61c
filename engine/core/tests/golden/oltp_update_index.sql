prepare: UPDATE sbtest1 SET k=k+1 WHERE id=?
prepare: UPDATE sbtest2 SET k=k+1 WHERE id=?
prepare: UPDATE sbtest3 SET k=k+1 WHERE id=?
UPDATE sbtest2 SET k=k+1 WHERE id=50158
UPDATE sbtest3 SET k=k+1 WHERE id=52267
