-- sysbench's oltp_point_select: one SELECT of one row by its key.

require("sysbench.oltp")

function prepare_statements()
  sysbench.opt.point_selects = 1
  prepare_point_selects()
end

function event()
  execute_point_selects()
  check_reconnect()
end
