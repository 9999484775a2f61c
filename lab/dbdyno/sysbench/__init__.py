"""sysbench's command line and output over the same engine; `entry` is the door."""
