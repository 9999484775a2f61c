-- What every template's script has; its tables and events stand in the middle.
local rand, types, ffi = sysbench.rand, sysbench.sql.type, require("ffi")
ffi.cdef("int usleep(unsigned int);")
local con, sequences, is_tried = nil, {}, false

local function is_postgres()
  return sysbench.sql.driver():name() == "pgsql"
end

-- A whole number, also beyond the 32 bits of `rand.uniform`.
local function whole(low, high)
  return low + math.floor(rand.uniform_double() * (high - low + 1))
end

local function text_of(low, high)
  return rand.string(string.rep("@", rand.uniform(low, high)))
end

-- The first words are the most frequent, as some are in a language.
local WORDS = {}
for word in ([[
  and the with for from into over under near after before without between around beside every some many few both
  red blue green white black yellow grey brown silver golden dark bright light heavy small large short long narrow wide
  quick slow early late fresh warm cold dry wet clean empty full open quiet loud soft hard sharp round flat smooth rough
  strong weak simple useful honest careful friendly local distant modern ancient
  bread butter cheese apple lemon pepper sugar salt honey coffee tea water milk soup fruit onion carrot potato rice
  house garden kitchen window door table chair lamp shelf mirror carpet cup plate spoon knife bottle basket bucket
  candle pillow blanket curtain ladder hammer needle thread button paper pencil letter book page map picture clock key
  lock river lake mountain valley forest meadow island beach stone sand cloud rain snow wind storm thunder summer winter
  spring autumn morning evening night sun moon star flower leaf root branch seed grass tree
  horse sheep goat rabbit mouse eagle sparrow spider beetle turtle whale salmon dog cat
  street bridge market station harbour castle church school library office factory village city corner square tower
  train ship boat wagon bicycle engine wheel road ticket journey traveller
  farmer baker teacher doctor sailor painter writer singer judge captain neighbour friend sister brother mother father
  child people family stranger customer owner
  carry build write read sing dance walk run jump swim climb throw catch hold lift push pull turn close
  buy sell pay send bring keep find lose share count measure mix cook wash repair paint draw plant grow cut fold break
  join wait begin finish answer ask listen speak laugh remember forget choose follow return arrive leave
  order price offer parcel delivery invoice payment account number amount total size weight colour pattern model part
  piece pair box bag roll sheet bundle report notice message question reason change choice result story word line
  hour week month year day minute moment season
]]):gmatch("%a+") do
  WORDS[#WORDS + 1] = word
end

local function words_of(low, high)
  local words = {}
  for at = 1, rand.uniform(low, high) do
    words[at] = WORDS[rand.uniform(1, rand.uniform(1, #WORDS))]
  end
  return table.concat(words, " ")
end

-- Four bits are the version, 4, and two the variant.
local function uuid_of()
  local parts = {}
  for at = 1, 8 do
    parts[at] = rand.uniform(0, 0xffff)
  end
  parts[4] = 0x4000 + parts[4] % 0x1000
  parts[5] = 0x8000 + parts[5] % 0x4000
  return string.format("%04x%04x-%04x-%04x-%04x-%04x%04x%04x", unpack(parts))
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

-- Keys that this thread inserted into a column, by its name: the last hundred.
local RECENT_MAX = 100
local recent = {}

local function remember(name, key)
  if key then
    local keys = recent[name] or { count = 0 }
    keys[keys.count % RECENT_MAX + 1] = key
    keys.count = keys.count + 1
    recent[name] = keys
  end
end

local function recent_of(name, rows)
  local keys = recent[name]
  return keys and keys[rand.uniform(1, #keys)] or rand.uniform(1, rows)
end

-- As SQL has it. `tostring` rounds to 14 digits.
local function literal(value)
  if value == nil then
    return "NULL"
  end
  if type(value) == "string" then
    return "'" .. value:gsub("'", "''") .. "'"
  end
  local short = tostring(value)
  return value % 1 ~= 0 and tonumber(short) == value and short or string.format("%.17g", value)
end

-- A value as JSON has it. A text has nothing to escape.
local function json_of(value)
  if value == nil then
    return "null"
  end
  return type(value) == "string" and '"' .. value .. '"' or literal(value)
end

local function object_of(members)
  return "{" .. table.concat(members, ", ") .. "}"
end

-- `binds` are the names of its values, their types, and lengths of texts. A PostgreSQL takes each for what its place
-- wants: a text may be a date. `key` is the name of the key of an INSERT's row, which MySQL tells by itself and
-- PostgreSQL by `returning`.
local function prepared(sql, binds, key, returning)
  if key and is_postgres() then
    if returning == "" then
      error("an INSERT with `id` must end with RETURNING and a column on PostgreSQL: " .. sql, 0)
    end
    sql = sql .. " " .. returning
  end
  local one = { sql = sql, statement = con:prepare(sql, true), binds = binds, values = {}, key = key }
  for at, bind in ipairs(binds) do
    one.values[at] = one.statement:bind_create(bind[2], bind[3])
  end
  if #binds > 0 then
    one.statement:bind_param(unpack(one.values))
  end
  return one
end

-- Values by their names, drawn once in an event and for each repetition of a statement. No local variables: LuaJIT
-- has room for 200 in a function.
local once, each = {}, {}

local function told(one, values, result)
  local literals = {}
  for at, bind in ipairs(one.binds) do
    literals[at] = literal(values[bind[1]])
  end
  local with = #literals > 0 and " with " .. table.concat(literals, ", ") or ""
  -- A statement without rows has a null pointer, which is true. The row of RETURNING is the one that was inserted.
  local has_rows = result ~= nil and not one.key
  local count = has_rows and result.nrows or con:affected_rows()
  local rows = (count == 1 and "1 row" or count .. " rows") .. (has_rows and "" or " affected")
  local key = one.key and ", id " .. literal(once[one.key]) or ""
  print("  " .. one.sql .. with .. ": " .. rows .. key)
end

local function execute(one, values)
  for at, bind in ipairs(one.binds) do
    one.values[at]:set(values[bind[1]])
  end
  local result = one.statement:execute()
  if one.key then
    local key = con:last_insert_id()
    once[one.key] = key > 0 and key or nil
  end
  if is_tried then
    told(one, values, result)
  end
end

local function say(sql)
  con:query(sql)
  if is_tried then
    print("  " .. sql)
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
  local schema = is_postgres() and "CURRENT_SCHEMA()" or "DATABASE()"
  return tonumber(connection:query_row("SELECT COUNT(*) FROM information_schema.tables"
    .. " WHERE table_schema = " .. schema .. " AND LOWER(table_name) = '" .. name:lower() .. "'")) > 0
end

-- Before any thread has a row: one that is there already ends it all.
local function make_tables()
  local connection = sysbench.sql.driver():connect()
  for _, one in ipairs(TABLES) do
    connection:query(one.create)
    for _, sql in ipairs(is_postgres() and one.serials or {}) do
      connection:query(sql)
    end
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

-- Each event in the order of the file, then drawn ones.
local function try()
  is_tried = true
  thread_init()
  for number = 1, math.max(10, #EVENTS) do
    local one = EVENTS[number] or event_of()
    print(number .. ": " .. one.name)
    one.run()
  end
  thread_done()
end

sysbench.cmdline.commands = {
  prepare = { fill_tables, sysbench.cmdline.PARALLEL_COMMAND, before = make_tables },
  try = { try },
}
