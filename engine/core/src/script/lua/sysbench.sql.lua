-- `sysbench.sql`: drivers, connections, statements, parameters and results.
--
-- Handles are C structures, as in sysbench, so that scripts can compare, print and inspect them alike:
-- the result of a statement without rows equals nil and is true at the same time.

local host = ...
local ffi, task = host.ffi, host.task
local ask, log, execute, serve, fill = host.ask, host.log, host.execute, host.serve, host.fill
local FATAL, ALERT = host.FATAL, host.ALERT

sysbench.sql = {
  type = {
    NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8,
    DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
  },
  error = { NONE = 0, IGNORABLE = 1, FATAL = 2 },
}
local TYPE, ERROR = sysbench.sql.type, sysbench.sql.error

local IS_INTEGER = { [TYPE.TINYINT] = true, [TYPE.SMALLINT] = true, [TYPE.INT] = true, [TYPE.BIGINT] = true }
local IS_REAL = { [TYPE.FLOAT] = true, [TYPE.DOUBLE] = true }
local IS_TEXT = { [TYPE.CHAR] = true, [TYPE.VARCHAR] = true }

local NO_RESULT = ffi.cast("sql_result *", nil)

-- By a connection's number: its result, which each answer fills in anew, and rows to be sent. Under 0 stands
-- the result of an answer without rows.
local results, bulks = { [0] = NO_RESULT }, {}

-- Results.

local Result = {}
Result.__index = Result
Result.__tostring = function()
  return "<sql_result>"
end

-- The next row as an array of texts, nil for NULL; nil behind the last one.
function Result.fetch_row(result)
  if result ~= nil and result.is_live == 0 then
    log(ALERT, "attempt to fetch row from an invalid result set")
    return nil
  elseif result == nil or result.nrows == 0 or result.nfields == 0 then
    log(ALERT, "attempt to fetch row from an empty result set")
    return nil
  end
  if result.counter >= result.nrows then
    return nil
  end
  local row = host.first_row(result.number, result.counter)
  result.counter = result.counter + 1
  return row
end

function Result.free(result)
  if result == nil or result.is_live == 0 then
    log(ALERT, "attempt to free an invalid result set")
    error("db_free_results() failed", 2)
  end
  result.is_live, result.nrows, result.nfields = 0, 0, 0
  return true
end

ffi.metatype("sql_result", Result)

-- The result of what was just answered.
local function result_of(connection)
  if task.columns == 0 then
    return NO_RESULT
  end
  return results[connection.number]
end

-- Parameters.

local Param = {}
Param.__index = Param
Param.__tostring = function()
  return "<sql_param>"
end

local FLOAT, DOUBLE, CHAR = TYPE.FLOAT, TYPE.DOUBLE, TYPE.CHAR

