-- sysbench's oltp_point_select: one SELECT of one row by its key.

require("oltp_common")

function prepare_statements()
  sysbench.opt.point_selects = 1
  prepare_point_selects()
end

function event()
  execute_point_selects()
  if check_reconnect then -- not in the oltp_common.lua of sysbench 1.0
    check_reconnect()
  end
end
