#!/usr/bin/env -S dbdyno sysbench
-- The load of TPC-C, revision 5.11 (https://www.tpc.org/tpcc): an order-entry system with five kinds of
-- transactions on nine tables. What is measured here is no TPC-C result: nothing is audited or priced, and by
-- default nobody waits between transactions. New orders a minute are therefore called NOPM, never tpmC.
--
--   prepare   creates and fills the tables, warehouses spread over --threads
--   run       one event is one transaction
--   check     the consistency conditions 1 to 4 of clause 3.3.2
--   cleanup   drops the tables
--
-- Clauses in comments are those of the specification.

local ITEMS, CUSTOMERS, DISTRICTS = 100000, 3000, 10

sysbench.cmdline.options = {
  warehouses = { "number of warehouses, about 100 MB each", 1 },
  items = { "items in stock; the specification has 100000", ITEMS },
  customers = { "customers and orders of a district; the specification has 3000", CUSTOMERS },
  waits = { "keying and think times of clause 5.2.5, and a home warehouse for each thread", false },
}

local TABLES = {
  "warehouse", "district", "customer", "history", "orders", "new_orders", "order_line", "stock", "item",
}

local SCHEMA = {
  item = [[
    i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL, i_price DECIMAL(5,2) NOT NULL,
    i_data VARCHAR(50) NOT NULL, PRIMARY KEY (i_id)]],
  warehouse = [[
    w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL,
    w_street_2 VARCHAR(20) NOT NULL, w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL,
    w_zip CHAR(9) NOT NULL, w_tax DECIMAL(4,4) NOT NULL, w_ytd DECIMAL(12,2) NOT NULL, PRIMARY KEY (w_id)]],
  district = [[
    d_id INT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL, d_street_1 VARCHAR(20) NOT NULL,
    d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT NULL, d_state CHAR(2) NOT NULL,
    d_zip CHAR(9) NOT NULL, d_tax DECIMAL(4,4) NOT NULL, d_ytd DECIMAL(12,2) NOT NULL,
    d_next_o_id INT NOT NULL, PRIMARY KEY (d_w_id, d_id)]],
  customer = [[
    c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) NOT NULL,
    c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, c_street_1 VARCHAR(20) NOT NULL,
    c_street_2 VARCHAR(20) NOT NULL, c_city VARCHAR(20) NOT NULL, c_state CHAR(2) NOT NULL,
    c_zip CHAR(9) NOT NULL, c_phone CHAR(16) NOT NULL, c_since TIMESTAMP NOT NULL, c_credit CHAR(2) NOT NULL,
    c_credit_lim DECIMAL(12,2) NOT NULL, c_discount DECIMAL(4,4) NOT NULL, c_balance DECIMAL(12,2) NOT NULL,
    c_ytd_payment DECIMAL(12,2) NOT NULL, c_payment_cnt INT NOT NULL, c_delivery_cnt INT NOT NULL,
    c_data VARCHAR(500) NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id)]],
  history = [[
    h_c_id INT NOT NULL, h_c_d_id INT NOT NULL, h_c_w_id INT NOT NULL, h_d_id INT NOT NULL,
    h_w_id INT NOT NULL, h_date TIMESTAMP NOT NULL, h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL,
    h_id COUNTED PRIMARY KEY]],
  orders = [[
    o_id INT NOT NULL, o_d_id INT NOT NULL, o_w_id INT NOT NULL, o_c_id INT NOT NULL,
    o_entry_d TIMESTAMP NOT NULL, o_carrier_id INT, o_ol_cnt INT NOT NULL, o_all_local INT NOT NULL,
    PRIMARY KEY (o_w_id, o_d_id, o_id)]],
  new_orders = [[
    no_o_id INT NOT NULL, no_d_id INT NOT NULL, no_w_id INT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id)]],
  order_line = [[
    ol_o_id INT NOT NULL, ol_d_id INT NOT NULL, ol_w_id INT NOT NULL, ol_number INT NOT NULL,
    ol_i_id INT NOT NULL, ol_supply_w_id INT NOT NULL, ol_delivery_d TIMESTAMP NULL, ol_quantity INT NOT NULL,
    ol_amount DECIMAL(6,2) NOT NULL, ol_dist_info CHAR(24) NOT NULL,
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)]],
  stock = [[
    s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT NOT NULL, s_dist_01 CHAR(24) NOT NULL,
    s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL, s_dist_04 CHAR(24) NOT NULL,
    s_dist_05 CHAR(24) NOT NULL, s_dist_06 CHAR(24) NOT NULL, s_dist_07 CHAR(24) NOT NULL,
    s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL, s_dist_10 CHAR(24) NOT NULL, s_ytd INT NOT NULL,
    s_order_cnt INT NOT NULL, s_remote_cnt INT NOT NULL, s_data VARCHAR(50) NOT NULL,
    PRIMARY KEY (s_w_id, s_i_id)]],
}

