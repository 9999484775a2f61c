"""sysbench's options: table, values, grammar."""
