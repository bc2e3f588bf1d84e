//! The environment of a command: the one it was enqueued in or else the worker's, then the variables that the job adds,
//! then those that describe the attempt. Each name appears once, and the later source wins.

use std::collections::BTreeMap;

use domain::job::environment::Environment;
use sys::process::cstr_array::{CstrArray, NulByte};

pub(crate) const JOB_ID: &str = "QUEUECTL_JOB_ID";
pub(crate) const ATTEMPT: &str = "QUEUECTL_ATTEMPT";
pub(crate) const QUEUE: &str = "QUEUECTL_QUEUE";
pub(crate) const WORKER_ID: &str = "QUEUECTL_WORKER_ID";
pub(crate) const HOME: &str = "QUEUECTL_HOME";
/// Only if the store is not the home's own database.
pub(crate) const STORE: &str = "QUEUECTL_STORE";
pub(crate) const HOOK: &str = "QUEUECTL_HOOK";
pub(crate) const DELIVERY: &str = "QUEUECTL_DELIVERY";
pub(crate) const PWD: &str = "PWD";

/// A command has no previous folder.
const DROPPED: &[u8] = b"OLDPWD";

/// Few environments are larger; the array of one that is grows as it is filled.
const USUAL_COUNT: usize = 64;
const USUAL_BYTES: usize = 4 << 10;

/// Variables that shells set themselves, or that change what some shell does with a command. Prompts are not listed:
/// bash drops them, but no command depends on one.
const TOUCHED_BY_SHELLS: [&[u8]; 7] =
    [b"BASHOPTS", b"EXECIGNORE", b"IFS", b"LINENO", b"OPTIND", b"PPID", b"SHELLOPTS"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variables<'a> {
    pub(crate) base: &'a Environment,
    pub(crate) added: &'a BTreeMap<String, String>,
}

impl<'a> Variables<'a> {
    /// The value of a variable that queuectl does not set itself.
    pub(crate) fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.added.get(name).map(String::as_bytes).or_else(|| self.base.get(name))
    }

    /// Whether a command gets the same variables through a shell. Shells drop variables whose names are not
    /// identifiers; bash turns some of them into functions, which may have the name of a program.
    pub(crate) fn pass_through_shells(&self) -> bool {
        self.all().all(|(name, _)| is_identifier(name) && !TOUCHED_BY_SHELLS.contains(&name))
    }

    /// `NAME=value` for each variable; those in `own` win.
    pub(crate) fn to_envp(self, own: &[(&str, &[u8])]) -> Result<CstrArray, NulByte> {
        let is_own = |name: &[u8]| own.iter().any(|(taken, _)| taken.as_bytes() == name);
        let others = self.all().filter(|(name, _)| *name != DROPPED && !is_own(name));
        let own = own.iter().map(|(name, value)| (name.as_bytes(), *value));
        let mut envp = CstrArray::with_capacity(USUAL_COUNT, USUAL_BYTES);
        others.chain(own).try_for_each(|(name, value)| envp.push(&[name, b"=", value]))?;
        Ok(envp)
    }

    fn all(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let added = self.added;
        let is_added =
            move |name| !added.is_empty() && str::from_utf8(name).is_ok_and(|name| added.contains_key(name));
        let kept = self.base.iter().filter(move |(name, _)| !is_added(name));
        kept.chain(added.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    }
}

fn is_identifier(name: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.first().is_some_and(|first| !first.is_ascii_digit()) && name.iter().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(variables: &[(&str, &str)]) -> Environment {
        let bytes: String =
            variables.iter().map(|(name, value)| [*name, "=", *value, "\0"].concat()).collect();
        Environment::from_bytes(bytes.as_bytes())
    }

    fn added(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_name_appears_once_and_the_later_source_wins() {
        let base = base(&[("A", "1"), ("B", "1"), ("OLDPWD", "/x"), ("PWD", "/x"), ("QUEUECTL_JOB_ID", "x")]);
        let added = added(&[("B", "2"), ("C", "=2"), ("QUEUECTL_JOB_ID", "y"), ("OLDPWD", "/y")]);
        let variables = Variables { base: &base, added: &added };
        let envp = variables.to_envp(&[(JOB_ID, b"job1"), (PWD, b"/")]).expect("no NUL");
        let envp: Vec<&str> = envp.iter().map(|entry| entry.to_str().expect("UTF-8")).collect();
        assert_eq!(envp, ["A=1", "B=2", "C==2", "QUEUECTL_JOB_ID=job1", "PWD=/"]);
        assert_eq!(variables.get("B"), Some(b"2".as_slice()));
        assert_eq!(variables.get("A"), Some(b"1".as_slice()));
        assert_eq!(variables.get("D"), None);
    }

    #[test]
    fn values_may_be_any_bytes_except_nul() {
        let base = Environment::from_bytes(b"A=\xff\0");
        let variables = Variables { base: &base, added: &BTreeMap::new() };
        let envp = variables.to_envp(&[]).expect("no NUL");
        assert!(envp.iter().eq([c"A=\xff"]));
        assert!(variables.to_envp(&[(PWD, b"/\0")]).is_err());
    }

    #[test]
    fn variables_that_a_shell_would_change_are_detected() {
        for (name, passes) in [
            ("PATH", true),
            ("_a1", true),
            ("PS1", true),
            ("1a", false),
            ("a.b", false),
            ("BASH_FUNC_ls%%", false),
            ("", false),
            ("IFS", false),
            ("SHELLOPTS", false),
        ] {
            let (empty, full) = (base(&[]), base(&[(name, "x")]));
            let (none, one) = (added(&[]), added(&[(name, "x")]));
            assert_eq!(Variables { base: &full, added: &none }.pass_through_shells(), passes, "{name}");
            assert_eq!(Variables { base: &empty, added: &one }.pass_through_shells(), passes, "{name}");
        }
    }
}
