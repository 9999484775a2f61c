-- What sysbench's OLTP scripts share, for scripts that say require("oltp_common"): options, tables, and
-- for each kind of statement how it is prepared and run. The names are part of what such scripts use.

function init()
  assert(event ~= nil,
    "this script is meant to be included by other OLTP scripts and should not be called directly.")
end

local is_1_1 = sysbench.version:sub(1, 3) == "1.1"

if sysbench.cmdline.command == nil then
  error("Command is required. Supported commands: prepare, " .. (is_1_1 and "warmup" or "prewarm")
    .. ", run, cleanup, help")
end

sysbench.cmdline.options = {
  table_size = { "rows of a table", 10000 },
  range_size = { "rows of a range", 100 },
  tables = { "number of tables", 1 },
  point_selects = { "SELECT of one row by its key, per event", 10 },
  simple_ranges = { "SELECT over a range, per event", 1 },
  sum_ranges = { "SELECT SUM over a range, per event", 1 },
  order_ranges = { "SELECT with ORDER BY over a range, per event", 1 },
  distinct_ranges = { "SELECT DISTINCT over a range, per event", 1 },
  index_updates = { "UPDATE of the indexed column, per event", 1 },
  non_index_updates = { "UPDATE of a column without index, per event", 1 },
  delete_inserts = { "DELETE and INSERT of one row, pairs per event", 1 },
  range_selects = { "off leaves out all four kinds of ranges", true },
  auto_inc = { "let the server number the rows of a new table", true },
  create_table_options = { "end of CREATE TABLE", "" },
  skip_trx = { "no BEGIN and COMMIT: every statement commits by itself", false },
  secondary = { "give a new table KEY (id) in place of PRIMARY KEY (id)", false },
  reconnect = { "connect again after every N events", 0 },
  create_secondary = { "index column k after the load", true },
  mysql_storage_engine = { "storage engine of a new table", "innodb" },
  pgsql_variant = { "without effect here, as in sysbench", nil, sysbench.cmdline.ARG_STRING },
}

-- Calls `work` for each table of this thread, in parallel commands those of its own number.
local function each_own_table(work)
  local driver = sysbench.sql.driver()
  local connection = driver:connect()
  local step = math.max(sysbench.opt.threads, 1)
  for number = sysbench.tid % step + 1, sysbench.opt.tables, step do
    work(driver, connection, number)
  end
end

function cmd_prepare()
  each_own_table(create_table)
end

local function warm_up(driver, connection, number)
  assert(driver:name() == "mysql", "only MySQL's tables are read into memory")
  local name = "sbtest" .. number
  print((is_1_1 and "Preloading" or "Prewarming") .. " table " .. name)
  connection:query("ANALYZE TABLE " .. name)
  connection:query(string.format(
    "SELECT AVG(id) FROM (SELECT * FROM %s FORCE KEY (PRIMARY) LIMIT %u) t", name,
    sysbench.opt.table_size))
  connection:query(string.format(
    "SELECT COUNT(*) FROM (SELECT * FROM %s WHERE k LIKE '%%0%%' LIMIT %u) t", name,
    sysbench.opt.table_size))
end

function cmd_prewarm()
  each_own_table(function(driver, connection, number)
    connection:query("SET tmp_table_size=2*1024*1024*1024")
    connection:query("SET max_heap_table_size=2*1024*1024*1024")
    warm_up(driver, connection, number)
  end)
end

cmd_warmup = cmd_prewarm

sysbench.cmdline.commands = {
  prepare = { cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND },
  prewarm = { cmd_prewarm, sysbench.cmdline.PARALLEL_COMMAND },
}
if is_1_1 then
  sysbench.cmdline.commands.warmup = { cmd_warmup, sysbench.cmdline.PARALLEL_COMMAND }
end

-- Ten groups of eleven digits, and five.
local C_FORMAT = string.rep("###########", 10, "-")
local PAD_FORMAT = string.rep("###########", 5, "-")

