//! Hostile scripts without `ffi`: each ends with an error or a run, never with the death of the
//! process, which would be that of these tests.

use super::scripts::{dry, scripted};
use crate::support::server;
use dbdyno_core::reference;
use dbdyno_core::run::run;
use dbdyno_core::script::Script;
use dbdyno_core::spec::RunSpec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;

/// Statements of a hostile script. `FINALIZE(f)` lets the collector call `f`, `KEEP(f)` lets the
/// state's end do it, and `RECUR(call)` gives `call` a function that calls it again with itself,
/// without end.
const HOSTILE: [&str; 86] = [
    "FINALIZE(function() error('gc') end)",
    "FINALIZE(function() error({}) end)",
    "FINALIZE(function() error(setmetatable({}, {__tostring = error})) end)",
    "FINALIZE(function() error() end)",
    "FINALIZE('no function')",
    "FINALIZE(function() local function f() return 1 + f() end f() end)",
    "FINALIZE(function() coroutine.yield() end)",
    "FINALIZE(function() coroutine.wrap(error)('gc') end)",
    "FINALIZE(function() FINALIZE(function() error('inner') end) error('outer') end)",
    "FINALIZE(function() caught = coroutine.running() end) \
     if caught then coroutine.resume(caught) coroutine.wrap(coroutine.resume)(caught) end",
    "FINALIZE(function() local t = {} for i = 1, 1e5 do t[i] = {} end collectgarbage() error(t) end)",
    "FINALIZE(function() con:query('SELECT 1') end)",
    "FINALIZE(function() con:query('SELECT 1') error('gc') end)",
    "FINALIZE(function() con:disconnect() end)",
    "for _ = 1, 2000 do FINALIZABLE(function() error('many') end) end",
    "for _ = 1, 2000 do FINALIZABLE(function() error('many') end) end collectgarbage()",
    "coroutine.wrap(function() FINALIZE(function() error('gc') end) end)()",
    "pcall(FINALIZE, function() error('gc') end) error('more')",
    "KEEP(function() error('close') end)",
    "KEEP(function() local function f() return 1 + f() end f() end)",
    "KEEP(function() KEEP(function() error('again') end) end)",
    "KEEP(function() con:query('SELECT 1') end)",
    "KEEP(function() con:disconnect() end)",
    "KEEP(function() coroutine.wrap(function() con:query('SELECT 1') end)() end)",
    "KEEP(function() RECUR(function(f) return (('x'):gsub('x', f)) end) end)",
    "getmetatable(io.stdout).__gc = function() error('file') end \
     local file = io.open('/proc/self/status') file = nil collectgarbage()",
    "local gc = getmetatable(io.stdout).__gc FINALIZE(gc) pcall(gc) pcall(gc, 1)",
    "error(setmetatable({}, {__tostring = function() error('text') end}))",
    "error(setmetatable({}, {__tostring = function() return {} end}))",
    "error()",
    "error('\\0\\255\\27[31m')",
    "error(string.rep('x', 1e6))",
    "debug.sethook(function() error('hook') end, '', 1) local x = 1",
    "debug.sethook(function() coroutine.yield() end, '', 1) local x = 1",
    "debug.sethook(function() con:query('SELECT 1') end, '', 10) for i = 1, 100 do local x = i end debug.sethook()",
    "debug.sethook(function() RECUR(function(f) table.sort({1, 2}, f) end) end, 'l') local x\nx = 1",
    "debug.sethook(function() end, 'crl', 1) FINALIZE(function() error('gc') end)",
    "local function f() return 1 + f() end f()",
    "xpcall(error, function(e) error(e) end)",
    "RECUR(function(f) return xpcall(f, f) end)",
    "coroutine.yield(1)",
    "local c c = coroutine.create(function() return coroutine.resume(c) end) coroutine.resume(c)",
    "local c = coroutine.create(function() con:query('SELECT 1') coroutine.yield() end) coroutine.resume(c)",
    "for i = 1, 2e3 do FINALIZABLE(function() local t = {} for j = 1, 50 do t[j] = j end error('trace') end) end",
    "jit.attach(function() if con then con:query('SELECT 1') end end, 'trace') for i = 1, 1e4 do local x = i end",
    "jit.attach(function() if con then con:query('SELECT 1') end end, 'errfin') FINALIZE(function() error('gc') end)",
    "getmetatable('').__index = error local x = ('x').y",
    "setfenv(0, {})",
    "sysbench = nil event = nil",
    "sysbench.hooks.before_restart_event = 1 error({errcode = sysbench.error.RESTART_EVENT})",
    "loadstring('return ' .. string.rep('(', 1e5))() ",
    "string.find(string.rep('a', 1e5), string.rep('a?', 1e4) .. 'b')",
    "collectgarbage('setpause', 0) collectgarbage('setstepmul', 1e6) for i = 1, 1e3 do local t = {} end",
    "con:query(nil) con.query(nil, {}) con:prepare('SELECT ?'):execute()",
    "local s = con:prepare('SELECT 1') s.connection = nil s:execute()",
    "local s = con:prepare('SELECT ?') s:bind_param(s:bind_create(3)) s.bound = 1e8 s:execute()",
    "con.result = nil con:query('SELECT 1')",
    "con.number = 1e6 con:query('SELECT 1')",
    "local p = con:prepare('SELECT ?'):bind_create(11, 9) p.max_len = 1e9 p:set_rand_str(('x'):rep(1e7))",
    "local p = con:prepare('SELECT ?'):bind_create(11, 9) math.min = function() return 1e9 end p:set('x')",
    "error(con:query('SET @a = 1').nrows .. tostring(con:query('SELECT 1')[1e12].nrows))",
    "local t = newproxy(true) getmetatable(t).__len = function() return 1e12 end con:query(t)",
    "local t = newproxy(true) getmetatable(t).__len = function() return 5e8 end sysbench.rand.string(t)",
    "local s = con:prepare('SELECT ?') s:bind_param(s:bind_create(3)) pcall(s.bind_param, s, io.stdout) s:execute()",
    "con:prepare('SELECT 1').execute(io.stdout)",
    "con:disconnect() con:next_result() con:more_results() con:last_insert_id() con.sql_errmsg = nil",
    "loadstring('\\27LJ\\2')",
    "assert(load(string.dump(function() end, true)))",
    "assert(load(coroutine.wrap(function() coroutine.yield('\\27') coroutine.yield('LJ\\2') end)))",
    "load('return 1', 'x', 'tX')()",
    "setmetatable(_G, {__index = function(_, name) error(name) end})",
    "setmetatable(_G, {__index = function() RECUR(function(f) return (('x'):gsub('x', f)) end) end}) event = nil",
    "setmetatable(sysbench.hooks, {__index = error}) error({errcode = sysbench.error.RESTART_EVENT})",
    "for _, draw in pairs(sysbench.rand) do pcall(draw, 9, 1) pcall(draw, -1, 0 / 0) pcall(draw, 2 ^ 32, '7') end",
    "for _, f in pairs(sysbench) do pcall(f, 0, 1e12, 2, true) pcall(f, {}) end",
    "for _, library in pairs({string, table, coroutine, math, bit, jit}) do for name, f in pairs(library) do \
     pcall(f, '%s', 1e3, -1) pcall(f, {}, f) end end",
    "jit.opt.start('hotloop=1', 'hotexit=1', 'minstitch=1') for i = 1, 200 do local x = {i} end",
    "jit.opt.start('maxtrace=1', 'maxrecord=1', 'maxirconst=1', 'maxsnap=1', 'sizemcode=1', 'maxmcode=1') \
     for i = 1, 200 do local x = {i} end",
    "jit.flush() jit.off() jit.on() for i = 1, 200 do local x = i if i == 100 then jit.flush() end end",
    "local s = con:prepare('SELECT ?') local hook = function() error('between') end \
     for at = 1, 60 do local p = s:bind_create(3) debug.sethook(hook, '', at) pcall(s.bind_param, s, p) debug.sethook() \
     p = nil collectgarbage() pcall(s.execute, s) end",
    "local c = coroutine.wrap(function() pcall(error, 'x', coroutine.yield()) error({}) end) c() pcall(c) pcall(c)",
    "local c = coroutine.create(function() while true do coroutine.yield() end end) \
     FINALIZE(function() coroutine.resume(c) end) coroutine.resume(c) c = nil collectgarbage()",
    "local t = setmetatable({}, {__mode = 'k', __gc = error}) t[FINALIZABLE(function() t = nil end)] = {} collectgarbage()",
    "debug.traceback(coroutine.create(function() end), string.rep('x', 1e5), 1e9) debug.traceback('x', -5)",
    "string.format('%99.99f %s %q', 1e308, string.rep('x', 1e5), '\\0\\r\\n') string.rep('x', 2 ^ 31)",
    "local b = require('string.buffer').new() FINALIZE(function() b:put(('x'):rep(1e5)) b:free() b:put(b) end) b:decode()",
];

