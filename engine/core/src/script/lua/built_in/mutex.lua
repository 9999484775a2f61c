-- sysbench's test `mutex`: all threads run at the same time, and mostly to one another's mutexes. A thread has one
-- event, which takes a mutex at random --mutex-locks times, each after an empty loop.

local common = require("sysbench.common")

ffi.cdef "typedef struct { dbdyno_mutex lock; double value; char apart[56]; } dbdyno_guarded;"

sysbench.cmdline.options = {
  ["mutex-num"] = { "number of mutexes", 4096, sysbench.cmdline.ARG_INT, common.at_least(1), place = 1 },
  ["mutex-locks"] = {
    "number of mutexes that a thread takes", 50000, sysbench.cmdline.ARG_INT, common.at_least(1), place = 2,
  },
  ["mutex-loops"] = {
    "rounds of an empty loop before each", 10000, sysbench.cmdline.ARG_INT, common.at_least(0), place = 3,
  },
}

local lock, unlock, draw = ffi.C.pthread_mutex_lock, ffi.C.pthread_mutex_unlock, sysbench.rand.default
local guarded, is_done

function init()
  common.share(common.memory(sysbench.opt.mutex_num * ffi.sizeof("dbdyno_guarded")))
end

function thread_init()
  guarded = common.shared("dbdyno_guarded *")
end

function event()
  if is_done then
    return true
  end
  is_done = true
  local last, loops = sysbench.opt.mutex_num - 1, sysbench.opt.mutex_loops
  for _ = 1, sysbench.opt.mutex_locks do
    local one = guarded + draw(0, last)
    for _ = 1, loops do
    end
    lock(one.lock)
    one.value = one.value + 1
    unlock(one.lock)
  end
end