function get_c_value()
  return sysbench.rand.string(C_FORMAT)
end

function get_pad_value()
  return sysbench.rand.string(PAD_FORMAT)
end

function create_table(driver, connection, number)
  local opt = sysbench.opt
  local is_mysql = driver:name() == "mysql"
  if not is_mysql and driver:name() ~= "pgsql" then
    error("Unsupported database driver:" .. driver:name())
  end
  local key = opt.secondary and "KEY xid" or "PRIMARY KEY"
  local id = "INTEGER NOT NULL"
  if opt.auto_inc then
    id = is_mysql and "INTEGER NOT NULL AUTO_INCREMENT" or "SERIAL"
  end
  local engine = is_mysql and "/*! ENGINE = " .. opt.mysql_storage_engine .. " */" or ""
  print(string.format("Creating table 'sbtest%d'...", number))
  connection:query(string.format([[
CREATE TABLE sbtest%d(
  id %s,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  %s (id)
) %s %s]], number, id, key, engine, opt.create_table_options or ""))

  if opt.table_size > 0 then
    print(string.format("Inserting %d records into 'sbtest%d'", opt.table_size, number))
  end
  local columns = opt.auto_inc and "k, c, pad" or "id, k, c, pad"
  connection:bulk_insert_init("INSERT INTO sbtest" .. number .. "(" .. columns .. ") VALUES")
  for row = 1, opt.table_size do
    local c, pad = get_c_value(), get_pad_value()
    local k = sysbench.rand.default(1, opt.table_size)
    if opt.auto_inc then
      connection:bulk_insert_next(string.format("(%d, '%s', '%s')", k, c, pad))
    else
      connection:bulk_insert_next(string.format("(%d, %d, '%s', '%s')", row, k, c, pad))
    end
  end
  connection:bulk_insert_done()

  if opt.create_secondary then
    print(string.format("Creating a secondary index on 'sbtest%d'...", number))
    connection:query(string.format("CREATE INDEX k_%d ON sbtest%d(k)", number, number))
  end
end

-- Each kind of statement on one table, and the types of its parameters.
local INT = sysbench.sql.type.INT
local CHAR = sysbench.sql.type.CHAR