/// Ways to run one or two statements within another, where `WORK` stands for them.
const AROUND: [&str; 19] = [
    "pcall(function() WORK end) WORK",
    "xpcall(function() WORK end, function() WORK end)",
    "FINALIZE(function() WORK end)",
    "KEEP(function() WORK end)",
    "FINALIZE(function() pcall(function() WORK end) coroutine.wrap(function() WORK end)() end)",
    "coroutine.wrap(function() WORK end)()",
    "local c = coroutine.create(function() WORK coroutine.yield() WORK end) coroutine.resume(c) coroutine.resume(c)",
    "local c = coroutine.create(function() pcall(coroutine.yield) WORK end) coroutine.resume(c) \
     FINALIZE(function() coroutine.resume(c) end)",
    "local c = coroutine.wrap(function() pcall(function() coroutine.yield() WORK end) coroutine.yield() end) \
     c() c() KEEP(c)",
    "debug.sethook(function() WORK end, 'l') local x\nx = 1\nWORK\ndebug.sethook()",
    "debug.sethook(function() WORK end, 'cr', 3) tostring(1) WORK debug.sethook()",
    "debug.sethook(function() pcall(function() WORK end) end, '', 7) WORK",
    "error(setmetatable({}, {__tostring = function() WORK end}))",
    "local t = setmetatable({}, {__index = function() WORK end, __lt = function() WORK end}) local x = t < t or t.x",
    "for _ = 1, 70 do pcall(function() WORK end) end",
    "for _ = 1, 70 do WORK end",
    "local _ = ('x'):gsub('x', function() WORK end)",
    "table.sort({3, 1, 2}, function(a, b) WORK return a < b end)",
    "load(function() WORK end)",
];

