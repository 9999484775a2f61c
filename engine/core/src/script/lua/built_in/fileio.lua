-- sysbench's test `fileio`: an event reads or writes a block of one of the files test_file.0 and so on in the current
-- folder, or syncs one of them. All threads share the place of a sequential mode and the count of requests between
-- syncs. A file has whole blocks only.

local common = require("sysbench.common")
local cmdline = sysbench.cmdline

ffi.cdef [[
typedef struct {
  dbdyno_mutex lock;
  double block; /* the next of a sequential mode, over all files */
  double requests; /* since the last sync */
  double reads, writes;
  double syncing; /* the next file to sync, from 0; the number of files while none is */
  int32_t descriptors[?];
} dbdyno_files;
int open(const char *path, int flags, ...);
int close(int);
int unlink(const char *path);
int fsync(int);
int fdatasync(int);
int64_t lseek(int, int64_t, int);
int64_t pread(int, void *, size_t, int64_t);
int64_t pwrite(int, const void *, size_t, int64_t);
]]

local CREATE, READ_WRITE, TO_END = 0x40, 2, 2
local FLAGS = { sync = 0x101000, dsync = 0x1000, direct = jit.arch == "arm64" and 0x10000 or 0x4000 }
local MODES = {
  seqwr = "sequential write (creation)", seqrewr = "sequential rewrite", seqrd = "sequential read",
  rndrd = "random read", rndwr = "random write", rndrw = "random r/w",
}

cmdline.options = {
  ["file-num"] = { "number of files", 128, cmdline.ARG_INT, common.at_least(1), place = 1 },
  ["file-block-size"] = { "bytes of a read or write", 16384, cmdline.ARG_SIZE, common.at_least(1), place = 2 },
  ["file-total-size"] = { "bytes of all files", "2G", cmdline.ARG_SIZE, common.at_least(1), place = 3 },
  ["file-test-mode"] = {
    "mode of a run {seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw}", nil, cmdline.ARG_STRING, place = 4,
  },
  ["file-io-mode"] = {
    "way of reading and writing; only sync", "sync", function(name, text)
      return text == "sync" or common.only("sync", name, text)
    end, place = 5,
  },
  ["file-async-backlog"] = { "of the mode async, which there is not", 128, cmdline.ARG_INT, place = 6 },
  ["file-extra-flags"] = {
    "open files with these flags as well {sync, dsync, direct}", {}, function(name, text)
      for flag in text:gmatch("[^,]+") do
        if not FLAGS[flag] then
          common.refuse(common.INVALID, name, flag)
        end
      end
      return true
    end, place = 7,
  },
  ["file-fsync-freq"] = {
    "sync all files after this number of requests; 0 for never", 100, cmdline.ARG_INT, common.at_least(0), place = 8,
  },
  ["file-fsync-all"] = { "sync after each write", false, place = 9 },
  ["file-fsync-end"] = { "sync all files at the end", true, place = 10 },
  ["file-fsync-mode"] = {
    "way of syncing {fsync, fdatasync}", "fsync", common.one_of("fsync", "fdatasync"), place = 11,
  },
  ["file-merged-requests"] = {
    "join this number of requests; only 0", 0, cmdline.ARG_INT, function(name, text)
      return text == "0" or common.only("0", name, text)
    end, place = 12,
  },
  ["file-rw-ratio"] = { "reads per write of the mode rndrw", 1.5, common.at_least(0), place = 13 },
}

local function name_of(file)
  return "test_file." .. file
end

local function file_bytes()
  return math.floor(sysbench.opt.file_total_size / sysbench.opt.file_num)
end

local function open_file(file, flags)
  for _, flag in ipairs(sysbench.opt.file_extra_flags) do
    flags = bit.bor(flags, FLAGS[flag])
  end
  local descriptor = ffi.C.open(name_of(file), flags, ffi.cast("int", 384)) -- 0600
  if descriptor < 0 then
    common.refuse("Cannot open file '%s' %s\nWARNING: Did you forget to run the prepare step?", name_of(file),
      common.reason())
  end
  return descriptor
end

-- Ends the run after a call that failed, or that moved fewer bytes than a block.
local function failed(to_do, file, offset)
  common.refuse("Failed to %s file! file: %s pos: %.0f %s", to_do, name_of(file), offset, common.reason())
end

