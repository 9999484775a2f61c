-- The module of all OLTP tests: `oltp_common`, which may be a user's. That of sysbench 1.0 cannot reconnect.

require("oltp_common")

check_reconnect = check_reconnect or function() end
