-- `sysbench.sql`: drivers, connections, statements, parameters and results.
--
-- Handles are C structures, as in sysbench, so that scripts can compare, print and inspect them alike:
-- the result of a statement without rows equals nil and is true at the same time. Each method checks the type of
-- its handle, as a script may call it with any value.

local host = ...
local ffi, task = host.ffi, host.task
local ask, log, execute, check_text = host.ask, host.log, host.execute, host.check_text
local set_null, set_integer, set_real, set_text, set_random =
  host.set_null, host.set_integer, host.set_real, host.set_text, host.set_random
local FATAL, ALERT = host.FATAL, host.ALERT
local istype, cast, text_of = ffi.istype, ffi.cast, ffi.string
local error, tostring, tonumber, type, select, unpack = error, tostring, tonumber, type, select, unpack
local byte, format, floor = string.byte, string.format, math.floor

local result_t, param_t, statement_t, connection_t =
  ffi.typeof("sql_result"), ffi.typeof("sql_param"), ffi.typeof("sql_statement"), ffi.typeof("sql_connection")

local function wrong_handle(wanted, value, name)
  error(format("calling '%s' on bad self (%s expected, got %s)", name, wanted, type(value)), 3)
end

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

local NO_RESULT = ffi.new(result_t)

-- By a connection's number: its result, which each answer fills in anew, and rows to be sent. Under 0 stands
-- the result of an answer without rows.
local results, bulks = { [0] = NO_RESULT }, {}

-- Results.

local Result = {}
Result.__index = Result
Result.__tostring = function()
  return "<sql_result>"
end

-- Equal to nil without rows, as sysbench's pointer.
function Result.__eq(result, other)
  if istype(result_t, result) and istype(result_t, other) then
    return result.number == other.number
  end
  local number = istype(result_t, result) and result.number or other.number
  return number == 0 and (type(result) == "nil" or type(other) == "nil")
end

-- The next row as an array of texts, nil for NULL; nil behind the last one.
function Result.fetch_row(result)
  if not istype(result_t, result) then
    wrong_handle("sql_result", result, "fetch_row")
  end
  if result.number ~= 0 and result.is_live == 0 then
    log(ALERT, "attempt to fetch row from an invalid result set")
    return nil
  elseif result.nrows == 0 or result.nfields == 0 then
    log(ALERT, "attempt to fetch row from an empty result set")
    return nil
  end
  return host.next_row(result.number)
end

function Result.free(result)
  if not istype(result_t, result) then
    wrong_handle("sql_result", result, "free")
  end
  if result.is_live == 0 then
    log(ALERT, "attempt to free an invalid result set")
    error("db_free_results() failed", 2)
  end
  host.free(result)
  return true
end

ffi.metatype(result_t, Result)

-- The result of the last answer.
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
-- What C takes for a number.
local IS_NUMBER = { number = true, cdata = true, boolean = true }

