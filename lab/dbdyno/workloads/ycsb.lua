#!/usr/bin/env -S dbdyno sysbench
-- The core workloads A to F of YCSB (Cooper et al., "Benchmarking cloud serving systems with YCSB", 2010) on one
-- table of ten fields. Which rows are touched is drawn as in YCSB: scrambled zipfian with 0.99, for D the latest.
--
--   prepare   creates and fills the table, rows spread over --threads
--   run       one event is one operation of --workload
--   cleanup   drops the table

sysbench.cmdline.options = {
  workload = { "A updates half, B some, C none; D reads the latest, E scans, F reads and writes back", "A" },
  records = { "rows of a new table", 100000 },
  field_length = { "characters of each of the ten fields", 100 },
  scan_length = { "rows of a scan at most", 100 },
}

-- Shares of the operations, in percent, in an order that is the same in each run.
local MIXES = {
  A = { { "read", 50 }, { "update", 50 } },
  B = { { "read", 95 }, { "update", 5 } },
  C = { { "read", 100 } },
  D = { { "read", 95 }, { "insert", 5 }, inserts = true, draws_latest = true },
  E = { { "scan", 95 }, { "insert", 5 }, inserts = true },
  F = { { "read", 50 }, { "read_modify_write", 50 } },
}

local FIELDS = 10
local uniform, real = sysbench.rand.uniform, sysbench.rand.uniform_double

-- A zipfian rank from 0 (Gray et al., "Quickly generating billion-record synthetic databases", 1994).
local THETA = 0.99

local function zeta(count)
  local sum = 0
  for rank = 1, count do
    sum = sum + 1 / rank ^ THETA
  end
  return sum
end

local function zipfian(count, zeta_of_count)
  local alpha, second = 1 / (1 - THETA), 1 + 0.5 ^ THETA
  local eta = (1 - (2 / count) ^ (1 - THETA)) / (1 - second / zeta_of_count)
  return function()
    local u = real()
    local scaled = u * zeta_of_count
    if scaled < 1 then
      return 0
    elseif scaled < second then
      return 1
    end
    return math.floor(count * (eta * u - eta + 1) ^ alpha)
  end
end

-- YCSB draws from ten thousand million ranks, whose zeta it knows, and scatters them by FNV-1 over the rows.
local popular = zipfian(1e10, 26.46902820178302)

local function scattered(rank)
  local hash, rest = 0xCBF29CE484222325ULL, ffi.new("uint64_t", rank)
  for _ = 1, 8 do
    hash = bit.bxor(hash, bit.band(rest, 0xffULL)) * 1099511628211ULL
    rest = bit.rshift(rest, 8)
  end
  return tonumber(hash % ffi.new("uint64_t", sysbench.opt.records))
end

local function key(number)
  return string.format("user%012d", number)
end

local LETTERS = string.rep("@", 10000)

local function value()
  return sysbench.rand.string(LETTERS:sub(1, sysbench.opt.field_length))
end

local function values()
  local all = {}
  for field = 1, FIELDS do
    all[field] = value()
  end
  return table.concat(all, "','")
end

-- Rows that this thread has inserted, each with a number that no other thread uses, behind those of earlier runs.
local first_new, inserted = nil, 0

local function newest()
  return first_new + sysbench.tid + inserted * sysbench.opt.threads
end

local latest

-- For the latest: its own rows, the last one first, then those of the load. Of the rows of others it knows nothing.
local function any_row()
  local records = sysbench.opt.records
  if mix.draws_latest then
    latest = latest or zipfian(records, zeta(records))
    local rank = latest()
    if rank < inserted then
      return newest() - (rank + 1) * sysbench.opt.threads
    end
    return math.max(records - 1 - (rank - inserted), 0)
  end
  return scattered(popular())
end

