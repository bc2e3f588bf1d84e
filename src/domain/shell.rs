//! Quoting words for `sh`.

/// Words that mean something else to `sh` when they come first and unquoted.
const KEYWORDS: [&str; 16] = [
    "!", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then", "until", "while",
    "{", "}",
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
        if is_plain(word) && !special_first {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', r"'\''"));
            line.push('\'');
        }
    }
    line
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte))
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
            (vec!["line\nbreak"], "'line\nbreak'"),
        ] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            assert_eq!(quote_words(&words), line);
        }
    }
}
