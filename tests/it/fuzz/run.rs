//! Trying a target: first every input that is kept, then as many new ones as it takes about a second to try.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use fastrand::Rng;

use super::{corpus, mutate};

const SEED: u64 = 1;

pub struct Target {
    /// Its folder in the corpus, and its test.
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// What its inputs are made of.
    pub tokens: &'static [&'static str],
    pub iterations: u64,
}

impl Target {
    pub fn try_all(&self) {
        if let Some(path) = env::var_os("QUEUECTL_FUZZ_INPUT") {
            let path = PathBuf::from(path);
            self.try_one(&fs::read(&path).expect("the input is readable"), |_| path.clone());
            return;
        }
        let kept = corpus::inputs(self.name);
        for (name, input) in &kept {
            self.try_one(input, |_| corpus::folder().join(self.name).join(name));
        }
        let inputs: Vec<Vec<u8>> = kept.into_iter().map(|(_, input)| input).collect();
        let mut random = Rng::with_seed(number("QUEUECTL_FUZZ_SEED").unwrap_or(SEED));
        for _ in 0..number("QUEUECTL_FUZZ_ITERATIONS").unwrap_or(self.iterations) {
            self.try_one(&mutate::mutated(&mut random, &inputs, self.tokens), |input| self.keep(input));
        }
    }

    /// Where this input makes it fail, says which it was and how to try it again.
    fn try_one(&self, input: &[u8], path: impl FnOnce(&[u8]) -> PathBuf) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.run)(input))) {
            self.tell(input, &path(input));
            resume_unwind(panic);
        }
    }

    fn keep(&self, input: &[u8]) -> PathBuf {
        let path = env::temp_dir().join(format!("queuectl-fuzz-{}-{}", self.name, process::id()));
        fs::write(&path, input).expect("the input is kept");
        path
    }

    fn tell(&self, input: &[u8], path: &Path) {
        eprintln!(
            "`{}` fails for: {}\nTo try it again: QUEUECTL_FUZZ_INPUT={} cargo test --test it -- --exact fuzz::tests::{}",
            self.name,
            input.escape_ascii(),
            path.display(),
            self.name
        );
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} takes a number, not `{text}`")))
}
