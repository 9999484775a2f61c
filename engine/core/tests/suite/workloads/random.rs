//! Random draws against sysbench's own numbers and against the exact laws.

use dbdyno_core::random::{
    C_FORMAT, Distribution, GlibcRandom, PAD_FORMAT, Random, Sampler, Seeding, UniqueSequence,
};

const GAUSSIAN: Distribution = Distribution::Gaussian { iterations: 12 };
const PARETO: Distribution = Distribution::Pareto { h: 0.2 };

fn special() -> Distribution {
    Distribution::default()
}

/// Main thread of a process with an unseeded C library, as in sysbench's `prepare`.
fn main_thread() -> Random {
    Random::from_glibc(&mut GlibcRandom::new(1))
}

#[test]
fn main_thread_and_worker_begin_as_in_sysbench() {
    let mut libc_random = GlibcRandom::new(1);
    let mut random = Random::from_glibc(&mut libc_random);
    assert_eq!(random.uniform(1, 1_000_000), 811_644);
    assert_eq!(random.next_u64(), 6_937_875_558_910_519_049);
    let unique = UniqueSequence::from_glibc(&mut libc_random);
    assert_eq!([unique.draw(), unique.draw()], [2_672_933_100, 2_916_245_674]);
    let mut worker = Random::from_glibc(&mut GlibcRandom::new(7));
    assert_eq!(worker.uniform(1, 1_000_000), 539_748);
}

/// Rows 1 and 2 as written by `prepare`: c, pad, k.
fn prepared_rows(distribution: Distribution, table_size: u32) -> [(String, String, u32); 2] {
    let mut random = main_thread();
    [(); 2].map(|()| {
        let (mut c, mut pad) = (C_FORMAT.to_vec(), PAD_FORMAT.to_vec());
        random.fill_string(C_FORMAT, &mut c);
        random.fill_string(PAD_FORMAT, &mut pad);
        let k = distribution.over(1, table_size).draw(&mut random);
        (String::from_utf8(c).unwrap(), String::from_utf8(pad).unwrap(), k)
    })
}

#[test]
fn prepared_rows_are_those_seen_all_over_the_web() {
    let [(c, pad, k), _] = prepared_rows(special(), 10_000);
    assert_eq!(
        c,
        "83868641912-28773972837-60736120486-75162659906-27563526494-20381887404-\
         41576422241-93426793964-56405065102-33518432330"
    );
    assert_eq!(pad, "67847967377-48000963322-62604785301-91415491898-96926520291");
    assert_eq!(k, 4993);
}

#[test]
fn prepared_k_of_both_personas() {
    for (size, first, second) in [
        (10_000, 4_993, 5_020),
        (100_000, 49_929, 50_198),
        (1_000_000, 499_284, 501_969),
        (10_000_000, 4_992_833, 5_019_684),
    ] {
        let [one, two] = prepared_rows(special(), size);
        assert_eq!((one.2, two.2), (first, second), "special, {size} rows");
    }
    for (size, first) in [(50, 22), (10_000, 4_284), (100_000, 42_833), (1_000_000, 428_329)] {
        let [row, _] = prepared_rows(Distribution::Uniform {}, size);
        assert_eq!(row.2, first, "uniform, {size} rows");
    }
}

#[test]
fn connections_are_seeded_like_the_threads_of_sysbench() {
    let mut libc_random = GlibcRandom::new(7);
    for mut ours in Seeding::Sysbench.streams(7).take(3) {
        let mut theirs = Random::from_glibc(&mut libc_random);
        assert_eq!(ours.uniform(1, 1_000_000), theirs.uniform(1, 1_000_000));
        ours.end_event();
        theirs.next_u64();
        assert_eq!(ours.next_u64(), theirs.next_u64(), "one value goes to the histogram");
    }
}

#[test]
fn streams_take_no_value_after_an_event() {
    let mut random = Seeding::Streams.streams(7).nth(3).expect("streams do not end");
    let mut plain = Random::for_stream(7, 3);
    random.end_event();
    assert_eq!(random.next_u64(), plain.next_u64());
}

