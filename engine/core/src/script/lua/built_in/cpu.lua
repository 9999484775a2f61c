-- sysbench's test `cpu`: an event counts the primes below --cpu-max-prime by trial division.

local common = require("sysbench.common")

sysbench.cmdline.options = {
  ["cpu-max-prime"] = {
    "upper limit for primes generator", 10000, sysbench.cmdline.ARG_INT,
    common.at_least(1, "Invalid value of %s: %s."),
  },
}

function event()
  local primes = 0
  for number = 3, sysbench.opt.cpu_max_prime - 1 do
    local root, divisor = math.sqrt(number), 2
    while divisor <= root and number % divisor ~= 0 do
      divisor = divisor + 1
    end
    if divisor > root then
      primes = primes + 1
    end
  end
end

function sysbench.hooks.print_head()
  common.notice("Prime numbers limit: %d\n", sysbench.opt.cpu_max_prime)
end

function sysbench.hooks.print_results(stat)
  common.notice("CPU speed:\n    events per second: %8.2f", stat.events / stat.time_interval)
end