const TOOLS: &str = "
    kept = {}
    function FINALIZABLE(f) local p = newproxy(true) getmetatable(p).__gc = f return p end
    function FINALIZE(f) FINALIZABLE(f) collectgarbage() end
    function KEEP(f) kept[#kept % 3 + 1] = FINALIZABLE(f) end
    function RECUR(call) local function f() return call(f) end return f() end
    local steps = 0
    function STEP() steps = steps + 1 if steps > 300 then error('enough') end end
";

/// Ways to call a script back, each calling it again.
const CALLING_BACK: [&str; 18] = [
    "return (('x'):gsub('x', f))",
    "return (string.gsub('x', 'x', setmetatable({}, {__index = f})))",
    "table.sort({1, 2}, f)",
    "local mt = {__lt = f} table.sort({setmetatable({}, mt), setmetatable({}, mt)})",
    "table.foreach({1}, f)",
    "table.foreachi({1}, f)",
    "load(f)",
    "load(function() return f() end)()",
    "package.preload.again = f package.loaded.again = nil require('again')",
    "package.loaded.again = nil package.loaders[1] = f require('again')",
    "module('again', f)",
    "print(setmetatable({}, {__tostring = f}))",
    "return string.format('%s', setmetatable({}, {__tostring = f}))",
    "return os.time(setmetatable({sec = 0, min = 0, hour = 0, day = 1, month = 1}, {__index = f}))",
    "coroutine.wrap(f)()",
    "coroutine.resume(coroutine.create(f))",
    "assert(coroutine.resume(coroutine.create(f)))",
    "require('string.buffer').new():put(setmetatable({}, {__tostring = f}))",
];

/// Loads and runs a script like the command `run`; returns its errors.
fn raised(spec: &RunSpec) -> Vec<String> {
    let script = spec.script.as_ref().expect("it is a script's");
    let mut main = match Script::load(script) {
        Ok(main) => main,
        Err(failure) => return vec![failure.message],
    };
    let mut call = |name: &str| {
        if main.defines(name) { main.call(name).err() } else { None }
    };
    let of_init = call("init");
    let record = run(spec, &AtomicBool::new(false), &mut |_| {});
    let of_run = record.map_or_else(Some, |record| record.failure);
    let of_done = call("done");
    [of_init, of_run, of_done].into_iter().flatten().map(|failure| failure.message).collect()
}

/// A script that repeats `work` as an event.
fn in_event(work: &str) -> String {
    format!("{TOOLS} function event() con:query('SELECT 1') do {work} end return true end")
}

fn short() -> Value {
    json!({"window_s": 30, "connections": 1})
}

fn at(server: &reference::Reference) -> Value {
    json!({"endpoint": {"host": "127.0.0.1", "port": server.port},
        "user": server.login().user, "password": server.login().password, "database": "sbtest"})
}

#[test]
fn what_a_finalizer_raises_ends_its_thread_with_these_words() {
    let work = [
        "FINALIZE(function() error('gc') end)",
        "local raised = FINALIZABLE(function() error('gc') end) raised = nil for i = 1, 1e6 do kept[i % 9] = {i} end",
    ];
    for work in work {
        for phase in ["thread_init", "event", "thread_done"] {
            let source =
                format!("{TOOLS} function event() return true end function {phase}() {work} end");
            let told = raised(&dry(&source, &short())).concat();
            // An error of `thread_done` is printed alone, as in sysbench.
            let is_told = told.ends_with(": gc");
            assert_eq!(is_told, phase != "thread_done", "{phase}: {told}");
        }
    }
}

#[test]
fn a_thread_that_waits_within_compiled_code_can_be_given_up() {
    let source = format!(
        "{TOOLS}
        local statements = 0
        function event()
            KEEP(function() error('close') end)
            for _ = 1, 1000 do
                statements = statements + 1
                if sysbench.tid == 1 and statements > 5000 then error('given up', 0) end
                con:query('SELECT 1')
            end
        end"
    );
    let server = server(reference::Script::default());
    let two = json!({"window_s": 30, "connections": 2});
    let told = raised(&scripted(&source, &at(&server), &two));
    assert_eq!(told, ["`thread_run' function failed: given up"]);
}

#[test]
fn a_script_can_catch_what_a_finalizer_raises_and_keeps_its_hook() {
    let source = "
        local mine = function() end
        debug.sethook(mine, 'l', 9)
        local ok, raised = pcall(FINALIZE, function() error({}) end)
        local hook, mask, count = debug.gethook()
        error(type(raised) .. tostring(ok) .. mask .. count .. tostring(hook == mine), 0)";
    let told = raised(&dry(&in_event(source), &short()));
    assert_eq!(told, ["`thread_run' function failed: tablefalsel9true"]);
}

#[test]
fn calls_within_calls_end_before_their_stack() {
    for work in CALLING_BACK {
        let work = format!("pcall(RECUR, function(f) {work} end) error('survived', 0)");
        for source in [in_event(&work), format!("{TOOLS} {work}")] {
            let told = raised(&dry(&source, &short())).concat();
            assert!(told.ends_with("survived") || told.contains("memory"), "{work}: {told}");
        }
    }
}

#[test]
fn no_event_ends_the_process() {
    let server = server(reference::Script::default());
    for work in HOSTILE {
        raised(&scripted(&in_event(work), &at(&server), &short()));
    }
}

#[test]
fn bytecode_is_not_loaded() {
    let file = std::env::temp_dir().join(format!("bytecode{}.lua", std::process::id()));
    let path = file.display();
    let ways = [
        "assert(loadstring(code))".to_owned(),
        "assert(load(code, 'x', 'bt'))".to_owned(),
        "assert(load(function() local all = code code = nil return all end))".to_owned(),
        format!("assert(loadfile('{path}', 'b'))"),
        format!("dofile('{path}')"),
        format!("package.path = '{path}' require('any')"),
    ];
    let compiled = format!(
        "
        code = string.dump(function() end)
        local file = io.open('{path}', 'w') file:write(code) file:close()"
    );
    for way in ways {
        let told = raised(&dry(&format!("{compiled} {way}"), &short())).concat();
        assert!(told.contains("bytecode is not loaded"), "{way}: {told}");
    }
    std::fs::remove_file(&file).unwrap();
    let mut spec = dry("", &short());
    spec.script.as_mut().unwrap().source = "\u{1b}LJ".to_owned();
    assert!(raised(&spec).concat().contains("bytecode is not loaded"));
}

/// LuaJIT would begin to compile, call back, and go on with what the callback has changed.
#[test]
fn nothing_is_called_back_while_luajit_compiles() {
    let source = "
        jit.opt.start('hotloop=1', 'hotexit=1')
        local calls = 0
        local function work()
          for k = 1, 5 do local x for i = 1, 100 do x = i + k end end
        end
        pcall(jit.attach, function()
          calls = calls + 1
          work()
          if calls % 7 == 0 then jit.flush() end
        end, 'trace')
        function event()
          for k = 1, 300 do
            loadstring('local x = 0 for i = 1, 50 do if i % 2 == 0 then x = x + ' .. k .. ' else x = x - 1 end end')()
            work()
          end
          return true
        end";
    assert_eq!(raised(&dry(source, &short())), Vec::<String>::new());
}

#[test]
fn a_lookup_of_the_engine_s_may_call_the_script() {
    for (lookup, wanted) in [
        ("error('unknown ' .. name, 0)", "`init' function failed: unknown init"),
        ("RECUR(function(f) return (('x'):gsub('x', f)) end)", "C stack overflow"),
    ] {
        let source = format!(
            "{TOOLS} setmetatable(_G, {{__index = function(_, name)
                if name == 'init' then {lookup} end
            end}})"
        );
        let told = raised(&dry(&source, &short())).concat();
        assert!(told.contains(wanted), "{told}");
    }
}