/// FNV-1a of the draws joined by commas, the digest of the transcript below.
fn digest(values: impl Iterator<Item = String>) -> u64 {
    let text = values.collect::<Vec<_>>().join(",");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Debian's sysbench 1.0.20, `--rand-seed=7 --threads=1 --events=1`, a script whose event prints
/// 8 uniform(1,1000000), 2000 gaussian(1,100000), 5000 special(1,100000), 2000 pareto(1,100000),
/// 200 special(5,7) and 20 string("#@-##x") in this order.
#[test]
fn nine_thousand_draws_equal_those_of_sysbench_1_0_20() {
    let mut random = Random::from_glibc(&mut GlibcRandom::new(7));
    let mut draws = |law: Sampler, count: usize| {
        digest(
            (0..count).map(|_| law.draw(&mut random).to_string()).collect::<Vec<_>>().into_iter(),
        )
    };
    assert_eq!(draws(Distribution::Uniform {}.over(1, 1_000_000), 8), 0x242c_3782_d5ca_6622);
    assert_eq!(draws(GAUSSIAN.over(1, 100_000), 2000), 0x9657_f6b2_9744_e9b6);
    assert_eq!(draws(special().over(1, 100_000), 5000), 0x0ae1_d182_c2f7_f71b);
    assert_eq!(draws(PARETO.over(1, 100_000), 2000), 0xe959_8204_f908_f9be);
    assert_eq!(draws(special().over(5, 7), 200), 0x09b9_9ee1_ee0a_e500);
    let mut text = [0; 6];
    let strings = (0..20).map(|_| {
        random.fill_string(b"#@-##x", &mut text);
        String::from_utf8(text.to_vec()).unwrap()
    });
    assert_eq!(digest(strings), 0x8e63_c6eb_410d_6ed2);
}

#[test]
fn bounds_wrap_as_in_sysbench() {
    let mut random = main_thread();
    assert_eq!(random.uniform(0, u32::MAX), 0, "a width of 2^32 is a width of 0");
    assert_eq!(random.uniform(9, 9), 9);
    for distribution in [special(), GAUSSIAN, PARETO, Distribution::Zipfian { exponent: 0.8 }] {
        assert_eq!(distribution.over(9, 9).draw(&mut random), 9, "{distribution:?}");
        // An invalid range must not panic in the middle of a run.
        distribution.over(2, 1).draw(&mut random);
    }
}

#[test]
fn streams_are_reproducible_and_differ() {
    let first = |seed, stream| Random::for_stream(seed, stream).next_u64();
    assert_eq!(first(1, 2), first(1, 2));
    let mut seen: Vec<u64> =
        (0..100).flat_map(|seed| (0..100).map(move |stream| first(seed, stream))).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 10_000);
}

#[test]
fn unique_values_do_not_repeat() {
    let unique = UniqueSequence::from_glibc(&mut GlibcRandom::new(3));
    let mut seen: Vec<u32> = (0..200_000).map(|_| unique.draw()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 200_000);
}

