-- The ground that the other chunks stand on: the structures shared with the engine, and how a script
-- asks the engine for something.
--
-- A request is written into `task`. Where the engine's loop drives a connection, the script waits and
-- others run, so that thousands of scripts share one thread; any other connection is served at once, by
-- a blocking call. `host` collects what the chunks share; scripts never see it.

local ffi = require("ffi")
local task_address, api_address, first_row, host = ...

ffi.cdef [[
typedef struct sql_driver { const char *sname; } sql_driver;

typedef struct sql_connection {
  uint32_t error;
  int32_t sql_errno;
  const char *sql_state;
  const char *sql_errmsg;
  sql_driver *driver;
  struct sql_result *result;
  uint32_t number; /* from 1; 0 for none */
  uint32_t is_open;
  uint32_t session; /* counts them: a statement is of one */
} sql_connection;

typedef struct sql_value { const uint32_t len; const char *ptr; } sql_value;
typedef struct sql_row { void *ptr; sql_value *values; } sql_row;

typedef struct sql_result {
  uint32_t counter;
  uint32_t nrows;
  uint32_t nfields;
  uint32_t is_live;
  uint32_t number; /* of its connection */
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

/* One parameter. Numbers stand in `integer` or `real`, text behind the structure. */
typedef struct sql_param {
  uint32_t type;
  uint32_t is_null;
  int64_t integer;
  double real;
  uint32_t data_len;
  uint32_t max_len;
  char buffer[?];
} sql_param;

typedef struct sql_statement {
  sql_connection *connection;
  uint32_t on; /* the connection's number */
  uint32_t id;
  uint32_t number;
  uint32_t bound;
  uint32_t session;
  sql_param **binds;
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
  uint64_t rows;
  uint32_t columns;
  uint32_t statement_id;
  uint32_t more_results;
  uint32_t parted; /* the number of a connection that the loop had and the script has closed */
  uint32_t kind; /* what the event is called, from 1; 0 for nothing */
} dbdyno_task;

typedef struct dbdyno_api {
  void (*serve)(dbdyno_task *);
  uint32_t (*draw)(dbdyno_task *, uint32_t which, uint32_t low, uint32_t high);
  uint64_t (*word)(dbdyno_task *);
  double (*real)(dbdyno_task *);
  void (*fill)(dbdyno_task *, const char *format, uint64_t length, char *out);
  void (*count)(dbdyno_task *, uint32_t counter, int64_t by);
  uint64_t (*counted)(dbdyno_task *, uint32_t counter);
  void (*log)(dbdyno_task *, uint32_t level, const char *text, uint64_t length);
  void (*disconnect)(dbdyno_task *, uint32_t connection);
  void (*forget)(dbdyno_task *, uint32_t connection);
  void (*wait)(dbdyno_task *);
  uint32_t (*kind)(dbdyno_task *, const char *name, uint64_t length);
  int32_t (*execute)(dbdyno_task *, sql_statement *);
  bool (*has_room)(dbdyno_task *);
} dbdyno_api;
]]

host.ffi = ffi
host.task = ffi.cast("dbdyno_task *", task_address)
host.first_row = first_row

local task, api = host.task, ffi.cast("dbdyno_api *", api_address)

-- What can be asked; script/task.rs has the same numbers, and 5 for what `execute` asks.
host.CONNECT, host.RECONNECT, host.QUERY, host.PREPARE, host.CLOSE = 1, 2, 3, 4, 6
host.READY, host.NEXT_EVENT, host.RESTART, host.SLEEP = 7, 8, 9, 10
host.START_EVENT, host.STOP_EVENT, host.NEXT_RESULT = 11, 12, 13

-- Levels of log lines.
host.FATAL, host.ALERT, host.WARNING, host.NOTICE, host.DEBUG = 0, 1, 2, 3, 5

-- A function that is kept is called without making an object of its address each time.
for _, name in ipairs({ "serve", "draw", "word", "real", "fill", "count", "counted", "disconnect",
  "forget", "wait", "kind", "execute" }) do
  host[name] = api[name]
end
local serve, write_line = host.serve, api.log

function host.log(level, text)
  write_line(task, level, text, #text)
end

-- LuaJIT watches the stack of Lua, and not that of C: a function of C that calls a script which calls it again
-- would run over its end. Those that are not here take so little of it that Lua's stack ends before.
local has_room, error = api.has_room, error

local function guarded(calls_back)
  return function(...)
    if not has_room(task) then
      error("C stack overflow", 2)
    end
    return calls_back(...)
  end
end

for library, names in pairs({
  [_G] = { "collectgarbage", "dofile", "load", "print", "require" },
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

-- Gives the engine's thread away until there is an answer: the whole stack rests, so this is a call like
-- any other, compiled with what surrounds it, and coroutines of the script's own may make it too.
local wait = host.wait

function host.yield()
  wait(task)
end

-- Asks for `op`; true when it was done. Whoever connects again after the loop's connection was closed takes
-- its place there.
function host.ask(op, connection)
  task.op = op
  task.connection = connection
  if connection.number == task.looped and task.looped ~= 0 then
    wait(task)
  elseif task.parted ~= 0 and connection.number == 0 and op <= host.RECONNECT then
    wait(task)
  else
    serve(task)
  end
  return task.failed == 0
end
