-- The base of the other chunks: the structures shared with the engine, and requests to it.
--
-- Scripts get handles: C structures with constant fields, written by the engine alone. A number or a text
-- in them is harmless to read; addresses stand in them as integers. `host` collects what the chunks share,
-- out of the scripts' reach. A script may replace every global function, so chunks that pass memory to the
-- engine use locals.

local ffi = require("ffi")
local task_address, api_address, next_row, host = ...

ffi.cdef [[
typedef struct sql_driver { const uint32_t number; } sql_driver;

/* Addresses are integers here, and pointers in engine/core/src/script/task.rs. */
typedef struct sql_connection {
  const uint32_t error;
  const int32_t sql_errno;
  const uint64_t state_at; /* of sql_state; 0 without an error of a server */
  const uint64_t message_at; /* of sql_errmsg */
  const uint32_t number; /* from 1; 0 without a session */
  const uint32_t is_open;
  const uint32_t session; /* the number of sessions so far: a statement belongs to one of them */
} sql_connection;

typedef struct sql_value { const uint32_t len; const char *ptr; } sql_value;
typedef struct sql_row { void *ptr; sql_value *values; } sql_row;

/* The engine owns those of connections; they last as long as the state. */
typedef struct sql_result {
  const uint32_t counter;
  const uint32_t nrows;
  const uint32_t nfields;
  const uint32_t is_live;
  const uint32_t number; /* of its connection; 0 for the result of a statement without rows */
} sql_result;

typedef enum {
  SQL_TYPE_NONE, SQL_TYPE_TINYINT, SQL_TYPE_SMALLINT, SQL_TYPE_INT, SQL_TYPE_BIGINT, SQL_TYPE_FLOAT,
  SQL_TYPE_DOUBLE, SQL_TYPE_TIME, SQL_TYPE_DATE, SQL_TYPE_DATETIME, SQL_TYPE_TIMESTAMP, SQL_TYPE_CHAR,
  SQL_TYPE_VARCHAR
} sql_bind_type_t;

typedef enum { DB_ERROR_NONE, DB_ERROR_IGNORABLE, DB_ERROR_FATAL } sql_error_t;

typedef enum {
  SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT,
  SB_CNT_BYTES_READ, SB_CNT_BYTES_WRITTEN, SB_CNT_MAX
} sb_counter_type;

typedef struct sql_bind {
  sql_bind_type_t type;
  void *buffer;
  unsigned long *data_len;
  unsigned long max_len;
  char *is_null;
} sql_bind;

typedef struct sql_param {
  const uint32_t type;
  const uint32_t is_null;
  const int64_t integer;
  const double real;
  const uint32_t data_len;
  const uint32_t max_len;
  const uint64_t text_at; /* a buffer of `max_len` bytes */
} sql_param;

typedef struct sql_statement {
  const uint64_t connection_at;
  const uint32_t on; /* the connection's number */
  const uint32_t id;
  const uint32_t number;
  const uint32_t bound;
  const uint32_t session; /* of the connection; 0 while the statement is not prepared, and once it is closed */
  const uint64_t binds_at;
} sql_statement;

typedef struct sb_histogram { uint32_t number; } sb_histogram;

/* What is asked, and the answer. engine/core/src/script/task.rs has the same structure. */
typedef struct dbdyno_task {
  uint32_t op;
  uint32_t goes_on;
  uint32_t completed;
  uint32_t looped; /* the number of the connection that the loop has; 0 for none */
  uint32_t uses_database;
  uint32_t phase;
  sql_connection *connection;
  sql_statement *statement;
  const char *text;
  uint64_t text_len;
  double number;
  uint32_t failed;
  uint64_t affected_rows;
  uint64_t last_insert_id;
  uint64_t rows;
  uint32_t columns;
  uint32_t more_results;
  uint32_t parted; /* the number of a connection that the loop had and the script has closed */
  uint32_t kind; /* what the event is called, from 1; 0 for nothing */
} dbdyno_task;

typedef struct dbdyno_api {
  bool (*ask)(dbdyno_task *, uint32_t op, sql_connection *, sql_statement *, const char *text, uint64_t length);
  int32_t (*execute)(dbdyno_task *, sql_statement *);
  void (*wait)(dbdyno_task *, uint32_t op, double microseconds);
  void (*bind)(sql_statement *, sql_param **params, uint32_t count);
  void (*close)(dbdyno_task *, sql_statement *);
  void (*disconnect)(dbdyno_task *, sql_connection *);
  void (*forget)(dbdyno_task *, sql_connection *);
  sql_result *(*result)(dbdyno_task *, uint32_t connection);
  void (*free)(sql_result *);
  void (*set_null)(sql_param *);
  void (*set_integer)(sql_param *, int64_t);
  void (*set_real)(sql_param *, double);
  void (*set_text)(sql_param *, const char *text, uint64_t length);
  void (*set_random)(dbdyno_task *, sql_param *, const char *format, uint64_t length);
  uint32_t (*draw)(dbdyno_task *, uint32_t which, uint32_t low, uint32_t high);
  uint64_t (*word)(dbdyno_task *);
  double (*real)(dbdyno_task *);
  void (*fill)(dbdyno_task *, const char *format, uint64_t length, char *out);
  void (*count)(dbdyno_task *, uint32_t counter, int64_t by);
  uint64_t (*counted)(dbdyno_task *, uint32_t counter);
  void (*log)(dbdyno_task *, uint32_t level, const char *text, uint64_t length);
  uint32_t (*kind)(dbdyno_task *, const char *name, uint64_t length);
  bool (*has_room)(dbdyno_task *);
  bool (*is_released)(const char *name, uint64_t name_length, const char *path, uint64_t length);
  const char *(*offer_functions)(void);
  uint64_t *shared;
  void (*touch)(dbdyno_task *, uint64_t *words, uint64_t count, uint32_t operation, bool is_random);
} dbdyno_api;
]]

