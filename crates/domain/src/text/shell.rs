//! Words and `sh`: quoting words for it, and doing without it where it has nothing to do.

mod direct;

pub use direct::{direct_words, fixed_result};

/// Words that mean something else to a shell when they come first and unquoted, in POSIX and in what bash adds.
const KEYWORDS: [&str; 22] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while", "{", "}",
];

/// One command line that `sh -c` takes apart into exactly these words.
pub fn quote_words(words: &[String]) -> String {
    let mut line = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        // Unquoted, a first word such as `a=b` would be an assignment.
        let special_first = at == 0 && (word.contains('=') || KEYWORDS.contains(&word.as_str()));
        if !word.is_empty() && word.chars().all(is_plain) && !special_first {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', r"'\''"));
            line.push('\'');
        }
    }
    line
}

/// Whether a shell takes this character as itself wherever it stands in an unquoted word, but for what
/// [`quote_words`] and [`direct_words`] watch in the first one.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_@%+=:,./-".contains(character)
}

#[cfg(test)]
mod tests {
    use super::quote_words;

    #[test]
    fn words_survive_the_shell() {
        for (words, line) in [
            (vec!["convert", "a b.png", "out.jpg"], "convert 'a b.png' out.jpg"),
            (vec!["echo", "it's", ""], r"echo 'it'\''s' ''"),
            (vec!["echo", "$HOME", "*", "~", "#"], "echo '$HOME' '*' '~' '#'"),
            (vec!["a=b", "--c=d"], "'a=b' --c=d"),
            (vec!["if", "if"], "'if' if"),
            (vec!["time", "make"], "'time' make"),
            (vec!["line\nbreak"], "'line\nbreak'"),
        ] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            assert_eq!(quote_words(&words), line);
        }
    }
}
