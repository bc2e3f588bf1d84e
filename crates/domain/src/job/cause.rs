//! Groups dead jobs by the cause of their death.

/// An error line with the parts that differ between jobs masked: runs of digits and long hexadecimal words become `#`.
pub fn cause(error: &str) -> String {
    let mut cause = String::with_capacity(error.len());
    let mut word = String::new();
    for character in error.chars() {
        if character.is_ascii_alphanumeric() {
            word.push(character);
        } else {
            push_word(&mut cause, &word);
            word.clear();
            cause.push(character);
        }
    }
    push_word(&mut cause, &word);
    cause
}

const MIN_HEX_WORD_LEN: usize = 6;

fn push_word(cause: &mut String, word: &str) {
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let is_hex = word.len() >= MIN_HEX_WORD_LEN && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if has_digit && is_hex {
        cause.push('#');
        return;
    }
    let mut in_number = false;
    for character in word.chars() {
        if !character.is_ascii_digit() {
            cause.push(character);
        } else if !in_number {
            cause.push('#');
        }
        in_number = character.is_ascii_digit();
    }
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn numbers_and_hex_words_are_masked() {
        assert_eq!(cause("no route to 10.0.0.7:5432"), "no route to #.#.#.#:#");
        assert_eq!(cause("commit 3f2a9c1 missing"), "commit # missing");
        assert_eq!(cause("worker7 said no"), "worker# said no");
        assert_eq!(cause("connection refused"), "connection refused");
    }
}
