-- sysbench's oltp_delete: one DELETE of a row by its key.

require("sysbench.oltp")

function prepare_statements()
  prepare_for_each_table("deletes")
end

function event()
  local number = sysbench.rand.uniform(1, sysbench.opt.tables)
  param[number].deletes[1]:set(sysbench.rand.default(1, sysbench.opt.table_size))
  stmt[number].deletes:execute()
  check_reconnect()
end
