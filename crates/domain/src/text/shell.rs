//! Shell words: quoting them, and recognising commands that need no shell.

mod direct;

pub use direct::{direct_words, fixed_result};

/// Words that are reserved when they come first and unquoted, in POSIX and in bash.
const KEYWORDS: [&str; 22] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while", "{", "}",
];

/// A command line that `sh -c` splits into exactly these words.
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

/// Whether this character stands for itself anywhere in an unquoted word. [`quote_words`] and [`direct_words`] handle the
/// exceptions in the first word.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_@%+=:,./-".contains(character)
}

#[cfg(test)]
mod tests {
    use super::quote_words;

    #[test]
    fn quoted_words_survive_the_shell() {
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
