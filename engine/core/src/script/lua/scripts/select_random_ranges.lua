-- sysbench's select_random_ranges: one SELECT with a list of ranges of `k`.

local define = require("sysbench.select_random")

sysbench.cmdline.options.number_of_ranges = { "ranges of k, per event", 10 }
sysbench.cmdline.options.delta = { "from the first value of k in a range to its last", 5 }

define(function()
  local ranges = string.rep("k BETWEEN ? AND ?", sysbench.opt.number_of_ranges, " OR ")
  return "SELECT count(k) FROM sbtest1 WHERE " .. ranges
end, function() return sysbench.opt.number_of_ranges * 2 end, 2, function() return sysbench.opt.delta end)
