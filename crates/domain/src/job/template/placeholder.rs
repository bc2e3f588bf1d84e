//! The placeholders of GNU parallel, and which other braces look like one.
//!
//! A command is full of braces that mean something else: `${x}`, `{"a":1}`, `{a,b}`, `awk '{print}'`, `grep -E '[0-9]{4}'`.
//! These stay as they are. Only digits and the signs of placeholders between braces look like a placeholder, and an unknown
//! one of these is refused: taken literally, `{..}.png` would make every job write to the same file.

/// The signs that placeholders of GNU parallel consist of, besides digits.
const SIGNS: &str = "./#%+";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A view of the field at this index.
    Field { at: usize, view: View },
    /// The number of the line.
    Number,
}

/// What is taken of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Whole,
    WithoutExtension,
    FileName,
    Folder,
    FileNameWithoutExtension,
}

/// The braces at the start of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form<'t> {
    /// Nothing of ours.
    Text,
    Slot {
        slot: Slot,
        /// How many bytes it takes.
        len: usize,
    },
    /// A form in doubled braces, which stands for itself in single ones.
    Literal { form: &'t str, len: usize },
    /// It looks like a placeholder, but is none.
    Unknown { form: &'t str },
}

impl Slot {
    /// The line itself.
    pub(super) const LINE: Self = Self::Field { at: 0, view: View::Whole };

    fn named(content: &str) -> Option<Self> {
        let view = match content {
            "" => View::Whole,
            "." => View::WithoutExtension,
            "/" => View::FileName,
            "//" => View::Folder,
            "/." => View::FileNameWithoutExtension,
            "#" => return Some(Self::Number),
            _ => return None,
        };
        Some(Self::Field { at: 0, view })
    }

    pub(super) fn fill(self, number: u64, fields: &[&str]) -> String {
        match self {
            Self::Field { at, view } => view.of(fields.get(at).copied().unwrap_or_default()).to_owned(),
            Self::Number => number.to_string(),
        }
    }
}

impl View {
    fn of(self, value: &str) -> &str {
        match self {
            Self::Whole => value,
            Self::WithoutExtension => without_extension(value),
            Self::FileName => file_name(value),
            Self::Folder => folder(value),
            Self::FileNameWithoutExtension => without_extension(file_name(value)),
        }
    }
}

/// What the braces at the start of this text are, which follow the character `before`.
pub(super) fn form_at(text: &str, before: Option<char>) -> Form<'_> {
    if let Some(form) = text.get(1..).and_then(enclosed)
        && text[1 + form.len()..].starts_with('}')
        && (Slot::named(content_of(form)).is_some() || looks_like_placeholder(content_of(form), None))
    {
        return Form::Literal { form, len: form.len() + 2 };
    }
    let Some(form) = enclosed(text) else {
        return Form::Text;
    };
    let content = content_of(form);
    if before == Some('$') && !content.is_empty() {
        // `${#}` and `${1}` belong to the shell.
        return Form::Text;
    }
    match Slot::named(content) {
        Some(slot) => Form::Slot { slot, len: form.len() },
        None if looks_like_placeholder(content, before) => Form::Unknown { form },
        None => Form::Text,
    }
}

/// The braces at the start of this text with their content, which has no braces itself.
fn enclosed(text: &str) -> Option<&str> {
    let end = text.strip_prefix('{')?.find(['{', '}'])? + 1;
    text[end..].starts_with('}').then(|| &text[..=end])
}

fn content_of(form: &str) -> &str {
    &form[1..form.len() - 1]
}

fn looks_like_placeholder(content: &str, before: Option<char>) -> bool {
    if content.len() > 1 && content.starts_with('=') && content.ends_with('=') {
        return true;
    }
    let signs = content.trim_start_matches(|letter: char| letter.is_ascii_digit());
    if !signs.is_empty() {
        return signs.chars().all(|sign| SIGNS.contains(sign));
    }
    // `[0-9]{4}` is a regular expression.
    let is_repetition = before.is_some_and(|before| before.is_alphanumeric() || "])}.*+?\\".contains(before));
    !content.is_empty() && !is_repetition
}

