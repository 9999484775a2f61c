-- Shared by sysbench's tests without a database: validators of options, lines of reports, memory for all threads.
--
-- Each thread of such a test is a thread of the system with a Lua state of its own. They share memory that `init`
-- allocates before they start.

local _, host = ...
local common = { MIB = 1024 * 1024 }

ffi.cdef [[
typedef union { char bytes[64]; int64_t aligned; } dbdyno_mutex; /* of the C library, unlocked when zero */
int pthread_mutex_lock(dbdyno_mutex *);
int pthread_mutex_unlock(dbdyno_mutex *);
int posix_memalign(void **memory, size_t alignment, size_t bytes);
char *strerror(int);
typedef struct { int64_t s, ns; } dbdyno_time;
int clock_gettime(int clock, dbdyno_time *);
]]

-- Ends the command with these lines, the first behind FATAL.
function common.refuse(text, ...)
  error(text:format(...), 0)
end

-- Prints lines of a report; sysbench's levels from 3 on have them.
function common.notice(text, ...)
  if sysbench.opt.verbosity >= 3 then
    print(text:format(...))
  end
end

-- Validators, with sysbench's words.
common.INVALID = "Invalid value for %s: %s"

function common.at_least(least, message)
  return function(name, text)
    return tonumber(text) >= least or common.refuse(message or common.INVALID, name, text)
  end
end

function common.one_of(...)
  local known = {}
  for _, word in ipairs({ ... }) do
    known[word] = true
  end
  return function(name, text)
    return known[text] or common.refuse(common.INVALID, name, text)
  end
end

-- Refuses a value that dbdyno lacks.
function common.only(wanted, option, typed)
  common.refuse("--%s: dbdyno does not do this yet\n  wanted: %s\n  found: %s\n  hint: leave the option out, or run "
    .. "this line by sysbench itself", option, wanted, typed)
end

-- Zeroed memory on a page of its own, which is never freed.
function common.memory(bytes)
  local memory = ffi.new("void *[1]")
  if ffi.C.posix_memalign(memory, 4096, bytes) ~= 0 then
    common.refuse("Failed to allocate %d bytes", bytes)
  end
  ffi.fill(memory[0], bytes)
  return memory[0]
end

-- Gives memory to all threads; `shared` returns it there.
function common.share(memory)
  host.shared[0] = ffi.cast("uintptr_t", memory)
end

function common.shared(pointer_type)
  return ffi.cast(pointer_type, host.shared[0])
end

-- Seconds of a clock that only goes forward.
function common.now_s()
  local time = ffi.new("dbdyno_time[1]")
  ffi.C.clock_gettime(1, time)
  return tonumber(time[0].s) + tonumber(time[0].ns) / 1e9
end

-- Bytes in sysbench's words.
function common.size(bytes)
  local units, at = { "B", "KiB", "MiB", "GiB", "TiB" }, 1
  while bytes >= 1024 and at < #units do
    bytes, at = bytes / 1024, at + 1
  end
  return ("%.5g%s"):format(bytes, units[at])
end

-- The reason for the last failure of a call to the system.
function common.reason()
  local errno = ffi.errno()
  return ("errno = %d (%s)"):format(errno, ffi.string(ffi.C.strerror(errno)))
end

return common
