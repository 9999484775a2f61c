-- `sysbench.cmdline`: the options and commands that a script declares. The table stands before the
-- script is loaded, and `sysbench.opt` is filled when it is.

local host = ...
local ffi = host.ffi

ffi.cdef [[
typedef enum {
  SB_ARG_TYPE_NULL, SB_ARG_TYPE_BOOL, SB_ARG_TYPE_INT, SB_ARG_TYPE_SIZE, SB_ARG_TYPE_DOUBLE,
  SB_ARG_TYPE_STRING, SB_ARG_TYPE_LIST, SB_ARG_TYPE_FILE, SB_ARG_TYPE_MAX
} sb_arg_type_t;
]]

local cmdline = {
  ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2, ARG_SIZE = 3, ARG_DOUBLE = 4, ARG_STRING = 5, ARG_LIST = 6, ARG_FILE = 7,
  ARG_MAX = 8,
  PARALLEL_COMMAND = true,
  argv = host.argv,
  command = host.command,
  script_path = host.script_path,
}
sysbench.cmdline = cmdline

local KINDS = { [0] = "NULL", "BOOL", "INT", "SIZE", "DOUBLE", "STRING", "LIST", "FILE" }
local KIND_OF = { boolean = "BOOL", string = "STRING", number = "DOUBLE", table = "LIST", ["nil"] = "STRING" }

local function rendered(value)
  if type(value) == "boolean" then
    return value and "on" or "off"
  elseif type(value) == "table" then
    return table.concat(value, ",")
  elseif value ~= nil then
    return tostring(value)
  end
end

local function option(name, declared)
  if type(name) ~= "string" or type(declared) ~= "table" then
    error("wrong table structure in sysbench.cmdline.options")
  elseif declared[1] == nil then
    error("nil description for option " .. name)
  end
  local description, default, wanted, validator = declared[1], declared[2], declared[3], declared[4]
  if type(wanted) == "function" then
    wanted, validator = nil, wanted
  end
  local kind_name = wanted ~= nil and KINDS[tonumber(wanted)] or KIND_OF[type(default)]
  if kind_name == nil then
    error("cannot determine type for option " .. name)
  end
  return {
    name = name, kind = kind_name, default = rendered(default), text = tostring(description),
    value = default, validator = validator, place = tonumber(declared.place) or 0,
  }
end

local declared = {}

-- Reads what the script has declared; an array of tables, sorted by name. Tests of ours say the places of theirs.
function cmdline.read_cmdline_options()
  declared = {}
  local options = cmdline.options or {}
  if type(options) ~= "table" then
    error("wrong type for sysbench.cmdline.options: " .. type(options))
  end
  for name, one in pairs(options) do
    declared[#declared + 1] = option(name, one)
  end
  table.sort(declared, function(one, other)
    return one.place < other.place or (one.place == other.place and one.name < other.name)
  end)
  return true
end

local function command(name)
  local one = cmdline.commands and cmdline.commands[name]
  return type(one) == "table" and type(one[1]) == "function" and one or nil
end

function cmdline.command_defined(name)
  return command(name) ~= nil
end

function cmdline.command_parallel(name)
  local one = command(name)
  return one ~= nil and one[2] == cmdline.PARALLEL_COMMAND
end

-- dbdyno's own: what a command does once, before its threads begin.
function cmdline.begin_command(name)
  local before = command(name).before
  if before then
    before()
  end
end

-- False for a command that says so; whatever else it returns is success.
function cmdline.call_command(name)
  local one = command(name)
  return one ~= nil and one[1]() ~= false
end

local SHAPES = {
  BOOL = "[=on|off]", INT = "=N", SIZE = "=SIZE", DOUBLE = "=N", STRING = "=STRING",
  LIST = "=[LIST,...]", FILE = "=FILENAME",
}

function cmdline.print_test_options()
  local shapes, width = {}, 0
  for place, one in ipairs(declared) do
    shapes[place] = "--" .. one.name .. (SHAPES[one.kind] or "")
    width = math.max(width, #shapes[place])
  end
  for place, one in ipairs(declared) do
    local default = one.default and " [" .. one.default .. "]" or ""
    print(string.format("  %-" .. width .. "s %s%s", shapes[place], one.text, default))
  end
  print()
end

function host.declared_options()
  cmdline.read_cmdline_options()
  return declared
end

-- Sets `sysbench.opt`; and, where the script declares no options, those of these names as globals, as before 1.0.
local WITHOUT_DEFAULT = { BOOL = true, INT = 0, SIZE = 0, DOUBLE = 0, STRING = "", FILE = "" }

function host.set_options(options, globals)
  sysbench.opt = options
  for _, one in ipairs(declared) do
    local name = one.name:gsub("-", "_")
    if options[name] == nil then
      options[name] = one.value
    end
    if options[name] == nil then
      options[name] = one.kind == "LIST" and {} or WITHOUT_DEFAULT[one.kind]
    end
    -- A validator says whether a value will do. sysbench asks none about defaults.
    local text, default = rendered(options[name]), one.default or rendered(WITHOUT_DEFAULT[one.kind]) or ""
    if one.validator and text ~= default and not one.validator(one.name, text) then
      error("invalid option: --" .. one.name .. "=" .. text, 0)
    end
  end
  if cmdline.options ~= nil then
    return
  end
  -- What the script has set is overwritten, but for functions and libraries.
  for _, name in ipairs(globals) do
    if type(rawget(_G, name)) ~= "function" and package.loaded[name] == nil then
      _G[name] = options[name]
    end
  end
end