local OPERATIONS = {
  read = function()
    con:query("SELECT * FROM usertable WHERE ycsb_key = '" .. key(any_row()) .. "'")
  end,
  update = function()
    con:query(string.format("UPDATE usertable SET field%d = '%s' WHERE ycsb_key = '%s'", uniform(0, FIELDS - 1),
      value(), key(any_row())))
  end,
  insert = function()
    con:query(string.format("INSERT INTO usertable VALUES ('%s','%s')", key(newest()), values()))
    inserted = inserted + 1
  end,
  scan = function()
    con:query(string.format("SELECT * FROM usertable WHERE ycsb_key >= '%s' ORDER BY ycsb_key LIMIT %d",
      key(any_row()), uniform(1, sysbench.opt.scan_length)))
  end,
  read_modify_write = function()
    local row = key(any_row())
    con:query("SELECT * FROM usertable WHERE ycsb_key = '" .. row .. "'")
    con:query(string.format("UPDATE usertable SET field%d = '%s' WHERE ycsb_key = '%s'", uniform(0, FIELDS - 1),
      value(), row))
  end,
}

-- What the running event is counted as; sysbench has no such function.
local event_kind = sysbench.event_kind or function() end

function thread_init()
  mix = MIXES[sysbench.opt.workload:upper()]
  if mix == nil then
    error("--workload is one of A, B, C, D, E and F, not " .. sysbench.opt.workload, 0)
  end
  con = sysbench.sql.driver():connect()
  if mix.inserts then
    -- No thread begins an event before all have looked.
    local greatest = con:query_row("SELECT MAX(ycsb_key) FROM usertable")
    first_new = math.max(sysbench.opt.records, greatest and tonumber(greatest:sub(5)) + 1 or 0)
  end
end

function event()
  local drawn = uniform(1, 100)
  for _, one in ipairs(mix) do
    local name, share = one[1], one[2]
    if drawn <= share then
      event_kind(name)
      return OPERATIONS[name]()
    end
    drawn = drawn - share
  end
end

ffi.cdef("int usleep(unsigned int);")

-- PostgreSQL refuses two that create one table at the same time, so one does and the others wait.
local function create_table(connection)
  local is_mysql = sysbench.sql.driver():name() == "mysql"
  local schema = is_mysql and "DATABASE()" or "CURRENT_SCHEMA()"
  if sysbench.tid % math.max(sysbench.opt.threads, 1) == 0 then
    local fields = {}
    for field = 0, FIELDS - 1 do
      fields[field + 1] = string.format("field%d VARCHAR(%d) NOT NULL", field, sysbench.opt.field_length)
    end
    connection:query("CREATE TABLE IF NOT EXISTS usertable (ycsb_key VARCHAR(64) NOT NULL PRIMARY KEY, "
      .. table.concat(fields, ", ") .. ")")
  end
  while tonumber(connection:query_row("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = "
    .. schema .. " AND table_name = 'usertable'")) == 0 do
    ffi.C.usleep(50000)
  end
end

local function prepare_ycsb()
  local connection = sysbench.sql.driver():connect()
  create_table(connection)
  local step = math.max(sysbench.opt.threads, 1)
  local share = math.ceil(sysbench.opt.records / step)
  local first = (sysbench.tid % step) * share
  -- Another of YCSB's workloads of the same plan may have made them.
  if tonumber(connection:query_row("SELECT COUNT(*) FROM usertable WHERE ycsb_key = '" .. key(first) .. "'")) > 0 then
    return
  end
  connection:bulk_insert_init("INSERT INTO usertable VALUES ")
  for number = first, math.min(first + share, sysbench.opt.records) - 1 do
    connection:bulk_insert_next(string.format("('%s','%s')", key(number), values()))
  end
  connection:bulk_insert_done()
end

function cleanup()
  sysbench.sql.driver():connect():query("DROP TABLE IF EXISTS usertable")
end

sysbench.cmdline.commands = { prepare = { prepare_ycsb, sysbench.cmdline.PARALLEL_COMMAND } }

function thread_done()
  con:disconnect()
end
