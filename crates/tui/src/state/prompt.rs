//! A line that the user types: a filter, a text to find, or a command line.

use super::{Effect, Mode, State};
use crate::actions::{is_endless, is_reading, split_words};
use crate::data::snapshot::Rows;
use crate::tab::Tab;
use crate::terminal::Key;
use domain::text::shell::quote_words;
use ops::jobs::list::filter_text::{FilterText, TERMS};
use store::Phase;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptKind {
    Filter,
    Find,
    Line,
}

/// The cursor is at the end of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) kind: PromptKind,
    pub(crate) text: String,
    /// What the last word can become.
    pub(crate) candidates: Vec<String>,
}

impl Prompt {
    pub(crate) fn new(kind: PromptKind, text: &str) -> Self {
        Self { kind, text: text.to_owned(), candidates: Vec::new() }
    }

    pub(crate) fn mark(&self) -> char {
        match self.kind {
            PromptKind::Filter | PromptKind::Find => '/',
            PromptKind::Line => ':',
        }
    }

    /// The last word, where a candidate goes.
    fn last_word(&self) -> &str {
        self.text.rsplit(' ').next().unwrap_or_default()
    }

    fn complete(&mut self, candidates: Vec<String>) {
        let typed = self.last_word().to_owned();
        let fitting: Vec<String> =
            candidates.into_iter().filter(|candidate| candidate.starts_with(&typed)).collect();
        let common = common_start(&fitting);
        if common.len() > typed.len() {
            self.text.truncate(self.text.len() - typed.len());
            self.text.push_str(&common);
        }
        if let [only] = fitting.as_slice() {
            if !only.ends_with(':') {
                self.text.push(' ');
            }
            self.candidates.clear();
        } else {
            self.candidates = fitting;
        }
    }
}

/// The longest text that all of these begin with.
fn common_start(texts: &[String]) -> String {
    let Some((first, rest)) = texts.split_first() else {
        return String::new();
    };
    let is_common = |length: &usize| rest.iter().all(|text| text.starts_with(&first[..*length]));
    let lengths: Vec<usize> = first.char_indices().map(|(at, _)| at).chain([first.len()]).collect();
    let longest = lengths.into_iter().rev().find(is_common).unwrap_or(0);
    first[..longest].to_owned()
}

impl State {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key means nothing")]
    pub(super) fn prompt_key(&mut self, mut prompt: Prompt, key: Key) -> Option<Effect> {
        match key {
            Key::Escape => return None,
            Key::Enter => return self.enter(prompt),
            Key::Char(character) => prompt.text.push(character),
            Key::Backspace if prompt.text.is_empty() => return None,
            Key::Backspace => drop(prompt.text.pop()),
            Key::Ctrl('u') => prompt.text.clear(),
            Key::Ctrl('w') => {
                let kept = prompt.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                prompt.text.truncate(kept);
            }
            Key::Tab => {
                let candidates = self.candidates(&prompt);
                prompt.complete(candidates);
                self.mode = Mode::Prompt(prompt);
                return None;
            }
            _ => {}
        }
        prompt.candidates.clear();
        self.mode = Mode::Prompt(prompt);
        None
    }

    fn candidates(&self, prompt: &Prompt) -> Vec<String> {
        match prompt.kind {
            PromptKind::Find => Vec::new(),
            PromptKind::Filter => self.filter_candidates(prompt.last_word()),
            PromptKind::Line => {
                let mut words: Vec<String> = prompt.text.split(' ').map(str::to_owned).collect();
                if words.first().is_some_and(|first| first == "queuectl") {
                    words.remove(0);
                }
                let mut found = (self.fixed.complete)(&words);
                if self.fixed.is_read_only && words.len() == 1 {
                    found.retain(|verb| is_reading(std::slice::from_ref(verb)) || !is_change(verb));
                }
                found
            }
        }
    }