-- The specification gives this table no key; a number as its key lets it be replicated, and created on servers that
-- require one (sql_require_primary_key).
local HISTORY = "history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"

local INDEXES = {
  "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
  "CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
}

-- Random values (clauses 2.1.5, 2.1.6, 4.3.2).

local uniform, random_string = sysbench.rand.uniform, sysbench.rand.string

-- Constants of NURand. The two for last names differ by 85, which clause 2.1.6.1 allows.
local C_LAST_OF_LOAD, C_LAST_OF_RUN, C_CUSTOMER, C_ITEM = 100, 185, 259, 7911

local function nurand(a, low, high, c)
  return (bit.bor(uniform(0, a), uniform(low, high)) + c) % (high - low + 1) + low
end

local LETTERS, DIGITS = string.rep("@", 500), string.rep("#", 20)

local function letters(least, most)
  return random_string(LETTERS:sub(1, uniform(least, most)))
end

local function digits(count)
  return random_string(DIGITS:sub(1, count))
end

local function zip()
  return digits(4) .. "11111"
end

local SYLLABLES = { "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING" }

local function last_name(number)
  return SYLLABLES[math.floor(number / 100) % 10 + 1] .. SYLLABLES[math.floor(number / 10) % 10 + 1]
    .. SYLLABLES[number % 10 + 1]
end

