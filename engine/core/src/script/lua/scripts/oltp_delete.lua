-- sysbench's oltp_delete: one DELETE of a row by its key.

require("oltp_common")

function prepare_statements()
  prepare_for_each_table("deletes")
end

function event()
  local number = sysbench.rand.uniform(1, sysbench.opt.tables)
  param[number].deletes[1]:set(sysbench.rand.default(1, sysbench.opt.table_size))
  stmt[number].deletes:execute()
  if check_reconnect then -- not in the oltp_common.lua of sysbench 1.0
    check_reconnect()
  end
end