    fn filter_candidates(&self, word: &str) -> Vec<String> {
        let Some((term, _)) = word.split_once(':') else {
            return TERMS.iter().map(|term| format!("{term}:")).collect();
        };
        let queues = || {
            let status = self.snapshot.iter().flat_map(|snapshot| &snapshot.status.queues);
            status.map(|queue| queue.name.to_string()).collect()
        };
        let workers = || {
            let status = self.snapshot.iter().flat_map(|snapshot| &snapshot.status.workers);
            status.map(|worker| worker.id.to_string()).collect()
        };
        let values: Vec<String> = match term {
            "state" => Phase::ALL.iter().map(|phase| phase.name().to_owned()).collect(),
            "queue" => queues(),
            "worker" => workers(),
            "batch" | "schedule" | "tag" => self.listed_names(term),
            _ => Vec::new(),
        };
        values.into_iter().map(|value| format!("{term}:{value}")).collect()
    }

    /// The names of this kind that the jobs on the screen have.
    fn listed_names(&self, term: &str) -> Vec<String> {
        let Some(Rows::Jobs(rows)) = self.snapshot().map(|snapshot| &snapshot.rows) else {
            return Vec::new();
        };
        let mut names: Vec<String> = match term {
            "batch" => {
                rows.jobs.iter().filter_map(|job| job.batch.as_ref().map(ToString::to_string)).collect()
            }
            "tag" => rows.jobs.iter().flat_map(|job| job.tags.clone()).collect(),
            _ => Vec::new(),
        };
        names.sort();
        names.dedup();
        names
    }

    fn enter(&mut self, prompt: Prompt) -> Option<Effect> {
        match prompt.kind {
            PromptKind::Filter => match FilterText::parse(&prompt.text) {
                Ok(filter) => self.show_jobs(filter),
                Err(error) => {
                    self.fail(error.to_string());
                    self.mode = Mode::Prompt(prompt);
                }
            },
            PromptKind::Find => self.find(&prompt.text),
            PromptKind::Line => return self.run_line(prompt),
        }
        None
    }

    /// The list of jobs with this filter.
    pub(super) fn show_jobs(&mut self, filter: FilterText) {
        if self.tab != Tab::Jobs {
            self.back.push((self.tab, self.filter.clone()));
        }
        self.filter = filter;
        self.go_to(Tab::Jobs);
    }

    fn run_line(&mut self, prompt: Prompt) -> Option<Effect> {
        let Some(words) = split_words(&prompt.text) else {
            self.fail("a quotation mark is not closed");
            self.mode = Mode::Prompt(prompt);
            return None;
        };
        if words.is_empty() {
            return None;
        }
        if self.fixed.is_read_only && !is_reading(&words) {
            self.refuse_change();
            return None;
        }
        if is_endless(&words) {
            self.fail("this line would not end by itself: run it in another terminal");
            return None;
        }
        if self.running.is_some() {
            self.fail("another line still runs: Esc, Esc ends it");
            self.mode = Mode::Prompt(prompt);
            return None;
        }
        self.running = Some(quote_words(&words));
        Some(Effect::RunLine(prompt.text))
    }
}

/// Verbs without a verb of their own that change something.
fn is_change(verb: &str) -> bool {
    !["batch", "schedule", "queue", "worker", "hook", "config", "dlq"].contains(&verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_completed_as_far_as_it_is_certain() {
        let all = || ["state:", "schedule:", "since:"].map(str::to_owned).to_vec();
        let mut prompt = Prompt::new(PromptKind::Filter, "queue:a s");
        prompt.complete(all());
        assert_eq!((prompt.text.as_str(), prompt.candidates.len()), ("queue:a s", 3));
        prompt.text.push('t');
        prompt.complete(all());
        assert_eq!((prompt.text.as_str(), prompt.candidates.len()), ("queue:a state:", 0));
        assert_eq!(common_start(&["äa".to_owned(), "äb".to_owned()]), "ä");
    }
}