-- In a tenth of the rows a word stands somewhere in the text.
local function maybe_original()
  local text = letters(26, 50)
  if uniform(1, 10) > 1 then
    return text
  end
  local at = uniform(1, #text - 8)
  return text:sub(1, at - 1) .. "ORIGINAL" .. text:sub(at + 8)
end

local function last_name_of_run()
  return last_name(nurand(255, 0, math.min(999, sysbench.opt.customers - 1), C_LAST_OF_RUN))
end

local function any_customer()
  return nurand(1023, 1, sysbench.opt.customers, C_CUSTOMER)
end

local function any_item()
  return nurand(8191, 1, sysbench.opt.items, C_ITEM)
end

local function money(low, high)
  return uniform(low * 100, high * 100) / 100
end

local function connect()
  return sysbench.sql.driver():connect()
end

local function is_mysql()
  return sysbench.sql.driver():name() == "mysql"
end

-- Loading (clause 4.3.3).

ffi.cdef("int usleep(unsigned int);")

local function fill(connection, table_name, rows)
  connection:bulk_insert_init("INSERT INTO " .. table_name .. " VALUES ")
  rows(function(...)
    connection:bulk_insert_next(string.format(...))
  end)
  connection:bulk_insert_done()
end

-- Older versions of MySQL renew the first TIMESTAMP of a row whenever the row changes.
local function create_tables()
  local connection, types = connect(), { COUNTED = "BIGSERIAL" }
  if is_mysql() then
    types = { TIMESTAMP = "DATETIME", COUNTED = "BIGINT NOT NULL AUTO_INCREMENT" }
  end
  for _, name in ipairs(TABLES) do
    connection:query("CREATE TABLE " .. name .. " (" .. SCHEMA[name]:gsub("%u+", types) .. ")")
  end
end

local function load_items(connection)
  print(string.format("Loading %d items", sysbench.opt.items))
  fill(connection, "item", function(add)
    for item = 1, sysbench.opt.items do
      add("(%d,%d,'%s',%.2f,'%s')", item, uniform(1, 10000), letters(14, 24), money(1, 100), maybe_original())
    end
  end)
end

local function load_warehouse(connection, w)
  print(string.format("Loading warehouse %d", w))
  fill(connection, "warehouse", function(add)
    add("(%d,'%s','%s','%s','%s','%s','%s',%.4f,300000.00)", w, letters(6, 10), letters(10, 20),
      letters(10, 20), letters(10, 20), random_string("@@"), zip(), uniform(0, 2000) / 10000)
  end)
  fill(connection, "stock", function(add)
    for item = 1, sysbench.opt.items do
      local info = {}
      for district = 1, 10 do
        info[district] = random_string(LETTERS:sub(1, 24))
      end
      add("(%d,%d,%d,'%s',0,0,0,'%s')", item, w, uniform(10, 100), table.concat(info, "','"), maybe_original())
    end
  end)
end

local function load_district(connection, w, d)
  local customers = sysbench.opt.customers
  -- Each district's money is a tenth of its warehouse's (condition 1).
  fill(connection, "district", function(add)
    add("(%d,%d,'%s','%s','%s','%s','%s','%s',%.4f,30000.00,%d)", d, w, letters(6, 10), letters(10, 20),
      letters(10, 20), letters(10, 20), random_string("@@"), zip(), uniform(0, 2000) / 10000, customers + 1)
  end)
  fill(connection, "customer", function(add)
    for c = 1, customers do
      local name = c <= 1000 and c - 1 or nurand(255, 0, 999, C_LAST_OF_LOAD)
      add("(%d,%d,%d,'%s','OE','%s','%s','%s','%s','%s','%s','%s',NOW(),'%s',50000.00,%.4f,-10.00,10.00,1,0,'%s')",
        c, d, w, letters(8, 16), last_name(name), letters(10, 20), letters(10, 20), letters(10, 20),
        random_string("@@"), zip(), digits(16), uniform(1, 10) == 1 and "BC" or "GC", uniform(0, 5000) / 10000,
        letters(300, 500))
    end
  end)
  fill(connection, HISTORY, function(add)
    for c = 1, customers do
      add("(%d,%d,%d,%d,%d,NOW(),10.00,'%s')", c, d, w, d, w, letters(12, 24))
    end
  end)
  -- Of the orders, in random order of customers, the last three tenths are not delivered.
  local of_customer = {}
  for c = 1, customers do
    local place = uniform(1, c)
    of_customer[c] = of_customer[place]
    of_customer[place] = c
  end
  local delivered = math.floor(customers * 0.7)
  local lines = {}
  fill(connection, "orders", function(add)
    for o = 1, customers do
      lines[o] = uniform(5, 15)
      local carrier = o <= delivered and tostring(uniform(1, 10)) or "NULL"
      add("(%d,%d,%d,%d,NOW(),%s,%d,1)", o, d, w, of_customer[o], carrier, lines[o])
    end
  end)
  fill(connection, "new_orders", function(add)
    for o = delivered + 1, customers do
      add("(%d,%d,%d)", o, d, w)
    end
  end)
  fill(connection, "order_line", function(add)
    for o = 1, customers do
      for line = 1, lines[o] do
        local is_delivered = o <= delivered
        add("(%d,%d,%d,%d,%d,%d,%s,5,%.2f,'%s')", o, d, w, line, uniform(1, sysbench.opt.items), w,
          is_delivered and "NOW()" or "NULL", is_delivered and 0 or money(0.01, 9999.99),
          random_string(LETTERS:sub(1, 24)))
      end
    end
  end)
end

-- dbdyno creates the tables before its threads begin, and ends if one is there. In sysbench, which has no `before`,
-- the first thread does, and the last table that is created tells the others that they can begin.
local function await_tables(connection)
  local last, schema = TABLES[#TABLES], is_mysql() and "DATABASE()" or "CURRENT_SCHEMA()"
  local sql = string.format([[SELECT COUNT(*) FROM information_schema.tables
    WHERE table_name = '%s' AND table_schema = %s]], last, schema)
  while connection:query_row(sql) == "0" do
    ffi.C.usleep(50000)
  end
end

local function prepare_tpcc()
  local connection = connect()
  local step = math.max(sysbench.opt.threads, 1)
  local first = sysbench.tid % step
  if first == 0 and not sysbench.event_kind then
    create_tables()
  else
    await_tables(connection)
  end
  for w = first + 1, sysbench.opt.warehouses, step do
    load_warehouse(connection, w)
    for d = 1, DISTRICTS do
      load_district(connection, w, d)
    end
  end
  if first == 0 then
    load_items(connection)
    print("Creating indexes")
    for _, sql in ipairs(INDEXES) do
      connection:query(sql)
    end
  end
end

function cleanup()
  local connection = connect()
  for _, name in ipairs(TABLES) do
    connection:query("DROP TABLE IF EXISTS " .. name)
  end
end

-- The conditions that hold at any time when no transaction runs. Each query counts what breaks it.
local CONDITIONS = {
  { "1: W_YTD is the sum of the districts' D_YTD", [[
    SELECT COUNT(*) FROM (SELECT w_id FROM warehouse LEFT JOIN district ON d_w_id = w_id
    GROUP BY w_id, w_ytd HAVING w_ytd <> COALESCE(SUM(d_ytd), 0)) broken]] },
  { "2: D_NEXT_O_ID - 1 is the greatest O_ID and NO_O_ID", [[
    SELECT COUNT(*) FROM (SELECT d_w_id, d_id, d_next_o_id - 1 AS told,
    (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS last_order,
    (SELECT MAX(no_o_id) FROM new_orders WHERE no_w_id = d_w_id AND no_d_id = d_id) AS last_new
    FROM district) seen WHERE told <> COALESCE(last_order, 0) OR told <> COALESCE(last_new, told)]] },
  { "3: the new orders of a district have no gap", [[
    SELECT COUNT(*) FROM (SELECT no_w_id FROM new_orders GROUP BY no_w_id, no_d_id
    HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)) broken]] },
  { "4: O_OL_CNT adds up to the number of lines", [[
    SELECT COUNT(*) FROM (SELECT d_w_id, d_id,
    (SELECT COALESCE(SUM(o_ol_cnt), 0) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS told,
    (SELECT COUNT(*) FROM order_line WHERE ol_w_id = d_w_id AND ol_d_id = d_id) AS found
    FROM district) seen WHERE told <> found]] },
}

local function check()
  local connection, holds = connect(), true
  if connection:query_row("SELECT COUNT(*) FROM warehouse") == "0" then
    print("There are no warehouses to check: load them with prepare")
    return false
  end
  for _, condition in ipairs(CONDITIONS) do
    local broken = tonumber((connection:query_row(condition[2])))
    local verdict = broken == 0 and "holds" or string.format("is broken in %d places", broken)
    print(string.format("Consistency condition %s: %s", condition[1], verdict))
    holds = holds and broken == 0
  end
  return holds
end

sysbench.cmdline.commands = {
  prepare = { prepare_tpcc, sysbench.cmdline.PARALLEL_COMMAND, before = create_tables },
  check = { check },
}

-- Transactions (clause 2).

local function warehouse_of_thread()
  if sysbench.opt.waits then
    return sysbench.tid % sysbench.opt.warehouses + 1
  end
  return uniform(1, sysbench.opt.warehouses)
end

local function another_warehouse(w)
  local other = uniform(1, sysbench.opt.warehouses - 1)
  return other < w and other or other + 1
end

local function sql(text, ...)
  return con:query(string.format(text, ...))
end

local function row(text, ...)
  return con:query_row(string.format(text, ...))
end

-- What the running event is counted as; sysbench has no such function.
local event_kind = sysbench.event_kind or function() end

-- Clause 2.4. One order in a hundred names an item that does not exist, and is rolled back.
local function new_order(w)
  local d, c, count = uniform(1, DISTRICTS), any_customer(), uniform(5, 15)
  local is_rolled_back = uniform(1, 100) == 1
  local lines, all_local = {}, 1
  for line = 1, count do
    local supply = w
    if sysbench.opt.warehouses > 1 and uniform(1, 100) == 1 then
      supply, all_local = another_warehouse(w), 0
    end
    local item = (is_rolled_back and line == count) and sysbench.opt.items + 1 or any_item()
    lines[line] = { item = item, supply = supply, quantity = uniform(1, 10) }
  end
  con:query("BEGIN")
  local discount, _, _, w_tax = row([[SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse
    WHERE w_id = %d AND c_w_id = w_id AND c_d_id = %d AND c_id = %d]], w, d, c)
  local o, d_tax = row([[SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = %d AND d_id = %d
    FOR UPDATE]], w, d)
  sql("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %d AND d_id = %d", w, d)
  sql("INSERT INTO orders VALUES (%d,%d,%d,%d,NOW(),NULL,%d,%d)", o, d, w, c, count, all_local)
  sql("INSERT INTO new_orders VALUES (%d,%d,%d)", o, d, w)
  local total = 0
  for number, line in ipairs(lines) do
    local price = row("SELECT i_price, i_name, i_data FROM item WHERE i_id = %d", line.item)
    if price == nil then
      con:query("ROLLBACK")
      event_kind("new_order_rolled_back")
      return
    end
    local quantity, info = row([[SELECT s_quantity, s_dist_%02d, s_data FROM stock
      WHERE s_i_id = %d AND s_w_id = %d FOR UPDATE]], d, line.item, line.supply)
    quantity = tonumber(quantity)
    local left = quantity - line.quantity
    if left < 10 then
      left = left + 91
    end
    sql([[UPDATE stock SET s_quantity = %d, s_ytd = s_ytd + %d, s_order_cnt = s_order_cnt + 1,
      s_remote_cnt = s_remote_cnt + %d WHERE s_i_id = %d AND s_w_id = %d]], left, line.quantity,
      line.supply == w and 0 or 1, line.item, line.supply)
    local amount = line.quantity * tonumber(price)
    total = total + amount * (1 - tonumber(discount)) * (1 + tonumber(w_tax) + tonumber(d_tax))
    sql("INSERT INTO order_line VALUES (%d,%d,%d,%d,%d,%d,NULL,%d,%.2f,'%s')", o, d, w, number, line.item,
      line.supply, line.quantity, amount, info)
  end
  con:query("COMMIT")
end

-- The customer's number: by number in four of ten cases, else the middle one of those with a last name.
local function customer_by_number_or_name(w, d)
  if uniform(1, 100) > 60 then
    return any_customer()
  end
  local found = sql([[SELECT c_id FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s'
    ORDER BY c_first]], w, d, last_name_of_run())
  if found == nil or found.nrows == 0 then
    return any_customer()
  end
  local middle
  for _ = 1, math.ceil(found.nrows / 2) do
    middle = found:fetch_row()[1]
  end
  return tonumber(middle)
end

-- Clause 2.5.
local function payment(w)
  local d, amount = uniform(1, DISTRICTS), money(1, 5000)
  local c_w, c_d = w, d
  if sysbench.opt.warehouses > 1 and uniform(1, 100) > 85 then
    c_w, c_d = another_warehouse(w), uniform(1, DISTRICTS)
  end
  con:query("BEGIN")
  sql("UPDATE warehouse SET w_ytd = w_ytd + %.2f WHERE w_id = %d", amount, w)
  local w_name = row([[SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse
    WHERE w_id = %d]], w)
  sql("UPDATE district SET d_ytd = d_ytd + %.2f WHERE d_w_id = %d AND d_id = %d", amount, w, d)
  local d_name = row([[SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district
    WHERE d_w_id = %d AND d_id = %d]], w, d)
  local c = customer_by_number_or_name(c_w, c_d)
  local credit, data = row([[SELECT c_credit, c_data, c_first, c_middle, c_last, c_balance, c_discount
    FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d FOR UPDATE]], c_w, c_d, c)
  local new_data = ""
  if credit == "BC" then
    local told = string.format("%d %d %d %d %d %.2f|", c, c_d, c_w, d, w, amount)
    new_data = ", c_data = '" .. (told .. data):sub(1, 500) .. "'"
  end
  sql([[UPDATE customer SET c_balance = c_balance - %.2f, c_ytd_payment = c_ytd_payment + %.2f,
    c_payment_cnt = c_payment_cnt + 1%s WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d]], amount, amount,
    new_data, c_w, c_d, c)
  sql("INSERT INTO " .. HISTORY .. " VALUES (%d,%d,%d,%d,%d,NOW(),%.2f,'%s    %s')", c, c_d, c_w, d, w, amount,
    w_name, d_name)
  con:query("COMMIT")
end

-- Clause 2.6.
local function order_status(w)
  local d = uniform(1, DISTRICTS)
  con:query("BEGIN")
  local c = customer_by_number_or_name(w, d)
  row([[SELECT c_balance, c_first, c_middle, c_last FROM customer
    WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d]], w, d, c)
  local o = row([[SELECT o_id, o_entry_d, o_carrier_id FROM orders
    WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d ORDER BY o_id DESC LIMIT 1]], w, d, c)
  if o ~= nil then
    sql([[SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
      WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d]], w, d, o)
  end
  con:query("COMMIT")
end

-- Clause 2.7, all districts in one transaction.
local function delivery(w)
  local carrier = uniform(1, 10)
  con:query("BEGIN")
  for d = 1, DISTRICTS do
    local o = row([[SELECT no_o_id FROM new_orders WHERE no_w_id = %d AND no_d_id = %d
      ORDER BY no_o_id LIMIT 1 FOR UPDATE]], w, d)
    if o ~= nil then
      sql("DELETE FROM new_orders WHERE no_w_id = %d AND no_d_id = %d AND no_o_id = %d", w, d, o)
      -- An order younger than the transaction's snapshot is seen by its reads only once it was changed.
      sql("UPDATE orders SET o_carrier_id = %d WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d", carrier, w, d, o)
      local c = row("SELECT o_c_id FROM orders WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d", w, d, o)
      sql("UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d",
        w, d, o)
      local amount = row("SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d",
        w, d, o)
      sql([[UPDATE customer SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d]], amount, w, d, c)
    end
  end
  con:query("COMMIT")
end

-- Clause 2.8.
local function stock_level(w)
  local d, threshold = uniform(1, DISTRICTS), uniform(10, 20)
  con:query("BEGIN")
  local next_order = row("SELECT d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d", w, d)
  row([[SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = %d AND ol_d_id = %d
    AND ol_o_id < %d AND ol_o_id >= %d AND s_w_id = ol_w_id AND s_i_id = ol_i_id AND s_quantity < %d]],
    w, d, next_order, next_order - 20, threshold)
  con:query("COMMIT")
end

-- The mix (clause 5.2.4.2): a deck of cards for each thread, shuffled anew when it is used up. Keying time and
-- mean think time of each kind in seconds (clause 5.2.5.7).
local KINDS = {
  { name = "new_order", run = new_order, cards = 10, keying_s = 18, thinking_s = 12 },
  { name = "payment", run = payment, cards = 10, keying_s = 3, thinking_s = 12 },
  { name = "order_status", run = order_status, cards = 1, keying_s = 2, thinking_s = 10 },
  { name = "delivery", run = delivery, cards = 1, keying_s = 2, thinking_s = 5 },
  { name = "stock_level", run = stock_level, cards = 1, keying_s = 2, thinking_s = 5 },
}
local deck = {}

local function next_kind()
  if #deck == 0 then
    for _, kind in ipairs(KINDS) do
      for _ = 1, kind.cards do
        local place = uniform(1, #deck + 1)
        deck[#deck + 1] = deck[place]
        deck[place] = kind
      end
    end
  end
  return table.remove(deck)
end

local function run_as(kind)
  event_kind(kind.name)
  kind.run(warehouse_of_thread())
end

-- New orders are counted by the districts' next number, which also counts none that was rolled back.
ffi.cdef("struct moment { long s; long ns; }; int clock_gettime(int clock, struct moment *now);")

local function seconds()
  local now = ffi.new("struct moment")
  ffi.C.clock_gettime(1, now)
  return tonumber(now.s) + tonumber(now.ns) / 1e9
end

local function orders_so_far()
  return tonumber((connect():query_row("SELECT SUM(d_next_o_id) FROM district")))
end

local began

function init()
  began = { orders = orders_so_far(), at_s = seconds() }
end

function done()
  local orders, took_s = orders_so_far() - began.orders, seconds() - began.at_s
  print(string.format("New orders: %d in %.1f s, warm-up included: %.1f NOPM", orders, took_s,
    orders * 60 / took_s))
end

-- Whether the transaction that raised this is to begin again. dbdyno counts that; sysbench has no such function.
local event_restarts = sysbench.event_restarts or function(raised)
  if type(raised) ~= "table" or raised.errcode ~= sysbench.error.RESTART_EVENT then
    error(raised, 0)
  end
  sysbench.hooks.before_restart_event(raised)
  return true
end

-- With waits a thread is a terminal: what it types and thinks is no part of a transaction's latency.
local function live_as_a_terminal(thread)
  while ffi.C.sb_more_events(thread) do
    local kind = next_kind()
    ffi.C.usleep(kind.keying_s * 1000000)
    ffi.C.sb_event_start(thread)
    local ok, raised = pcall(run_as, kind)
    while not ok do
      if not event_restarts(raised) then
        return
      end
      ok, raised = pcall(run_as, kind)
    end
    ffi.C.sb_event_stop(thread)
    local think_s = math.min(-math.log(1 - sysbench.rand.uniform_double()), 10) * kind.thinking_s
    ffi.C.usleep(think_s * 1000000)
  end
end

function thread_init()
  con = connect()
  if sysbench.opt.waits then
    thread_run = live_as_a_terminal
  end
end

local begun

-- A transaction that was rolled back is tried again, and no other takes its place.
function event()
  begun = begun or next_kind()
  run_as(begun)
  begun = nil
end

-- After a deadlock the transaction is gone; after a lock that was waited for too long it is not.
function sysbench.hooks.before_restart_event()
  con:query("ROLLBACK")
end

function thread_done()
  con:disconnect()
end
