//! One test for each target, and one for the corpus.

use super::run::Target;
use super::{corpus, targets};

/// Each target with its number of new inputs.
macro_rules! targets {
    ($($name:ident: $iterations:expr),* $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(
            #[test]
            fn $name() {
                let (run, tokens) = (targets::$name::run, targets::$name::TOKENS);
                Target { name: stringify!($name), run, tokens, iterations: $iterations }.run_all();
            }
        )*
    };
}

targets! {
    backoff: 20_000,
    config_file: 2_000,
    cron_line: 1_000,
    error_line: 10_000,
    hostile: 5_000,
    job_json: 10_000,
    job_lines: 1_000,
    log: 5_000,
    log_file: 3_000,
    name: 20_000,
    setting: 10_000,
    shell: 10_000,
    size: 20_000,
    span: 20_000,
    timestamp: 20_000,
}

#[test]
fn every_target_has_a_corpus_of_small_files_and_every_corpus_a_target() {
    assert_eq!(corpus::names(&corpus::folder()), NAMES);
    for target in NAMES {
        let inputs = corpus::inputs(target);
        assert!((1..=corpus::MAX_FILES).contains(&inputs.len()), "{target} has {} inputs", inputs.len());
        for (name, bytes) in inputs {
            assert!(bytes.len() <= corpus::MAX_BYTES, "{target}/{name} has {} bytes", bytes.len());
        }
    }
}
