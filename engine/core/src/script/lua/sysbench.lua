-- The table `sysbench`: random numbers, counters, hooks, histograms, reports, and the life of a thread.

local host = ...
local ffi, task = host.ffi, host.task
local draw, fill, check_text = host.draw, host.fill, host.check_text
local error = error

sysbench = {
  version = host.version,
  version_string = "sysbench " .. host.version,
  tid = host.thread,
  error = { NONE = 0, RESTART_EVENT = 1 },
  hooks = {},
}
_G.ffi = ffi

-- A line is one write, so that threads that print at once do not mix their pieces.
local stdout = io.stdout
function print(...)
  local pieces = { ... }
  for place = 1, select("#", ...) do
    pieces[place] = tostring(pieces[place])
  end
  stdout:write(table.concat(pieces, "\t") .. "\n")
end

-- Random numbers. The engine keeps the generator; one draw here is one of sysbench's.

local UNIFORM, DEFAULT, GAUSSIAN, SPECIAL, PARETO, ZIPFIAN, UNIQUE = 0, 1, 2, 3, 4, 5, 6
local UNTIL = 0xffffffff

-- Comparisons with nil cost nothing: the message of a foreign call would count the arguments of `draw`.
local function drawn(which, name)
  return function(low, high)
    if low == nil or high == nil then
      local place = low == nil and 1 or 2
      error(string.format("bad argument #%d to '%s' (cannot convert 'nil' to 'unsigned int')", place, name), 2)
    end
    return draw(task, which, low, high)
  end
end

local text_buffer, text_size = ffi.new("char[?]", 256), 256

local function random_string(format)
  check_text(format, 1, "string")
  local length = #format
  if length > text_size then
    text_buffer, text_size = ffi.new("char[?]", length), length
  end
  fill(task, format, length, text_buffer)
  return ffi.string(text_buffer, length)
end

local function random_length_string(least, most)
  assert(least <= most and most > 0, "varstring wants 0 <= min <= max and max > 0")
  local length = draw(task, UNIFORM, least, most)
  local characters = {}
  for place = 1, length do
    characters[place] = string.char(draw(task, UNIFORM, 0x30, 0x7a))
  end
  return table.concat(characters)
end

sysbench.rand = {
  default = drawn(DEFAULT, "default"),
  uniform = drawn(UNIFORM, "uniform"),
  gaussian = drawn(GAUSSIAN, "gaussian"),
  pareto = drawn(PARETO, "pareto"),
  unique = function()
    return draw(task, UNIQUE, 0, UNTIL)
  end,
  string = random_string,
  uniform_uint64 = function()
    return host.word(task)
  end,
  uniform_double = function()
    return host.real(task)
  end,
}
-- The table shows what its version has; what the other version has works too.
local of_1_0 = { special = drawn(SPECIAL, "special") }
local of_1_1 = { zipfian = drawn(ZIPFIAN, "zipfian"), varstring = random_length_string }
local is_1_0 = host.version:sub(1, 3) == "1.0"
for name, draws in pairs(is_1_0 and of_1_0 or of_1_1) do
  sysbench.rand[name] = draws
end
setmetatable(sysbench.rand, { __index = is_1_0 and of_1_1 or of_1_0 })

-- What scripts call through `ffi.C` under sysbench's names. Everything else comes from the C library.

local real_c = ffi.C

-- Ends the event that runs, if it was completed, and says whether another one is to begin.
local function more_events()
  host.yield(host.NEXT_EVENT)
  return task.goes_on ~= 0
end

-- Waiting of a script that shares its thread with others must not hold those up, also when it has closed
-- its connection.
local function is_alone()
  return task.looped == 0 and task.parted == 0
end

local function rest(microseconds)
  if is_alone() then
    return real_c.usleep(microseconds)
  end
  host.yield(host.SLEEP, microseconds)
  return 0
end

ffi.cdef "int usleep(unsigned int); unsigned int sleep(unsigned int);"