local function flag_names()
  local names = table.concat(sysbench.opt.file_extra_flags, " "):gsub("direct", "directio")
  return names == "" and "(none)" or names
end

-- The commands `prepare` and `cleanup`.

local function fill(file, bytes, buffer)
  local block, descriptor = sysbench.opt.file_block_size, open_file(file, bit.bor(READ_WRITE, CREATE))
  local from = tonumber(ffi.C.lseek(descriptor, 0, TO_END))
  local deed = from == 0 and "Creating" or from < bytes and "Extending existing" or "Reusing existing"
  common.notice("%s file %s", deed, name_of(file))
  local offset = from
  while offset < bytes do
    if ffi.C.pwrite(descriptor, buffer, block, offset) ~= block then
      failed("write", file, offset)
    end
    offset = offset + block
  end
  if ffi.C.fsync(descriptor) ~= 0 then
    failed("sync", file, 0)
  end
  ffi.C.close(descriptor)
  return offset - from
end

function prepare()
  local opt, bytes = sysbench.opt, file_bytes()
  common.notice("%d files, %dKb each, %dMb total\nCreating files for the test...\nExtra file open flags: %s",
    opt.file_num, bytes / 1024, bytes * opt.file_num / common.MIB, flag_names())
  local buffer, written, begin = common.memory(opt.file_block_size), 0, common.now_s()
  for file = 0, opt.file_num - 1 do
    written = written + fill(file, bytes, buffer)
  end
  local took_s = common.now_s() - begin
  local rate = written / common.MIB / took_s
  common.notice(written == 0 and "No bytes written." or "%.0f bytes written in %.2f seconds (%.2f MiB/sec).", written,
    took_s, rate)
end

function cleanup()
  common.notice("Removing test files...")
  for file = 0, sysbench.opt.file_num - 1 do
    ffi.C.unlink(name_of(file))
  end
end

-- The run.

local shared, files, block, blocks, buffer
local is_sequential, is_mixed, writes, ratio
local syncs_each, sync_every, sync

local function read_options()
  local opt = sysbench.opt
  local mode = opt.file_test_mode
  files, block, blocks = opt.file_num, opt.file_block_size, math.floor(file_bytes() / opt.file_block_size)
  is_sequential, is_mixed, writes, ratio = mode:match("^seq"), mode == "rndrw", not mode:match("rd$"), opt.file_rw_ratio
  syncs_each = writes and opt.file_fsync_all
  sync_every = writes and not syncs_each and opt.file_fsync_freq > 0 and opt.file_fsync_freq or math.huge
  sync = opt.file_fsync_mode == "fsync" and ffi.C.fsync or ffi.C.fdatasync
end

local function check_size(file, descriptor, bytes)
  local there = tonumber(ffi.C.lseek(descriptor, 0, TO_END))
  if there < bytes then
    common.refuse("Size of file '%s' is %s, but at least %s is expected.\n"
      .. "WARNING: Did you run 'prepare' with different --file-total-size or --file-num values?", name_of(file),
      common.size(there), common.size(bytes))
  end
end

-- Opens the files, which all threads use.
function init()
  local mode, bytes = sysbench.opt.file_test_mode, file_bytes()
  if mode == "" then
    common.refuse("Missing required argument: --file-test-mode\n  hint: --file-test-mode=rndrw, or another of "
      .. "seqwr, seqrewr, seqrd, rndrd, rndwr")
  elseif not MODES[mode] then
    common.refuse("Invalid IO operations mode: %s.", mode)
  elseif sysbench.opt.validate then
    common.only("off", "validate", "on")
  end
  read_options()
  if blocks < 1 then
    common.refuse("--file-block-size=%d: wanted at most the size of a file\n  found: files of %.0f bytes\n"
      .. "  hint: fewer files by --file-num, or a larger --file-total-size", block, bytes)
  end
  local memory = common.memory(ffi.sizeof("dbdyno_files", files))
  shared = ffi.cast("dbdyno_files *", memory)
  shared.syncing = files
  for file = 0, files - 1 do
    if mode == "seqwr" then
      ffi.C.unlink(name_of(file))
      shared.descriptors[file] = open_file(file, bit.bor(READ_WRITE, CREATE))
    else
      shared.descriptors[file] = open_file(file, READ_WRITE)
      check_size(file, shared.descriptors[file], bytes)
    end
  end
  common.share(memory)
end