function Param.set(param, value)
  if not istype(param_t, param) then
    wrong_handle("sql_param", param, "set")
  end
  if value == nil then
    set_null(param)
    return
  end
  local kind = param.type
  if kind >= CHAR then
    local text = tostring(value)
    check_text(text, 1, "set")
    set_text(param, text, #text)
  elseif not IS_NUMBER[type(value)] then
    error(format("bad argument #1 to 'set' (number expected, got %s)", type(value)), 2)
  elseif kind == FLOAT or kind == DOUBLE then
    set_real(param, value)
  else
    set_integer(param, value)
  end
end

function Param.set_rand_str(param, shape)
  if not istype(param_t, param) then
    wrong_handle("sql_param", param, "set_rand_str")
  end
  check_text(shape, 1, "set_rand_str")
  set_random(task, param, shape, #shape)
end

ffi.metatype(param_t, Param)

-- The texts of parameters; each lives as long as its parameter.
local buffers = setmetatable({}, { __mode = "k" })

-- Statements.

local Statement = {}
Statement.__index = Statement
Statement.__tostring = function()
  return "<sql_statement>"
end

-- Objects to which a statement's addresses lead, by its number, until it is closed. `sql` is there while it is not
-- prepared.
local held = {}

local PARAMS_MAX = 65535
local TEXT_MAX = 2 ^ 30

local function check_open(connection)
  if connection.is_open == 0 then
    log(ALERT, "attempt to use an already closed connection")
    error("SQL API error", 3)
  end
end

-- Prepares a statement on the session that its connection has now. PostgreSQL is told the types of the parameters
-- that are bound.
local function prepare(statement, connection, sql)
  if not ask(task, host.PREPARE, connection, statement, sql, #sql) then
    error("SQL API error", 3)
  end
end

function Statement.bind_create(_, kind, max_len)
  if not (IS_INTEGER[kind] or IS_REAL[kind] or IS_TEXT[kind]) then
    error("Unsupported argument type: " .. tostring(kind), 2)
  end
  local length, text_at = 0, 0
  local buffer
  if IS_TEXT[kind] then
    length = floor(tonumber(max_len) or 0)
    if not (length > 0 and length <= TEXT_MAX) then
      error("Maximum length is required for CHAR and VARCHAR parameters", 2)
    end
    buffer = ffi.new("char[?]", length)
    text_at = cast("uintptr_t", cast("char *", buffer))
  end
  local param = ffi.new(param_t, kind, 1, 0, 0, 0, length, text_at)
  buffers[param] = buffer
  return param
end

function Statement.bind_param(statement, ...)
  if not istype(statement_t, statement) then
    wrong_handle("sql_statement", statement, "bind_param")
  end
  local count = select("#", ...)
  if count == 0 then
    return nil
  end
  if count > PARAMS_MAX then
    error(format("%d parameters: no server takes more than %d", count, PARAMS_MAX), 2)
  end
  local own = held[statement.number]
  if not own then
    error("attempt to use an already closed statement", 2)
  end
  local params, binds = { ... }, ffi.new("sql_param *[?]", count)
  for place = 1, count do
    if not istype(param_t, params[place]) then
      error(format("parameter %d is %s: bind_create() makes one", place, type(params[place])), 2)
    end
    binds[place - 1] = params[place]
  end
  -- A hook, or the error of a finalizer, may end this between two steps: no address outlives its memory.
  host.bind(statement, nil, 0)
  own.params, own.binds = params, binds
  host.bind(statement, binds, count)
  if own.sql then
    local _, marks = own.sql:gsub("%?", "")
    if count ~= marks then
      log(ALERT, "wrong number of parameters in prepared statement")
      error("SQL API error", 2)
    end
    check_open(own.connection)
    prepare(statement, own.connection, own.sql)
    own.sql = nil
  end
  return 0
end

-- Reply of `host.execute` for a statement whose session is over.
local OUTDATED = -2

-- Rows of MySQL's prepared statements are not read, as in sysbench: the result tells their number alone. Those of
-- PostgreSQL have its binary format, as in sysbench. There is no branch for answers without rows: LuaJIT would follow
-- it from here, for each statement of the script that has none.
function Statement.execute(statement)
  if not istype(statement_t, statement) then
    wrong_handle("sql_statement", statement, "execute")
  end
  local on = execute(task, statement)
  if on >= 0 then
    return results[on]
  end
  local own = held[statement.number]
  if on == OUTDATED then
    if own and own.sql then
      log(ALERT, "attempt to use a statement with parameters before bind_param()")
    else
      log(ALERT, "attempt to use a statement that was closed, or prepared in an earlier session")
    end
    error("SQL API error", 2)
  end
  return own.connection:check_error(NO_RESULT, "<prepared statement>")
end

function Statement.next_result(statement)
  if not istype(statement_t, statement) then
    wrong_handle("sql_statement", statement, "next_result")
  end
  if statement.session == 0 then
    error("attempt to use an already closed statement", 2)
  end
  return held[statement.number].connection:next_result()
end

function Statement.close(statement)
  if not istype(statement_t, statement) then
    wrong_handle("sql_statement", statement, "close")
  end
  host.close(task, statement)
  held[statement.number] = nil
  return 0
end

ffi.metatype(statement_t, Statement)

-- Connections.

local Connection = {}
local ERROR_TEXTS = { sql_state = "state_at", sql_errmsg = "message_at" }

local function field_of(connection, name)
  local method = Connection[name]
  if method ~= nil then
    return method
  end
  local place = ERROR_TEXTS[name]
  if place and connection[place] ~= 0 then
    return text_of(cast("const char *", connection[place]))
  end
end

-- Gives the result, or raises what the last request failed with: a table that lets the event begin
-- again for an error that is to be ignored, a text for any other.
function Connection.check_error(connection, result, sql)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "check_error")
  end
  if result ~= nil or connection.error == ERROR.NONE then
    return result
  end
  local state, message = connection.sql_state, connection.sql_errmsg
  if state == nil or message == nil then
    error("SQL API error", 3)
  end
  local description = {
    connection = connection,
    query = sql,
    sql_errno = connection.sql_errno,
    sql_state = state,
    sql_errmsg = message,
  }
  local hook = sysbench.hooks.sql_error_ignorable
  if connection.error == ERROR.IGNORABLE or (hook and hook(description)) then
    description.errcode = sysbench.error.RESTART_EVENT
    error(description, 3)
  end
  error(format("SQL error, errno = %d, state = '%s': %s", description.sql_errno, state, message), 2)
end

-- Sends a text, which is a string; true when the server did as asked.
local function send(connection, sql)
  return ask(task, host.QUERY, connection, nil, sql, #sql)
end

function Connection.query(connection, sql)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "query")
  end
  check_text(sql, 1, "query")
  if send(connection, sql) then
    return result_of(connection)
  end
  return connection:check_error(NO_RESULT, sql)
end

function Connection.query_row(connection, sql)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "query_row")
  end
  check_text(sql, 1, "query_row")
  if not send(connection, sql) then
    return connection:check_error(NO_RESULT, sql)
  end
  local result = result_of(connection)
  if result.number == 0 or result.nrows == 0 then
    return nil
  end
  return unpack(result:fetch_row(), 1, result.nfields)
end

-- All results of a text have arrived with the first one, so there is nothing to wait for.
function Connection.more_results(connection)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "more_results")
  end
  return connection.is_open ~= 0 and task.more_results > 0
