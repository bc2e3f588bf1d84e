//! Names and strings inside SQL text.

/// A name as PostgreSQL reads it back unchanged, whatever is in it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as an SQL literal.
pub(crate) fn literal(text: &str) -> String {
    // The form with backslash escapes does not depend on a setting of the server.
    format!("E'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

#[cfg(test)]
mod tests {
    use super::{literal, quoted};

    #[test]
    fn a_quote_inside_a_name_cannot_end_it() {
        assert_eq!(quoted("a b"), "\"a b\"");
        assert_eq!(quoted("x\"; drop table jobs; --"), "\"x\"\"; drop table jobs; --\"");
    }

    #[test]
    fn a_quote_or_backslash_inside_a_string_cannot_end_it() {
        assert_eq!(literal(r"a'b\"), r"E'a\'b\\'");
    }
}
