-- Calls the function of `jit`, or starts the module of `jit`, named by the first argument, with the other arguments.

local name = ...
local start = jit[name]
if type(start) ~= "function" then
  local is_there, module = pcall(require, "jit." .. tostring(name))
  start = is_there and module.start
  if not start then
    error("unknown luaJIT command or jit.* modules not installed", 0)
  end
end
start(select(2, ...))