function Param.set(param, value)
  if value == nil then
    param.is_null = 1
    return
  end
  param.is_null = 0
  local kind = param.type
  if kind >= CHAR then
    local text = tostring(value)
    local length = math.min(#text, param.max_len)
    ffi.copy(param.buffer, text, length)
    param.data_len = length
  elseif kind == FLOAT or kind == DOUBLE then
    param.real = value
  else
    param.integer = value
  end
end

function Param.set_rand_str(param, format)
  local length = math.min(#format, param.max_len)
  param.is_null = 0
  param.data_len = length
  fill(task, format, length, param.buffer)
end

ffi.metatype("sql_param", Param)

-- Statements.

local Statement = {}
Statement.__index = Statement
Statement.__tostring = function()
  return "<sql_statement>"
end

-- What a statement's pointers lead to must not be collected while the statement lives. `sql` is there while it is
-- not prepared.
local held = {}

local PARAMS_MAX = 65535

local function check_open(connection)
  if connection.is_open == 0 then
    log(ALERT, "attempt to use an already closed connection")
    error("SQL API error", 3)
  end
end

-- Prepares a statement on the session that its connection has now. PostgreSQL is told the types of what is bound.
local function prepare(statement, sql)
  local connection = statement.connection
  task.text, task.text_len, task.statement = sql, #sql, statement
  if host.prepares then
    ask(host.PREPARE, connection)
  else
    task.op, task.connection = host.PREPARE, connection
    serve(task) -- a statement that is sent as text: nobody is asked
  end
  if task.failed ~= 0 then
    -- A connection that could not be opened again has no error of a server.
    local why = connection.sql_state ~= nil and ffi.string(connection.sql_errmsg)
    if why and host.driver == "pgsql" then
      -- The words of libpq, which end with their line; the server's have no number.
      local severity = connection.sql_errno == 0 and "ERROR:  " or ""
      log(FATAL, "PQprepare() failed: " .. severity .. why .. "\n")
    elseif why then
      log(FATAL, "mysql_stmt_prepare() failed")
      log(FATAL, string.format('MySQL error: %d "%s"', connection.sql_errno, why))
    end
    error("SQL API error", 3)
  end
  statement.on, statement.id, statement.session = connection.number, task.statement_id, connection.session
end

function Statement.bind_create(_, kind, max_len)
  if not (IS_INTEGER[kind] or IS_REAL[kind] or IS_TEXT[kind]) then
    error("Unsupported argument type: " .. tostring(kind), 2)
  end
  local length = 0
  if IS_TEXT[kind] then
    if not max_len or max_len <= 0 then
      error("Maximum length is required for CHAR and VARCHAR parameters", 2)
    end
    length = max_len
  end
  local param = ffi.new("sql_param", length + 1)
  param.type, param.max_len, param.is_null = kind, length, 1
  return param
end

function Statement.bind_param(statement, ...)
  local count = select("#", ...)
  if count == 0 then
    return nil
  end
  if count > PARAMS_MAX then
    error(string.format("%d parameters: no server takes more than %d", count, PARAMS_MAX), 2)
  end
  local own = held[statement.number]
  if not own then
    error("attempt to use an already closed statement", 2)
  end
  own.params = { ... }
  own.binds = ffi.new("sql_param *[?]", count)
  for place = 1, count do
    if own.params[place] == nil then
      error(string.format("parameter %d is nil: bind_create() makes one", place), 2)
    end
    own.binds[place - 1] = own.params[place]
  end
  statement.binds, statement.bound = own.binds, count
  if own.sql then
    local _, marks = own.sql:gsub("%?", "")
    if count ~= marks then
      log(ALERT, "wrong number of parameters in prepared statement")
      error("SQL API error", 2)
    end
    check_open(statement.connection)
    prepare(statement, own.sql)
    own.sql = nil
  end
  return 0
end

-- What `host.execute` gives for a statement that is of no session any more.
local OUTDATED = -2

-- Rows of prepared statements are not read, as in sysbench: the result tells their number alone. There is no
-- branch for answers without rows: LuaJIT would follow it from here, for each statement of the script that has none.
function Statement.execute(statement)
  local on = execute(task, statement)
  if on >= 0 then
    return results[on]
  end
  if on == OUTDATED then
    local own = statement and held[statement.number]
    if own and own.sql then
      log(ALERT, "attempt to use a statement with parameters before bind_param()")
    else
      log(ALERT, "attempt to use a statement that was closed, or prepared in an earlier session")
    end
    error("SQL API error", 2)
  end
  return statement.connection:check_error(NO_RESULT, "<prepared statement>")
end

function Statement.next_result(statement)
  if statement.session == 0 then
    error("attempt to use an already closed statement", 2)
  end
  return statement.connection:next_result()
end

function Statement.close(statement)
  if statement.session ~= 0 and statement.session == statement.connection.session then
    task.op, task.connection, task.statement = host.CLOSE, statement.connection, statement
    serve(task) -- the server does not answer, so there is nothing to wait for
  end
  statement.session, statement.bound, statement.binds = 0, 0, nil
  held[statement.number] = nil
  return 0
end

ffi.metatype("sql_statement", Statement)

-- Connections.

local Connection = {}
Connection.__index = Connection
Connection.__tostring = function()
  return "<sql_connection>"
end

-- Gives the result, or raises what the last request failed with: a table that lets the event begin
-- again for an error that is to be ignored, a text for any other.
function Connection.check_error(connection, result, sql)
  if result ~= nil or connection.error == ERROR.NONE then
    return result
  end
  if connection.sql_state == nil or connection.sql_errmsg == nil then
    error("SQL API error", 3)
  end
  local description = {
    connection = connection,
    query = sql,
    sql_errno = connection.sql_errno,
    sql_state = ffi.string(connection.sql_state),
    sql_errmsg = ffi.string(connection.sql_errmsg),
  }
  local hook = sysbench.hooks.sql_error_ignorable
  if connection.error == ERROR.IGNORABLE or (hook and hook(description)) then
    description.errcode = sysbench.error.RESTART_EVENT
    error(description, 3)
  end
  error(string.format("SQL error, errno = %d, state = '%s': %s", description.sql_errno,
    description.sql_state, description.sql_errmsg), 2)
end

-- Sends a text; true when the server did as told.
local function send(connection, sql)
  if connection.is_open == 0 then
    log(ALERT, "attempt to use an already closed connection")
    connection.error, connection.sql_state = ERROR.FATAL, nil
    return false
  end
  task.text, task.text_len = sql, #sql
  return ask(host.QUERY, connection)
end

function Connection.query(connection, sql)
  if send(connection, sql) then
    return result_of(connection)
  end
  return connection:check_error(NO_RESULT, sql)
end

function Connection.query_row(connection, sql)
  if not send(connection, sql) then
    return connection:check_error(NO_RESULT, sql)
  end
  local result = result_of(connection)
  if result == nil or result.nrows == 0 then
    return nil
  end
  return unpack(result:fetch_row(), 1, result.nfields)
end

-- All results of a text have arrived with the first one, so there is nothing to wait for.
function Connection.more_results(connection)
  return connection.is_open ~= 0 and task.more_results > 0
end

function Connection.next_result(connection)
  task.op, task.connection = host.NEXT_RESULT, connection
  serve(task)
  return result_of(connection)
end

local statements = 0

-- On PostgreSQL a statement with parameters is prepared when they are bound, as in sysbench: their types are part of
-- it. One that is `untyped`, which is dbdyno's own, leaves them to the server and is prepared at once.
function Connection.prepare(connection, sql, untyped)
  check_open(connection)
  local statement = ffi.new("sql_statement")
  statement.connection = connection
  local waits = host.driver == "pgsql" and host.prepares and not untyped and sql:find("?", 1, true)
  if not waits then
    prepare(statement, sql)
  end
  statements = statements + 1
  statement.number = statements
  held[statements] = { connection = connection, sql = waits and sql or nil }
  return statement
end

function Connection.disconnect(connection)
  if connection.is_open == 0 then
    log(ALERT, "attempt to close an already closed connection")
    return true
  end
  connection.is_open, connection.session = 0, connection.session + 1
  host.disconnect(task, connection.number)
  if task.parted == connection.number then
    connection.number = 0 -- whoever connects next takes its place
  end
  return true
end

-- The result of a connection's answers, under its number.
local function own_result(connection)
  local box = ffi.new("sql_result[1]")
  box[0].number = connection.number
  connection.result = box
  -- A pointer into the box does not keep it: the table does.
  results[connection.number], held[-connection.number] = ffi.cast("sql_result *", box), box
end

function Connection.reconnect(connection)
  local number = connection.number
  if not ask(host.RECONNECT, connection) then
    error("connection creation failed", 2)
  end
  if connection.number ~= number then
    own_result(connection)
  end
  connection.is_open = 1
  return true
end

-- Rows by the thousand: they are put together until a statement is as long as sysbench makes them.

local LONGEST = 512 * 1024

function Connection.bulk_insert_init(connection, sql)
  bulks[connection.number] = { sql = sql, rows = {}, count = 0, length = #sql }
  return true
end

local function send_rows(connection, bulk)
  if bulk.count == 0 then
    return true
  end
  local sql = bulk.sql .. table.concat(bulk.rows, ",", 1, bulk.count)
  bulk.count, bulk.length = 0, #bulk.sql
  return send(connection, sql)
end

function Connection.bulk_insert_next(connection, row)
  local bulk = bulks[connection.number]
  if not bulk then
    log(ALERT, "attempt to call bulk_insert_next() before bulk_insert_init()")
    error("db_bulk_insert_next() failed", 2)
  end
  local more = #row + (bulk.count > 0 and 2 or 1)
  if bulk.length + more > LONGEST and not send_rows(connection, bulk) then
    error("db_bulk_insert_next() failed", 2)
  end
  bulk.count = bulk.count + 1
  bulk.rows[bulk.count] = row
  bulk.length = bulk.length + #row + (bulk.count > 1 and 1 or 0)
  return true
end

function Connection.bulk_insert_done(connection)
  local bulk = bulks[connection.number]
  bulks[connection.number] = nil
  if bulk and not send_rows(connection, bulk) then
    error("db_bulk_insert_done() failed", 2)
  end
  return true
end

ffi.metatype("sql_connection", Connection)

-- Drivers.

local Driver = {}
Driver.__index = Driver
Driver.__tostring = function()
  return "<sql_driver>"
end

function Driver.name(driver)
  return ffi.string(driver.sname)
end

-- A connection that nobody refers to any more is closed.
local function forget(connection)
  local number = connection.number
  if number ~= 0 then
    results[number], bulks[number], held[-number] = nil, nil, nil
    host.forget(task, number)
  end
end

function Driver.connect(driver)
  local connection = ffi.new("sql_connection")
  connection.driver = driver
  if not ask(host.CONNECT, connection) then
    error("connection creation failed", 2)
  end
  connection.is_open = 1
  own_result(connection)
  return ffi.gc(connection, forget)
end

ffi.metatype("sql_driver", Driver)

local driver

function sysbench.sql.driver(name)
  local wanted = name or host.driver
  if wanted ~= host.driver then
    log(FATAL, string.format("invalid database driver name: '%s'", wanted))
    error("failed to initialize the DB driver", 2)
  end
  task.uses_database = 1
  driver = driver or ffi.new("sql_driver", host.driver_name)
  return driver
end
