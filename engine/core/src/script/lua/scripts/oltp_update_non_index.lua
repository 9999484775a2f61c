-- sysbench's oltp_update_non_index: updates of a column without index.

require("sysbench.oltp")

function prepare_statements()
  prepare_non_index_updates()
end

function event()
  execute_non_index_updates()
  check_reconnect()
end