/// A dot at the beginning of a name hides the file; it does not begin an extension.
fn without_extension(path: &str) -> &str {
    let name_at = path.rfind('/').map_or(0, |at| at + 1);
    match path[name_at..].rfind('.') {
        Some(dot) if dot > 0 && name_at + dot + 1 < path.len() => &path[..name_at + dot],
        Some(_) | None => path,
    }
}

fn file_name(path: &str) -> &str {
    let trimmed = without_end_slashes(path);
    trimmed.rfind('/').map_or(trimmed, |at| if trimmed == "/" { trimmed } else { &trimmed[at + 1..] })
}

fn folder(path: &str) -> &str {
    let trimmed = without_end_slashes(path);
    match trimmed.rfind('/') {
        None => ".",
        Some(0) => "/",
        Some(at) => without_end_slashes(&trimmed[..at]),
    }
}

fn without_end_slashes(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() && !path.is_empty() { "/" } else { trimmed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_five_views() {
        use View::{FileName, FileNameWithoutExtension, Folder, Whole, WithoutExtension};
        let views = [Whole, WithoutExtension, FileName, Folder, FileNameWithoutExtension];
        for (value, expected) in [
            ("a.mkv", ["a.mkv", "a", "a.mkv", ".", "a"]),
            ("d.x/a.tar.gz", ["d.x/a.tar.gz", "d.x/a.tar", "a.tar.gz", "d.x", "a.tar"]),
            ("d.x/a", ["d.x/a", "d.x/a", "a", "d.x", "a"]),
            ("/a.b", ["/a.b", "/a", "a.b", "/", "a"]),
            ("d/.rc", ["d/.rc", "d/.rc", ".rc", "d", ".rc"]),
            ("a.", ["a.", "a.", "a.", ".", "a."]),
            ("d/e/", ["d/e/", "d/e/", "e", "d", "e"]),
            ("/", ["/", "/", "/", "/", "/"]),
            ("..", ["..", "..", "..", ".", ".."]),
            ("", ["", "", "", ".", ""]),
            ("ä/ö.ü", ["ä/ö.ü", "ä/ö", "ö.ü", "ä", "ö"]),
        ] {
            assert_eq!(views.map(|view| view.of(value)), expected, "{value}");
        }
    }

    #[test]
    fn only_signs_and_digits_look_like_a_placeholder() {
        for text in ["{..}", "{%}", "{1}", "{2.}", "{1/.}", "{#.}", "{///}", "{+/}", "{= s/x/y/ =}"] {
            assert_eq!(form_at(text, None), Form::Unknown { form: text }, "{text}");
        }
        for text in
            ["{a}", "{print}", "{a,b}", "{1,3}", "{1..3}", "{\"a\":1}", "{ }", "{", "{x", "{-1}", "{=}"]
        {
            assert_eq!(form_at(text, None), Form::Text, "{text}");
        }
        for (text, before) in [("{4}", ']'), ("{3}", 'a'), ("{#}", '$'), ("{1}", '$'), ("{.}", '$')] {
            assert_eq!(form_at(text, Some(before)), Form::Text, "{before}{text}");
        }
    }

    #[test]
    fn doubled_braces_are_literal_where_single_ones_would_not_be() {
        for form in ["{}", "{.}", "{//}", "{#}", "{..}", "{1}"] {
            let text = format!("{{{form}}}");
            assert_eq!(form_at(&text, None), Form::Literal { form, len: text.len() });
        }
        for text in ["{{.Name}}", "{{print}}", "{{", "{{}", "{{a}"] {
            assert_eq!(form_at(text, None), Form::Text, "{text}");
        }
    }
}