host.ffi = ffi
host.task = ffi.cast("dbdyno_task *", task_address)
host.next_row = next_row

local task, api = host.task, ffi.cast("dbdyno_api *", api_address)

-- Requests, numbered as in script/task.rs, where `execute` has 5 and `close` 6.
host.CONNECT, host.RECONNECT, host.QUERY, host.PREPARE = 1, 2, 3, 4
host.READY, host.NEXT_EVENT, host.RESTART, host.SLEEP = 7, 8, 9, 10
host.START_EVENT, host.STOP_EVENT, host.NEXT_RESULT = 11, 12, 13

-- Levels of log lines.
host.FATAL, host.ALERT, host.WARNING, host.NOTICE, host.DEBUG = 0, 1, 2, 3, 5

-- A function that is kept is called without making an object of its address each time.
for _, name in ipairs({ "ask", "execute", "bind", "close", "disconnect", "forget", "result", "free", "set_null",
  "set_integer", "set_real", "set_text", "set_random", "draw", "word", "real", "fill", "count", "counted", "kind",
  "is_released", "offer_functions", "touch" }) do
  host[name] = api[name]
end
host.shared = api.shared
local write_line, wait = api.log, api.wait
local error, type, tostring, find = error, type, tostring, string.find

-- Raises unless `text` is a string. Other values with a length, such as a proxy with `__len`, lead to memory of
-- another length. Names the argument of the script's call, counted as in Lua.
function host.check_text(text, place, name)
  if type(text) ~= "string" then
    error(("bad argument #%d to '%s' (string expected, got %s)"):format(place, name, type(text)), 3)
  end
end
local check_text = host.check_text

function host.log(level, text)
  check_text(text, 2, "log")
  write_line(task, level, text, #text)
end

-- Only text is loaded: nothing checks bytecode, which can write anywhere.
local load, loadfile = load, loadfile
local WRONG_MODE = "attempt to load chunk with wrong mode"

local function text_mode(mode)
  return (mode == nil or find(tostring(mode), "t", 1, true)) and "t" or ""
end

local function explained(chunk, why)
  return chunk, why == WRONG_MODE and "bytecode is not loaded, as nothing checks it: load the source" or why
end

function _G.load(chunk, name, mode, env)
  return explained(load(chunk, name, text_mode(mode), env))
end
loadstring = _G.load

function host.loadfile(file, mode, env)
  return explained(loadfile(file, text_mode(mode), env))
end
_G.loadfile = host.loadfile

function dofile(file)
  local chunk, why = host.loadfile(file)
  if not chunk then
    error(why, 0)
  end
  return chunk()
end

-- LuaJIT watches the stack of Lua, and not that of C: a function of C that calls a script which calls it again
-- would run over its end. Those that are not here take so little of it that Lua's stack ends before.
local has_room = api.has_room

local function guarded(calls_back)
  return function(...)
    if not has_room(task) then
      error("C stack overflow", 2)
    end
    return calls_back(...)
  end
end

for library, names in pairs({
  [_G] = { "collectgarbage", "dofile", "load", "loadstring", "print", "require" },
  [coroutine] = { "resume" },
  [string] = { "gsub" },
  [table] = { "sort" },
}) do
  for _, name in ipairs(names) do
    library[name] = guarded(library[name])
  end
end

local wrap = coroutine.wrap

function coroutine.wrap(...)
  return guarded(wrap(...))
end

-- LuaJIT keeps to itself what a finalizer raises. The LuaJIT of sysbench's releases raises it where the collector
-- was at work, and here the next instruction does.
local sethook, gethook = debug.sethook, debug.gethook
local has_raised = false

jit.attach(function(raised)
  if has_raised then
    return
  end
  has_raised = true
  local hook, mask, count = gethook()
  sethook(function()
    has_raised = false
    sethook(hook, mask, count)
    error(raised, 0)
  end, "", 1)
end, "errfin")

-- What is called back while LuaJIT begins to compile must not run code that is compiled.
function jit.attach()
  error("jit.attach is not for scripts: try --luajit-cmd=v", 2)
end

-- Asks for `op` and gives the engine's thread away until there is an answer: the whole stack rests, so this is a
-- call like any other, compiled with what surrounds it, and coroutines of the script's own may make it too.
function host.yield(op, microseconds)
  wait(task, op, microseconds or 0)
end
