-- What every template's script has; its tables and events stand in the middle.
local rand, types, ffi = sysbench.rand, sysbench.sql.type, require("ffi")
ffi.cdef("int usleep(unsigned int);")
local con, sequences, is_tried = nil, {}, false

local function text_of(low, high)
  return rand.string(string.rep("@", rand.uniform(low, high)))
end

-- One of `choices`; `limits` are the weights added up.
local function choice_of(choices, limits)
  local drawn = rand.uniform_double() * limits[#limits]
  for at = 1, #limits do
    if drawn < limits[at] then
      return choices[at]
    end
  end
  return choices[#choices]
end

local function next_of(name)
  local number = sequences[name]
  sequences[name] = number + math.max(sysbench.opt.threads, 1)
  return number
end

-- As SQL has it. `tostring` rounds to 14 digits.
local function literal(value)
  if type(value) == "string" then
    return "'" .. value:gsub("'", "''") .. "'"
  end
  local short = tostring(value)
  return value % 1 ~= 0 and tonumber(short) == value and short or string.format("%.17g", value)
end

-- `binds` are the names of its values, their types, and lengths of texts. A PostgreSQL takes each for what its place
-- wants: a text may be a date.
local function prepared(sql, binds)
  local one = { sql = sql, statement = con:prepare(sql, true), binds = binds, values = {} }
  for at, bind in ipairs(binds) do
    one.values[at] = one.statement:bind_create(bind[2], bind[3])
  end
  if #binds > 0 then
    one.statement:bind_param(unpack(one.values))
  end
  return one
end

local function told(sql, result, binds, values)
  local literals = {}
  for at, bind in ipairs(binds) do
    literals[at] = literal(values[bind[1]])
  end
  local with = #literals > 0 and " with " .. table.concat(literals, ", ") or ""
  -- A statement without rows has a null pointer, which is true.
  local rows = result ~= nil and string.format(": %d rows", tonumber(result.nrows)) or ""
  print("  " .. sql .. with .. rows)
end

-- Values by their names, drawn once in an event and for each repetition of a statement. No local variables: LuaJIT
-- has room for 200 in a function.
local once, each = {}, {}

local function execute(one, values)
  for at, bind in ipairs(one.binds) do
    one.values[at]:set(values[bind[1]])
  end
  local result = one.statement:execute()
  if is_tried then
    told(one.sql, result, one.binds, values)
  end
end

local function say(sql)
  con:query(sql)
  if is_tried then
    told(sql, nil, {})
  end
end

-- TABLES AND EVENTS

local function event_of()
  local drawn = rand.uniform_double() * TOTAL
  for at = 1, #EVENTS do
    drawn = drawn - EVENTS[at].weight
    if drawn < 0 then
      return EVENTS[at]
    end
  end
  return EVENTS[#EVENTS]
end

function thread_init()
  con = sysbench.sql.driver():connect()
  -- No thread begins an event before all have looked.
  for _, one in ipairs(SEQUENCES) do
    local greatest = con:query_row("SELECT COALESCE(MAX(" .. one[2] .. "), 0) FROM " .. one[1])
    sequences[one[1] .. "." .. one[2]] = tonumber(greatest or 0) + 1 + sysbench.tid
  end
  prepare_all()
end

local begun

-- After an error that is ignored this is called again: the same event begins again, and no other takes its place.
function event()
  begun = begun or event_of()
  sysbench.event_kind(begun.name)
  begun.run()
  begun = nil
end

function thread_done()
  con:disconnect()
end

-- After a deadlock the transaction is gone; after a lock that was waited for too long it is not.
function sysbench.hooks.before_restart_event()
  con:query("ROLLBACK")
end

-- Whoever rests between events is no part of their latency.
if RESTS then
  function thread_run(thread)
    while ffi.C.sb_more_events(thread) do
      local one = event_of()
      sysbench.event_kind(one.name)
      ffi.C.sb_event_start(thread)
      local ok, raised = pcall(one.run)
      while not ok do
        if not sysbench.event_restarts(raised) then
          return
        end
        ok, raised = pcall(one.run)
      end
      ffi.C.sb_event_stop(thread)
      if one.rest_us > 0 then
        ffi.C.usleep(one.rest_us)
      end
    end
  end
end

-- PostgreSQL keeps names in small letters, and so may MySQL.
local function exists(connection, name)
  local is_mysql = sysbench.sql.driver():name() == "mysql"
  local schema = is_mysql and "DATABASE()" or "CURRENT_SCHEMA()"
  return tonumber(connection:query_row("SELECT COUNT(*) FROM information_schema.tables"
    .. " WHERE table_schema = " .. schema .. " AND LOWER(table_name) = '" .. name:lower() .. "'")) > 0
end

-- Before any thread has a row: one that is there already ends it all.
local function make_tables()
  local connection = sysbench.sql.driver():connect()
  for _, one in ipairs(TABLES) do
    connection:query(one.create)
    for number, columns in ipairs(one.indexes) do
      local name = one.name .. "_" .. number
      connection:query("CREATE INDEX " .. name .. " ON " .. one.name .. " (" .. columns .. ")")
    end
  end
end

-- On another server of several a table may come later. A thread that fails ends them all.
local function fill_tables()
  local connection = sysbench.sql.driver():connect()
  local threads = math.max(sysbench.opt.threads, 1)
  local first = sysbench.tid % threads
  for _, one in ipairs(TABLES) do
    while not exists(connection, one.name) do
      ffi.C.usleep(50000)
    end
  end
  for _, one in ipairs(TABLES) do
    local share = math.ceil(one.rows / threads)
    connection:bulk_insert_init("INSERT INTO " .. one.name .. " (" .. one.columns .. ") VALUES ")
    for row = first * share + 1, math.min((first + 1) * share, one.rows) do
      connection:bulk_insert_next("(" .. one.row(row) .. ")")
    end
    connection:bulk_insert_done()
  end
end

function cleanup()
  local connection = sysbench.sql.driver():connect()
  for at = #TABLES, 1, -1 do
    connection:query("DROP TABLE IF EXISTS " .. TABLES[at].name)
  end
end

local function try()
  is_tried = true
  thread_init()
  for number = 1, 10 do
    local one = event_of()
    print(number .. ": " .. one.name)
    one.run()
  end
  thread_done()
end

sysbench.cmdline.commands = {
  prepare = { fill_tables, sysbench.cmdline.PARALLEL_COMMAND, before = make_tables },
  try = { try },
}
