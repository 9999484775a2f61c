-- sysbench's oltp_update_index: updates of the indexed column.

require("oltp_common")

function prepare_statements()
  prepare_index_updates()
end

function event()
  execute_index_updates()
  if check_reconnect then -- not in the oltp_common.lua of sysbench 1.0
    check_reconnect()
  end
end
