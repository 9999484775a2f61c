-- sysbench's oltp_update_index: updates of the indexed column.

require("sysbench.oltp")

function prepare_statements()
  prepare_index_updates()
end

function event()
  execute_index_updates()
  check_reconnect()
end
