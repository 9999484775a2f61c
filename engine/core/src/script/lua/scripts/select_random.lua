-- The frame of sysbench's select_random_points and select_random_ranges: one SELECT with many values of `k`, drawn
-- from the thread's own part of them.

require("oltp_common")

-- Defines the test: `sql` with `count` parameters, `step` of them for each value drawn, `distance` apart.
return function(sql, count, step, distance)
  local params, least, most

  function thread_init()
    drv = sysbench.sql.driver()
    con = drv:connect()
    stmt, params = con:prepare(sql()), {}
    for place = 1, count() do
      params[place] = stmt:bind_create(sysbench.sql.type.INT)
    end
    stmt:bind_param(unpack(params))
    local part = sysbench.opt.table_size / sysbench.opt.threads
    least = part * (sysbench.tid % sysbench.opt.threads)
    most = least + part
  end

  function thread_done()
    stmt:close()
    con:disconnect()
  end

  function event()
    for place = 1, #params, step do
      local value = sysbench.rand.default(least, most)
      for offset = 0, step - 1 do
        params[place + offset]:set(value + offset * distance())
      end
    end
    stmt:execute()
  end
end