end

function Connection.next_result(connection)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "next_result")
  end
  ask(task, host.NEXT_RESULT, connection, nil, nil, 0)
  return result_of(connection)
end

-- dbdyno's own: the rows changed by the last statement.
function Connection.affected_rows(connection)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "affected_rows")
  end
  return tonumber(task.affected_rows)
end

-- dbdyno's own: the key that the last INSERT gave to its row, 0 without one. MySQL's answer tells it. PostgreSQL's has
-- it as a whole number in the first column of RETURNING, in binary form if the statement is prepared; this takes a row.
function Connection.last_insert_id(connection)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "last_insert_id")
  end
  if host.driver ~= "pgsql" then
    return tonumber(task.last_insert_id)
  end
  local row = task.columns > 0 and host.next_row(connection.number)
  local key = row and row[1] or ""
  if task.op == host.QUERY or not host.prepares then
    return tonumber(key) or 0
  end
  local number = 0
  for place = 1, #key do
    number = number * 256 + byte(key, place)
  end
  return number
end

local statements = 0

-- On PostgreSQL a statement with parameters is prepared when they are bound, as in sysbench: their types are part of
-- it. One that is `untyped`, which is dbdyno's own, leaves them to the server and is prepared at once.
function Connection.prepare(connection, sql, untyped)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "prepare")
  end
  check_open(connection)
  check_text(sql, 1, "prepare")
  statements = statements + 1
  local statement = ffi.new(statement_t, { number = statements })
  local waits = host.driver == "pgsql" and host.prepares and not untyped and sql:find("?", 1, true)
  if not waits then
    prepare(statement, connection, sql)
  end
  held[statement.number] = { connection = connection, sql = waits and sql or nil }
  return statement
end

function Connection.disconnect(connection)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "disconnect")
  end
  if connection.is_open == 0 then
    log(ALERT, "attempt to close an already closed connection")
  else
    host.disconnect(task, connection)
  end
  return true
end

-- Keeps the result of a connection's answers under its number.
local function keep_result(connection)
  results[connection.number] = host.result(task, connection.number)[0]
end

function Connection.reconnect(connection)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "reconnect")
  end
  if not ask(task, host.RECONNECT, connection, nil, nil, 0) then
    error("connection creation failed", 2)
  end
  keep_result(connection)
  return true
end

-- Rows by the thousand: they are put together until a statement is as long as sysbench makes them.

local LONGEST = 512 * 1024

function Connection.bulk_insert_init(connection, sql)
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "bulk_insert_init")
  end
  check_text(sql, 1, "bulk_insert_init")
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
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "bulk_insert_next")
  end
  check_text(row, 1, "bulk_insert_next")
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
  if not istype(connection_t, connection) then
    wrong_handle("sql_connection", connection, "bulk_insert_done")
  end
  local bulk = bulks[connection.number]
  bulks[connection.number] = nil
  if bulk and not send_rows(connection, bulk) then
    error("db_bulk_insert_done() failed", 2)
  end
  return true
end

ffi.metatype(connection_t, {
  __index = field_of,
  __tostring = function()
    return "<sql_connection>"
  end,
})

-- Drivers.

local Driver = { sname = host.driver }
Driver.__index = Driver
Driver.__tostring = function()
  return "<sql_driver>"
end

function Driver.name()
  return host.driver
end

-- Closes a connection without a handle.
local function forget(connection)
  bulks[connection.number] = nil
  host.forget(task, connection)
end

function Driver.connect()
  local connection = ffi.new(connection_t)
  if not ask(task, host.CONNECT, connection, nil, nil, 0) then
    error("connection creation failed", 2)
  end
  keep_result(connection)
  return ffi.gc(connection, forget)
end

ffi.metatype("sql_driver", Driver)

local driver = ffi.new("sql_driver")
Connection.driver = driver

function sysbench.sql.driver(name)
  local wanted = name or host.driver
  if wanted ~= host.driver then
    log(FATAL, format("invalid database driver name: '%s'", tostring(wanted)))
    error("failed to initialize the DB driver", 2)
  end
  task.uses_database = 1
  return driver
end
