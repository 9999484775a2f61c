-- The functions of sysbench 0.5, which 1.0 still has: one connection for each thread, results that
-- nobody reads, options as globals.

local host = ...
local ffi = host.ffi

sysbench.db = {}
local legacy = sysbench.db

legacy.DB_ERROR_NONE, legacy.DB_ERROR_RESTART_TRANSACTION, legacy.DB_ERROR_FAILED = 0, 1, 2

thread_id = host.thread
test = host.script_path

local connection

-- Does `work`, which may raise. sysbench's old functions raise a text of their own instead.
local function attempt(name, work, ...)
  local ok, result = pcall(work, ...)
  if ok then
    return result
  end
  if type(result) == "table" and result.errcode == sysbench.error.RESTART_EVENT then
    error({ errcode = sysbench.error.RESTART_EVENT }, 0)
  end
  error(name .. "() failed", 3)
end

function legacy.connect()
  local driver = sysbench.sql.driver()
  connection = connection or driver:connect()
  db_driver = driver:name()
end

local function connected()
  if not connection then
    legacy.connect()
  end
  return connection
end

function legacy.disconnect()
  if connection then
    connection:disconnect()
  end
  connection = nil
end

-- The text of an argument, which may be a number as for Lua's own functions.
local function checked(text, name)
  if type(text) ~= "string" and type(text) ~= "number" then
    error(("bad argument #1 to '%s' (string expected, got %s)"):format(name, type(text)), 3)
  end
  return tostring(text)
end

function legacy.query(sql)
  sql = checked(sql, "db_query")
  attempt("db_query", connected().query, connection, sql)
end

function legacy.bulk_insert_init(sql)
  sql = checked(sql, "db_bulk_insert_init")
  attempt("db_bulk_insert_init", connected().bulk_insert_init, connection, sql)
end

function legacy.bulk_insert_next(row)
  row = checked(row, "db_bulk_insert_next")
  attempt("db_bulk_insert_next", connected().bulk_insert_next, connection, row)
end

function legacy.bulk_insert_done()
  attempt("db_bulk_insert_done", connected().bulk_insert_done, connection)
end

local function tostring_statement()
  return "<sql_statement>"
end

function legacy.prepare(sql)
  sql = checked(sql, "db_prepare")
  local statement = attempt("db_prepare", connected().prepare, connection, sql, true)
  return setmetatable({ statement = statement }, { __tostring = tostring_statement })
end

-- Numbers are bound as INT, all else as CHAR. Values are read from `values` again at each execution.
function legacy.bind_param(statement, values)
  local TYPE, params = sysbench.sql.type, {}
  for place, value in ipairs(values) do
    if type(value) == "number" then
      params[place] = statement.statement:bind_create(TYPE.INT)
    else
      params[place] = statement.statement:bind_create(TYPE.CHAR, math.max(#tostring(value), 1024))
    end
  end
  statement.params, statement.values = params, values
  statement.statement:bind_param(unpack(params))
end

function legacy.bind_result() end

function legacy.execute(statement)
  for place, param in ipairs(statement.params or {}) do
    param:set(statement.values[place])
  end
  local result = attempt("db_execute", statement.statement.execute, statement.statement)
  return setmetatable({ result = result }, { __tostring = function() return "<sql_result>" end })
end

function legacy.store_results() end

function legacy.free_results(result)
  if result.result ~= nil then
    result.result:free()
  end
end

function legacy.close(statement)
  statement.statement:close()
end

for name, value in pairs(legacy) do
  _G[type(value) == "function" and "db_" .. name or name] = value
end

-- What the scripts of 0.5 say of new tables, unless it is typed.
mysql_table_engine, myisam_max_rows = "innodb", 1000000

sb_rand = sysbench.rand.default
sb_rand_uniform = sysbench.rand.uniform
sb_rand_gaussian = sysbench.rand.gaussian
sb_rand_special = sysbench.rand.special
sb_rand_str = sysbench.rand.string

function sb_rnd()
  return tonumber(sysbench.rand.uniform_uint64() % 4294967296ULL)
end

-- The next value of the unique sequence that lies in low..high.
function sb_rand_uniq(low, high)
  low, high = low or 0, high or 4294967295
  local value
  repeat
    value = sysbench.rand.unique()
  until value >= low and value <= high
  return value
end
