"""dbdyno: put a database on the dyno. Real servers, real load, an honest verdict."""

__version__ = "0.1.0"
