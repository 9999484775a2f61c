"""sysbench 1.0.20's command line on dbdyno's engine: same options, same defaults, same output.

It imports nothing but the standard library and the engine, because it is weighed against a C
program: start-up time and memory are part of what users compare.
"""

from dbdyno.sysbench.entry import main

__all__ = ["main"]