/// Each ends with an error, after which the handle is as good as before.
#[test]
fn fields_of_handles_cannot_be_written() {
    let handles = [
        ("con", &["number", "is_open", "session", "error", "sql_state", "driver", "mine"][..]),
        ("statement", &["connection", "connection_at", "on", "id", "session", "binds_at"][..]),
        ("param", &["type", "is_null", "max_len", "data_len", "text_at", "buffer"][..]),
        ("result", &["counter", "nrows", "nfields", "is_live", "number"][..]),
        ("con.driver", &["sname", "number"][..]),
    ];
    for (handle, fields) in handles {
        for field in fields {
            let source = format!(
                "local statement = con:prepare('SELECT ?')
                local param = statement:bind_create(sysbench.sql.type.INT)
                statement:bind_param(param)
                local result = con:query('SET @a = 1')
                local wrote = pcall(function() {handle}.{field} = nil end)
                    or pcall(function() {handle}.{field} = 7 end)
                param:set(1)
                statement:execute()
                con:query('SELECT 1')
                error(tostring(wrote) .. tostring(result == nil) .. tostring(not result), 0)"
            );
            let told = raised(&dry(&in_event(&source), &short()));
            assert_eq!(told, ["`thread_run' function failed: falsetruefalse"], "{handle}.{field}");
        }
    }
}

