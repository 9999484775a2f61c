-- sysbench's select_random_points: one SELECT with a list of values of `k`.

local define = require("sysbench.select_random")

sysbench.cmdline.options.random_points = { "values of k in the list", 10 }

local function count()
  return sysbench.opt.random_points
end

define(function()
  return "SELECT id, k, c, pad FROM sbtest1 WHERE k IN (" .. string.rep("?", count(), ", ") .. ")"
end, count, 1, function() return 0 end)