ffi.C = setmetatable({
  usleep = rest,
  sleep = function(seconds)
    if is_alone() then
      return real_c.sleep(seconds)
    end
    return rest(seconds * 1000000)
  end,
  sb_counter_inc = function(_, counter)
    host.count(task, counter, 1)
  end,
  sb_counter_add = function(_, counter, by)
    host.count(task, counter, by)
  end,
  sb_counter_val = function(_, counter)
    return host.counted(task, counter)
  end,
  sb_more_events = more_events,
  sb_event_start = function()
    host.yield(host.START_EVENT)
  end,
  sb_event_stop = function()
    host.yield(host.STOP_EVENT)
  end,
  sb_rand_default = sysbench.rand.default,
  sb_rand_uniform = sysbench.rand.uniform,
  sb_rand_gaussian = sysbench.rand.gaussian,
  sb_rand_special = drawn(SPECIAL, "sb_rand_special"),
  sb_rand_pareto = sysbench.rand.pareto,
  sb_rand_zipfian = sysbench.rand.zipfian,
  sb_rand_unique = sysbench.rand.unique,
  sb_rand_uniform_uint64 = sysbench.rand.uniform_uint64,
  sb_rand_uniform_double = sysbench.rand.uniform_double,
  sb_rand_str = function(format, out)
    local text = ffi.string(format)
    fill(task, text, #text, out)
  end,
}, { __index = function(_, name)
  return real_c[name]
end })

-- dbdyno's own: what the event that runs is called. Events of each name are counted, and their latencies kept.

local kinds = {}

function sysbench.event_kind(name)
  local kind = kinds[name]
  if kind == nil then
    check_text(name, 1, "event_kind")
    kind = host.kind(task, name, #name)
    if kind == 0 then
      error("sysbench.event_kind: wanted up to 63 letters, digits and _, and at most 256 names; found " .. name, 2)
    end
    kinds[name] = kind
  end
  task.kind = kind
end

local searchpath = package.searchpath

-- The function of a module's file.
local function load_module(name, file)
  local module, why = host.loadfile(file)
  if not module then
    error(string.format("error loading module '%s' from file '%s':\n\t%s", name, file, why), 0)
  end
  return module
end

package.loaders[2] = function(name)
  local file, why = searchpath(name, package.path)
  return file and load_module(name, file) or why
end

-- Lua looks into `package.preload` first, but a file of the user's wins over a module of ours, such as a changed
-- `oltp_common.lua`; one of a released sysbench does not. Modules of ours get `host` beside their name.

function host.offer_modules(modules)
  for name, load_ours in pairs(modules) do
    package.preload[name] = function(...)
      local file = searchpath(name, package.path)
      if not file or host.is_released(name, #name, file, #file) then
        return load_ours()(name, host)
      end
      return load_module(name, file)(...)
    end
  end
end

-- A compiled module wants Lua's functions of C from the program. The engine offers them once there is one to load.
local function offer_functions()
  local refused = host.offer_functions()
  if refused ~= nil then
    error("a compiled module cannot be loaded (" .. ffi.string(refused) .. "): use one written in Lua", 0)
  end
end

for place, root in pairs({ [3] = "^.*$", [4] = "^[^.]*" }) do -- a module's own file, and that of its root
  local find = package.loaders[place]
  package.loaders[place] = function(name)
    if not searchpath(name:match(root), package.cpath) then
      return find(name)
    end
    offer_functions()
    local done, found = pcall(find, name)
    if done then
      return found
    end
    if type(found) == "string" and found:find("undefined symbol: lua", 1, true) then
      found = found .. "\n\tit is compiled for another Lua than 5.1"
    end
    error(found, 0)
  end
end

local loadlib = package.loadlib
function package.loadlib(...)
  offer_functions()
  return loadlib(...)
end

-- A thread: what the engine runs on a stack of its own. sysbench looks `event` up anew for each event.

local RESTART_EVENT = sysbench.error.RESTART_EVENT

local function restarts(raised)
  return type(raised) == "table" and raised.errcode == RESTART_EVENT
end

-- dbdyno's own, for a `thread_run`: whether the event that raised this is to begin again; raises it anew if that
-- is not wanted.
function sysbench.event_restarts(raised)
  if not restarts(raised) then
    error(raised, 0)
  end
  if sysbench.hooks.before_restart_event then
    sysbench.hooks.before_restart_event(raised)
  end
  host.yield(host.RESTART)
  return task.goes_on ~= 0
end

local event_restarts = sysbench.event_restarts

-- One loop without another in it, which LuaJIT would not compile as one.
local function run_events(thread)
  local goes_on = more_events()
  while goes_on do
    local ok, returned = pcall(event, thread)
    if ok then
      if returned ~= nil and returned ~= false then
        return
      end
      task.completed = 1
      goes_on = more_events()
    else
      goes_on = event_restarts(returned) or more_events()
    end
  end
end

thread_run = run_events -- which scripts replace, or wrap

-- What the engine runs on a stack of its own. It waits once when the thread is ready, then for each event.
function host.thread_main(thread)
  if thread_init then
    thread_init(thread)
  end
  task.phase = 1
  host.yield(host.READY)
  thread_run(thread)
  task.phase = 2
  if thread_done then
    thread_done(thread)
  end
end

-- Latency histograms of a script's own, on sysbench's grid: `size` buckets between `least` and `most`
-- whose logarithms have equal distances.

local Histogram = {}
Histogram.__index = Histogram
Histogram.__tostring = function()
  return "<sb_histogram>"
end

sysbench.histogram = {}

function sysbench.histogram.new(size, least, most)
  local per_log = (size - 1) / (math.log(most) - math.log(least))
  return setmetatable({
    size = size, least = least, most = most, per_log = per_log, counts = {},
  }, Histogram)
end

function Histogram:update(value)
  local clamped = math.min(math.max(value, self.least), self.most)
  local bucket = math.floor((math.log(clamped) - math.log(self.least)) * self.per_log + 0.5)
  self.counts[bucket] = (self.counts[bucket] or 0) + 1
end

function Histogram:print()
  local most = 0
  for _, count in pairs(self.counts) do
    most = math.max(most, count)
  end
  if most == 0 then
    return
  end
  print("       value  ------------- distribution ------------- count")
  for bucket = 0, self.size - 1 do
    local count = self.counts[bucket]
    if count then
      local value = math.exp(bucket / self.per_log + math.log(self.least))
      local bar = string.rep("*", math.floor(count * 40 / most + 0.5))
      print(string.format("%12.3f |%-40s %d", value, bar, count))
    end
  end
end

-- Reports that a script can name as its hook.

local function rates(stat)
  local per_second = stat.time_interval > 0 and 1 / stat.time_interval or 0
  local queries = stat.reads + stat.writes + stat.other
  return {
    tps = stat.events * per_second,
    qps = queries * per_second,
    reads = stat.reads * per_second,
    writes = stat.writes * per_second,
    other = stat.other * per_second,
    errors = stat.errors * per_second,
    reconnects = stat.reconnects * per_second,
  }
end

function sysbench.report_default(stat)
  local rate = rates(stat)
  print(string.format(
    "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f"
      .. " err/s %4.2f reconn/s: %4.2f",
    stat.time_total, stat.threads_running, rate.tps, rate.qps, rate.reads, rate.writes, rate.other,
    sysbench.opt.percentile, stat.latency_pct * 1000, rate.errors, rate.reconnects))
end

function sysbench.report_csv(stat)
  local rate = rates(stat)
  print(string.format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f",
    stat.time_total, stat.threads_running, rate.tps, rate.qps, rate.reads, rate.writes, rate.other,
    stat.latency_pct * 1000, rate.errors, rate.reconnects))
end

local JSON = [[
  {
    "time": %4.0f,
    "threads": %u,
    "tps": %4.2f,
    "qps": {
      "total": %4.2f,
      "reads": %4.2f,
      "writes": %4.2f,
      "other": %4.2f
    },
    "latency": %4.2f,
    "errors": %4.2f,
    "reconnects": %4.2f
  }]]

function sysbench.report_json(stat)
  if not host.writes_json then
    io.write("[\n")
    host.writes_json = true
  else
    io.write(",\n")
  end
  local rate = rates(stat)
  io.write(string.format(JSON, stat.time_total, stat.threads_running, rate.tps, rate.qps, rate.reads,
    rate.writes, rate.other, stat.latency_pct * 1000, rate.errors, rate.reconnects))
end

-- Called before the state is closed.
function host.finish()
  if host.writes_json then
    io.write("\n]\n")
  end
end
