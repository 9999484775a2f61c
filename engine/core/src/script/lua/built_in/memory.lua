-- sysbench's test `memory`: an event reads or writes a block, 8 bytes at a time.

local _, host = ...
local common = require("sysbench.common")

sysbench.cmdline.options = {
  ["memory-block-size"] = {
    "size of the block of an event", "1K", sysbench.cmdline.ARG_SIZE, function(name, text)
      local bytes = tonumber(text)
      -- A power of two, as in sysbench.
      local is_right = bytes >= 8 and math.frexp(bytes) == 0.5
      return is_right or common.refuse(common.INVALID, name, text)
    end, place = 1,
  },
  ["memory-total-size"] = { "bytes to transfer by all threads", "100G", sysbench.cmdline.ARG_SIZE, place = 2 },
  ["memory-scope"] = {
    "one block for all threads, or one for each {global, local}", "global", common.one_of("global", "local"),
    place = 3,
  },
  ["memory-hugetlb"] = { "allocate from huge pages; only off", false, place = 4 },
  ["memory-oper"] = {
    "operation {read, write, none}", "write", common.one_of("read", "write", "none"), place = 5,
  },
  ["memory-access-mode"] = { "order of accesses {seq, rnd}", "seq", common.one_of("seq", "rnd"), place = 6 },
}

local OPERATIONS = { none = 0, read = 1, write = 2 }

local opt, words, count, operation, is_random, left
local touch, task = host.touch, host.task

function init()
  if sysbench.opt.memory_hugetlb then
    common.only("off", "memory-hugetlb", "on")
  end
  if sysbench.opt.memory_scope == "global" then
    common.share(common.memory(sysbench.opt.memory_block_size))
  end
end

function thread_init()
  opt = sysbench.opt
  local memory = opt.memory_scope == "global" and common.shared("void *") or common.memory(opt.memory_block_size)
  words, count = ffi.cast("uint64_t *", memory), opt.memory_block_size / 8
  left = math.floor(opt.memory_total_size / opt.memory_block_size / opt.threads)
  if opt.memory_total_size == 0 then
    left = math.huge
  end
  operation, is_random = OPERATIONS[opt.memory_oper], opt.memory_access_mode == "rnd"
end

function event()
  if left <= 0 then
    return true
  end
  left = left - 1
  touch(task, words, count, operation, is_random)
end

function sysbench.hooks.print_head()
  opt = sysbench.opt
  common.notice("Running memory speed test with the following options:\n  block size: %dKiB\n  total size: %dMiB\n"
    .. "  operation: %s\n  scope: %s\n", opt.memory_block_size / 1024, opt.memory_total_size / common.MIB,
    opt.memory_oper, opt.memory_scope)
end

function sysbench.hooks.report_intermediate(stat)
  local bytes = stat.events * sysbench.opt.memory_block_size
  common.notice("[ %.0fs ] %4.2f MiB/sec", stat.time_total, bytes / common.MIB / stat.time_interval)
end

function sysbench.hooks.print_results(stat)
  common.notice("Total operations: %d (%8.2f per second)\n", stat.events, stat.events / stat.time_interval)
  if sysbench.opt.memory_oper ~= "none" then
    local mebibytes = stat.events * sysbench.opt.memory_block_size / common.MIB
    common.notice("%4.2f MiB transferred (%4.2f MiB/sec)\n", mebibytes, mebibytes / stat.time_interval)
  end
end