/// Hostile statements, alone and within each other. LuaJIT's own checks, which releases lack, refuse
/// the error of a coroutine within a hook.
fn work() -> impl Strategy<Value = String> {
    let alone = select(HOSTILE.as_slice()).prop_map(|work| format!("do STEP() {work} end"));
    alone.prop_recursive(3, 12, 2, |inner| {
        (select(AROUND.as_slice()), proptest::collection::vec(inner, 2)).prop_map(
            |(around, works)| {
                let is_hook = around.contains("sethook") && works.concat().contains("coroutine");
                let around = if is_hook { AROUND[0] } else { around };
                let source = around.replacen("WORK", &works[0], 1).replace("WORK", &works[1]);
                format!("do STEP() {source} end")
            },
        )
    })
}

/// Mixtures of a quick test; `DBDYNO_SEEDS` sets another number.
fn mixtures() -> u32 {
    std::env::var("DBDYNO_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40)
}

/// Prints a source: with `--nocapture`, the last is that of the process's end.
#[expect(clippy::print_stdout, reason = "a process that is killed leaves no other trace of it")]
fn tell(source: &str) {
    println!("{source}\n");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: mixtures(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mixture_ends_the_process(
        works in proptest::collection::vec(work(), 7),
        is_caught in any::<bool>(),
        is_dry in any::<bool>(),
    ) {
        let mut source = format!("{TOOLS} local connect = thread_init\n");
        let phases = ["init", "thread_init", "event", "thread_done", "done"];
        for (phase, work) in phases.iter().zip(&works) {
            let work = if is_caught { format!("pcall(function() {work} end)") } else { work.clone() };
            let con = if *phase == "thread_init" { "connect()" } else { "" };
            source += &format!("function {phase}() {con} do {work} end return true end\n");
        }
        source += &format!("local event_itself = event function event() {} return event_itself() end", works[5]);
        tell(&source);
        if is_dry {
            raised(&dry(&source, &short()));
        } else {
            let server = server(reference::Script::default());
            raised(&scripted(&source, &at(&server), &short()));
        }
    }
}