local READ, WRITE, SYNC = ffi.C.SB_CNT_READ, ffi.C.SB_CNT_WRITE, ffi.C.SB_CNT_OTHER
local lock, unlock, count = ffi.C.pthread_mutex_lock, ffi.C.pthread_mutex_unlock, ffi.C.sb_counter_inc
local pread, pwrite, uniform_double = ffi.C.pread, ffi.C.pwrite, sysbench.rand.uniform_double

function thread_init()
  shared = common.shared("dbdyno_files *")
  read_options()
  buffer = common.memory(block)
end

-- The kind of the next request and the place of its block over all files, or the file of a sync.
local function next_request()
  if shared.requests >= sync_every then
    shared.requests, shared.syncing = 0, 0
  end
  if shared.syncing < files then
    shared.syncing = shared.syncing + 1
    return SYNC, shared.syncing - 1
  end
  shared.requests = shared.requests + 1
  local place = shared.block
  if is_sequential then
    shared.block = (place + 1) % (files * blocks)
  else
    place = math.floor(uniform_double() * files * blocks)
  end
  if not writes or (is_mixed and shared.reads < ratio * shared.writes) then
    shared.reads = shared.reads + 1
    return READ, place
  end
  shared.writes = shared.writes + 1
  return WRITE, place
end

local function sync_file(file)
  if sync(shared.descriptors[file]) ~= 0 then
    failed("sync", file, 0)
  end
  count(0, SYNC)
end

function event()
  lock(shared.lock)
  local kind, place = next_request()
  unlock(shared.lock)
  if kind == SYNC then
    return sync_file(place)
  end
  local file = math.floor(place / blocks)
  local offset = (place - file * blocks) * block
  if kind == READ then
    if pread(shared.descriptors[file], buffer, block, offset) ~= block then
      failed("read", file, offset)
    end
  elseif pwrite(shared.descriptors[file], buffer, block, offset) ~= block then
    failed("write", file, offset)
  end
  count(0, kind)
  if syncs_each then
    sync_file(file)
  end
end

function thread_done()
  if writes and sysbench.opt.file_fsync_end and not syncs_each then
    for file = 0, files - 1 do
      sync_file(file)
    end
  end
end

-- The report.

local function periodic(opt)
  if opt.file_fsync_all then
    return "Calling fsync() after each write operation.\n"
  end
  local every = "Periodic FSYNC enabled, calling fsync() each %d requests.\n"
  return (opt.file_fsync_freq > 0 and every:format(opt.file_fsync_freq) or "")
    .. (opt.file_fsync_end and "Calling fsync() at the end of test, Enabled.\n" or "")
end

function sysbench.hooks.print_head()
  local opt, bytes = sysbench.opt, file_bytes()
  local requests = "Number of IO requests: %d\nRead/Write ratio for combined random IO test: %.2f\n"
  common.notice("Extra file open flags: %s\n%d files, %s each\n%s total file size\nBlock size %s\n%s%s"
    .. "Using synchronous I/O mode\nDoing %s test", flag_names(), opt.file_num, common.size(bytes),
    common.size(bytes * opt.file_num), common.size(opt.file_block_size),
    opt.file_test_mode:match("^rnd") and requests:format(opt.events, opt.file_rw_ratio) or "", periodic(opt),
    MODES[opt.file_test_mode])
end

local function rates(stat)
  local mebibytes = sysbench.opt.file_block_size / common.MIB
  local reads, writes = stat.reads / stat.time_interval, stat.writes / stat.time_interval
  return reads, writes, stat.other / stat.time_interval, reads * mebibytes, writes * mebibytes
end

function sysbench.hooks.report_intermediate(stat)
  local _, _, syncs, read, written = rates(stat)
  common.notice("[ %.0fs ] reads: %4.2f MiB/s writes: %4.2f MiB/s fsyncs: %4.2f/s latency (ms,%u%%): %4.3f",
    stat.time_total, read, written, syncs, sysbench.opt.percentile, stat.latency_pct * 1000)
end

function sysbench.hooks.print_results(stat)
  common.notice("\nFile operations:\n    reads/s:                      %4.2f\n    writes/s:                     %4.2f\n"
    .. "    fsyncs/s:                     %4.2f\n\nThroughput:\n    read, MiB/s:                  %4.2f\n"
    .. "    written, MiB/s:               %4.2f", rates(stat))
end
