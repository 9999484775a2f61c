-- sysbench's test `threads`: an event takes a mutex, yields the processor and gives the mutex back, over and over.

local common = require("sysbench.common")

ffi.cdef "int sched_yield(void);"

sysbench.cmdline.options = {
  ["thread-yields"] = {
    "number of yields of an event", 1000, sysbench.cmdline.ARG_INT, common.at_least(0), place = 1,
  },
  ["thread-locks"] = {
    "number of mutexes, which events take in turn", 8, sysbench.cmdline.ARG_INT, common.at_least(1), place = 2,
  },
}

local lock, unlock, yield = ffi.C.pthread_mutex_lock, ffi.C.pthread_mutex_unlock, ffi.C.sched_yield
local mutexes, locks, yields, number

function init()
  common.share(common.memory(sysbench.opt.thread_locks * ffi.sizeof("dbdyno_mutex")))
end

function thread_init(thread)
  mutexes, number = common.shared("dbdyno_mutex *"), thread
  locks, yields = sysbench.opt.thread_locks, sysbench.opt.thread_yields
end

function event()
  local mutex = mutexes + number % locks
  number = number + 1
  for _ = 1, yields do
    lock(mutex)
    yield()
    unlock(mutex)
  end
end
