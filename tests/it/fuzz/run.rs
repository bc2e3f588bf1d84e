//! Runs a target: first with every stored input, then with as many new inputs as take about a second.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use fastrand::Rng;

use super::{corpus, mutate};

const SEED: u64 = 1;

pub struct Target {
    /// The name of its folder in the corpus, and of its test.
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Fragments for new inputs.
    pub tokens: &'static [&'static str],
    pub iterations: u64,
}

impl Target {
    pub fn run_all(&self) {
        if let Some(path) = env::var_os("QUEUECTL_FUZZ_INPUT") {
            let path = PathBuf::from(path);
            self.run_one(&fs::read(&path).expect("the input is readable"), |_| path.clone());
            return;
        }
        let stored = corpus::inputs(self.name);
        for (name, input) in &stored {
            self.run_one(input, |_| corpus::folder().join(self.name).join(name));
        }
        let inputs: Vec<Vec<u8>> = stored.into_iter().map(|(_, input)| input).collect();
        let mut random = Rng::with_seed(number("QUEUECTL_FUZZ_SEED").unwrap_or(SEED));
        for _ in 0..number("QUEUECTL_FUZZ_ITERATIONS").unwrap_or(self.iterations) {
            self.run_one(&mutate::mutate(&mut random, &inputs, self.tokens), |input| self.save(input));
        }
    }

    /// Runs one input. If it fails, prints the input and the command that repeats it.
    fn run_one(&self, input: &[u8], path: impl FnOnce(&[u8]) -> PathBuf) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.run)(input))) {
            self.report(input, &path(input));
            resume_unwind(panic);
        }
    }

    fn save(&self, input: &[u8]) -> PathBuf {
        let path = env::temp_dir().join(format!("queuectl-fuzz-{}-{}", self.name, process::id()));
        fs::write(&path, input).expect("the input is saved");
        path
    }

    fn report(&self, input: &[u8], path: &Path) {
        eprintln!(
            "`{}` fails for: {}\nTo repeat it: QUEUECTL_FUZZ_INPUT={} cargo test --test it -- --exact fuzz::tests::{}",
            self.name,
            input.escape_ascii(),
            path.display(),
            self.name
        );
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: `{text}`")))
}