#[test]
fn a_distribution_reads_as_it_stands_in_a_plan() {
    let read = |text| serde_json::from_str::<Distribution>(text);
    let full = r#"{"name":"special","iterations":12,"percent":1,"result":75}"#;
    assert_eq!(read(full).unwrap(), special());
    assert_eq!(serde_json::to_string(&special()).unwrap(), full);
    assert_eq!(read(r#"{"name":"special"}"#).unwrap(), special());
    assert_eq!(read(r#"{"name":"uniform"}"#).unwrap(), Distribution::Uniform {});
    assert!(read(r#"{"name":"uniform","iterations":12}"#).is_err());
    assert!(read(r#"{"name":"normal"}"#).is_err());
}

#[test]
fn unusable_parameters_are_named() {
    let all_wrong = Distribution::Special { iterations: 0, percent: 101, result: 100 };
    assert_eq!(
        all_wrong.mistakes(),
        [
            "iterations must be at least 1, not 0",
            "percent must be from 0 to 100, not 101",
            "result must be from 0 to 99, not 100"
        ]
    );
    assert_eq!(Distribution::Pareto { h: 1.0 }.mistakes().len(), 1);
    assert_eq!(Distribution::Zipfian { exponent: f64::NAN }.mistakes().len(), 1);
    assert_eq!(special().mistakes(), Vec::<String>::new());
}

const DRAWS: u32 = 200_000;

/// Chi-square of `DRAWS` draws of `1..=size` against `cumulative(value)`, and the bound that chance
/// alone passes once in 10,000 times. Values expected fewer than ten times are pooled with their
/// neighbours. The seed is fixed, so the outcome is the same on every machine.
fn chi_square(
    distribution: Distribution,
    size: u32,
    cumulative: impl Fn(u32) -> f64,
) -> (f64, f64) {
    let law = distribution.over(1, size);
    let mut random = Random::for_stream(20_260_101, u64::from(size));
    let mut counts = vec![0_u32; size as usize + 1];
    for _ in 0..DRAWS {
        counts[law.draw(&mut random) as usize] += 1;
    }
    let (mut square, mut cells, mut before) = (0.0, 0_u32, 0.0);
    let mut seen = 0;
    for value in 1..=size {
        seen += counts[value as usize];
        let expected = (cumulative(value) - before) * f64::from(DRAWS);
        let rest = (1.0 - cumulative(value)) * f64::from(DRAWS);
        if (expected >= 10.0 && rest >= 10.0) || value == size {
            square += (f64::from(seen) - expected).powi(2) / expected;
            cells += 1;
            before = cumulative(value);
            seen = 0;
        }
    }
    assert!((cumulative(size) - 1.0).abs() < 1e-9, "the law itself must sum to 1");
    assert!(cells > 10, "too few cells to say anything");
    (square, chi_square_bound(f64::from(cells - 1)))
}

fn assert_follows(distribution: Distribution, size: u32, cumulative: impl Fn(u32) -> f64) {
    let (square, bound) = chi_square(distribution, size, cumulative);
    assert!(square < bound, "{distribution:?}: chi-square {square} > {bound}");
}

fn assert_differs(distribution: Distribution, size: u32, cumulative: impl Fn(u32) -> f64) {
    let (square, bound) = chi_square(distribution, size, cumulative);
    assert!(square > bound, "{distribution:?}: chi-square {square}, bound {bound}");
}

/// The 99.99 % point (Wilson and Hilferty, PNAS 17 (1931), 684-688).
fn chi_square_bound(freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + 3.719 * part.sqrt()).powi(3)
}

/// Distribution function of the sum of `n` uniform draws of [0, 1) (Irwin and Hall, 1927).
fn irwin_hall(n: u32, x: f64) -> f64 {
    let (mut sum, mut binomial, mut factorial) = (0.0, 1.0, 1.0);
    for k in 0..=n {
        let term = (x - f64::from(k)).max(0.0);
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        sum += sign * binomial * term.powi(n as i32);
        binomial *= f64::from(n - k) / f64::from(k + 1);
        factorial *= f64::from(k.max(1));
    }
    sum / factorial
}

#[test]
fn uniform_follows_its_law() {
    assert_follows(Distribution::Uniform {}, 1000, |value| f64::from(value) / 1000.0);
}

#[test]
fn gaussian_follows_its_law() {
    for iterations in [1, 2, 12] {
        assert_follows(Distribution::Gaussian { iterations }, 1000, |value| {
            irwin_hall(iterations, f64::from(iterations) * f64::from(value) / 1000.0)
        });
    }
}

/// Law of `special`; `reached` is the part of the zone's width, from its end, covered by draws.
fn special_law(size: u32, percent: u32, result: u32, reached: f64) -> impl Fn(u32) -> f64 {
    let (span, common) = (f64::from(size - 1), 1.0 - f64::from(result) / 100.0);
    let zone = span * f64::from(percent) / 100.0;
    let start = span / 2.0 - zone / 2.0;
    move |value| {
        let edge = f64::from(value);
        let around = irwin_hall(12, 12.0 * (edge / span).min(1.0));
        let within = ((edge - start) / (zone + 1.0) - (1.0 - reached)) / reached;
        common * around + (1.0 - common) * within.clamp(0.0, 1.0)
    }
}

#[test]
fn special_follows_its_law() {
    for (percent, result) in [(1, 75), (20, 75), (20, 50), (5, 90)] {
        let distribution = Distribution::Special { iterations: 12, percent, result };
        // The draw that chose the zone is reused, so its lowest values never come.
        let reached = f64::from(result) / 100.0;
        assert_follows(distribution, 2001, special_law(2001, percent, result, reached));
    }
}

#[test]
fn laws_that_are_nearly_right_are_told_apart() {
    let special = Distribution::Special { iterations: 12, percent: 20, result: 75 };
    assert_differs(special, 2001, special_law(2001, 20, 75, 1.0));
    assert_differs(Distribution::Uniform {}, 1000, |value| (f64::from(value) / 1000.0).powf(1.1));
    assert_differs(PARETO, 5000, |value| (f64::from(value) / 5000.0).powf(0.18));
    assert_differs(Distribution::Gaussian { iterations: 11 }, 1000, |value| {
        irwin_hall(12, 12.0 * f64::from(value) / 1000.0)
    });
    assert_differs(Distribution::Zipfian { exponent: 0.82 }, 1000, zipf_law(1000, 0.8));
}

#[test]
fn pareto_follows_its_law() {
    for h in [0.05, 0.2, 0.4] {
        let inverse_power = f64::ln(1.0 - h) / f64::ln(h);
        let law = |value| (f64::from(value) / 5000.0).powf(inverse_power);
        assert_follows(Distribution::Pareto { h }, 5000, law);
    }
}

fn zipf_law(size: usize, exponent: f64) -> impl Fn(u32) -> f64 {
    let mut sums = vec![0.0];
    for rank in 1..=size {
        sums.push(sums[rank - 1] + (rank as f64).powf(-exponent));
    }
    move |value| sums[value as usize] / sums[size]
}

#[test]
fn zipfian_follows_its_law() {
    for exponent in [0.0, 0.8, 1.0, 1.5] {
        assert_follows(Distribution::Zipfian { exponent }, 1000, zipf_law(1000, exponent));
    }
}

#[test]
fn digits_of_a_string_are_uniform() {
    let mut random = Random::for_stream(5, 5);
    let mut counts = [0_u32; 10];
    let mut c = [0; C_FORMAT.len()];
    for _ in 0..1000 {
        random.fill_string(C_FORMAT, &mut c);
        c.iter()
            .filter(|byte| **byte != b'-')
            .for_each(|byte| counts[usize::from(byte - b'0')] += 1);
    }
    let square: f64 = counts.iter().map(|n| (f64::from(*n) - 11_000.0).powi(2) / 11_000.0).sum();
    assert_eq!(counts.iter().sum::<u32>(), 110_000);
    assert!(square < chi_square_bound(9.0), "{square}");
}
