-- sysbench's oltp_insert: one INSERT of a row, as text. Tables whose ids the client draws begin empty.

require("sysbench.oltp")

sysbench.cmdline.commands.prepare = {
  function()
    if not sysbench.opt.auto_inc then
      sysbench.opt.table_size = 0
    end
    cmd_prepare()
  end,
  sysbench.cmdline.PARALLEL_COMMAND,
}

function prepare_statements() end

function event()
  local name = "sbtest" .. sysbench.rand.uniform(1, sysbench.opt.tables)
  local k = sysbench.rand.default(1, sysbench.opt.table_size)
  local c, pad = get_c_value(), get_pad_value()
  if sysbench.opt.auto_inc and drv:name() == "pgsql" then
    con:query(string.format("INSERT INTO %s (k, c, pad) VALUES (%d, '%s', '%s')", name, k, c, pad))
  else
    local id = sysbench.opt.auto_inc and 0 or sysbench.rand.unique() - 2147483648
    con:query(string.format("INSERT INTO %s (id, k, c, pad) VALUES (%d, %d, '%s', '%s')", name, id, k, c, pad))
  end
  check_reconnect()
end