local stmt_defs = {
  point_selects = { "SELECT c FROM sbtest%u WHERE id=?", INT },
  simple_ranges = { "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?", INT, INT },
  sum_ranges = { "SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?", INT, INT },
  order_ranges = { "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT },
  distinct_ranges = {
    "SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT,
  },
  index_updates = { "UPDATE sbtest%u SET k=k+1 WHERE id=?", INT },
  non_index_updates = { "UPDATE sbtest%u SET c=? WHERE id=?", { CHAR, 120 }, INT },
  deletes = { "DELETE FROM sbtest%u WHERE id=?", INT },
  inserts = {
    "INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)", INT, INT, { CHAR, 120 }, { CHAR, 60 },
  },
}

function prepare_begin()
  stmt.begin = con:prepare("BEGIN")
end

function prepare_commit()
  stmt.commit = con:prepare("COMMIT")
end

function prepare_for_each_table(key)
  local definition = stmt_defs[key]
  for number = 1, sysbench.opt.tables do
    local statement = con:prepare(string.format(definition[1], number))
    local params = {}
    for place = 2, #definition do
      local kind = definition[place]
      if type(kind) == "table" then
        params[place - 1] = statement:bind_create(kind[1], kind[2])
      else
        params[place - 1] = statement:bind_create(kind)
      end
    end
    if #params > 0 then
      statement:bind_param(unpack(params))
    end
    stmt[number][key], param[number][key] = statement, params
  end
end

function prepare_point_selects()
  prepare_for_each_table("point_selects")
end

function prepare_simple_ranges()
  prepare_for_each_table("simple_ranges")
end

function prepare_sum_ranges()
  prepare_for_each_table("sum_ranges")
end

function prepare_order_ranges()
  prepare_for_each_table("order_ranges")
end

function prepare_distinct_ranges()
  prepare_for_each_table("distinct_ranges")
end

function prepare_index_updates()
  prepare_for_each_table("index_updates")
end

function prepare_non_index_updates()
  prepare_for_each_table("non_index_updates")
end

function prepare_delete_inserts()
  prepare_for_each_table("deletes")
  prepare_for_each_table("inserts")
end

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  stmt, param = {}, {}
  for number = 1, sysbench.opt.tables do
    stmt[number], param[number] = {}, {}
  end
  prepare_statements()
end

function close_statements()
  for number = 1, sysbench.opt.tables do
    for _, statement in pairs(stmt[number]) do
      statement:close()
    end
  end
  if stmt.begin ~= nil then
    stmt.begin:close()
  end
  if stmt.commit ~= nil then
    stmt.commit:close()
  end
end

function thread_done()
  close_statements()
  con:disconnect()
end

function cleanup()
  local driver = sysbench.sql.driver()
  local connection = driver:connect()
  for number = 1, sysbench.opt.tables do
    print(string.format("Dropping table 'sbtest%d'...", number))
    connection:query("DROP TABLE IF EXISTS sbtest" .. number)
  end
end

local function a_table()
  return sysbench.rand.uniform(1, sysbench.opt.tables)
end

local function an_id()
  return sysbench.rand.default(1, sysbench.opt.table_size)
end

function begin()
  stmt.begin:execute()
end

function commit()
  stmt.commit:execute()
end

function execute_point_selects()
  local number = a_table()
  for _ = 1, sysbench.opt.point_selects do
    param[number].point_selects[1]:set(an_id())
    stmt[number].point_selects:execute()
  end
end

local function execute_range(key)
  local number = a_table()
  local params = param[number][key]
  for _ = 1, sysbench.opt[key] do
    local id = an_id()
    params[1]:set(id)
    params[2]:set(id + sysbench.opt.range_size - 1)
    stmt[number][key]:execute()
  end
end

function execute_simple_ranges()
  execute_range("simple_ranges")
end

function execute_sum_ranges()
  execute_range("sum_ranges")
end

function execute_order_ranges()
  execute_range("order_ranges")
end

function execute_distinct_ranges()
  execute_range("distinct_ranges")
end

function execute_index_updates()
  local number = a_table()
  for _ = 1, sysbench.opt.index_updates do
    param[number].index_updates[1]:set(an_id())
    stmt[number].index_updates:execute()
  end
end

function execute_non_index_updates()
  local number = a_table()
  local params = param[number].non_index_updates
  for _ = 1, sysbench.opt.non_index_updates do
    params[1]:set_rand_str(C_FORMAT)
    params[2]:set(an_id())
    stmt[number].non_index_updates:execute()
  end
end

function execute_delete_inserts()
  local number = a_table()
  local deleted, inserted = param[number].deletes, param[number].inserts
  for _ = 1, sysbench.opt.delete_inserts do
    local id, k = an_id(), an_id()
    deleted[1]:set(id)
    inserted[1]:set(id)
    inserted[2]:set(k)
    inserted[3]:set_rand_str(C_FORMAT)
    inserted[4]:set_rand_str(PAD_FORMAT)
    stmt[number].deletes:execute()
    stmt[number].inserts:execute()
  end
end

-- Statements belong to a session: a new one has to prepare them again.
local LOST = { [2006] = true, [2011] = true, [2013] = true, [2055] = true }

function sysbench.hooks.before_restart_event(errdesc)
  if LOST[errdesc.sql_errno] then
    close_statements()
    prepare_statements()
  end
end

local events_of_session = 0

function check_reconnect()
  if sysbench.opt.reconnect > 0 then
    events_of_session = events_of_session + 1
    if events_of_session % sysbench.opt.reconnect == 0 then
      close_statements()
      con:reconnect()
      prepare_statements()
    end
  end
end
