-- sysbench's oltp_update_non_index: updates of a column without index.

require("oltp_common")

function prepare_statements()
  prepare_non_index_updates()
end

function event()
  execute_non_index_updates()
  if check_reconnect then -- not in the oltp_common.lua of sysbench 1.0
    check_reconnect()
  end
end
