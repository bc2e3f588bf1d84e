//! Colours in a text that was made safe, as styles.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// Tabs stop at multiples of this.
const TAB_STOP: usize = 8;

/// The parts of a text with their styles. The text has no escape sequences but colours.
pub(crate) fn spans(text: &str, base: Style) -> Vec<Span<'static>> {
    let (mut spans, mut style, mut column) = (Vec::new(), base, 0);
    let mut rest = text;
    loop {
        let (plain, after) =
            rest.split_once("\x1b[").map_or((rest, None), |(plain, after)| (plain, Some(after)));
        if !plain.is_empty() {
            spans.push(Span::styled(expand_tabs(plain, &mut column), style));
        }
        let Some((parameters, next)) = after.and_then(|after| after.split_once('m')) else {
            return spans;
        };
        style = apply(style, base, parameters);
        rest = next;
    }
}

fn expand_tabs(text: &str, column: &mut usize) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\t' {
            let width = TAB_STOP - *column % TAB_STOP;
            shown.extend(std::iter::repeat_n(' ', width));
            *column += width;
        } else {
            shown.push(character);
            *column += unicode_width::UnicodeWidthChar::width(character).unwrap_or(0);
        }
    }
    shown
}

fn apply(mut style: Style, base: Style, parameters: &str) -> Style {
    let mut numbers = parameters.split([';', ':']).map(|number| number.parse::<u8>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        style = match number {
            0 => base,
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            9 => style.add_modifier(Modifier::CROSSED_OUT),
            22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            23 => style.remove_modifier(Modifier::ITALIC),
            24 => style.remove_modifier(Modifier::UNDERLINED),
            27 => style.remove_modifier(Modifier::REVERSED),
            29 => style.remove_modifier(Modifier::CROSSED_OUT),
            30..=37 => style.fg(Color::Indexed(number - 30)),
            38 => long_color(&mut numbers).map_or(style, |color| style.fg(color)),
            39 => style.fg(Color::Reset),
            40..=47 => style.bg(Color::Indexed(number - 40)),
            48 => long_color(&mut numbers).map_or(style, |color| style.bg(color)),
            49 => style.bg(Color::Reset),
            90..=97 => style.fg(Color::Indexed(number - 90 + 8)),
            100..=107 => style.bg(Color::Indexed(number - 100 + 8)),
            _ => style,
        };
    }
    style
}

/// `5;N` or `2;R;G;B`
fn long_color(numbers: &mut impl Iterator<Item = u8>) -> Option<Color> {
    match numbers.next()? {
        5 => Some(Color::Indexed(numbers.next()?)),
        2 => Some(Color::Rgb(numbers.next()?, numbers.next()?, numbers.next()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_become_styles_and_tabs_spaces() {
        let red = Style::new().fg(Color::Indexed(1));
        assert_eq!(
            spans("a\x1b[31mb\x1b[0mc", Style::new()),
            [Span::raw("a"), Span::styled("b", red), Span::raw("c")]
        );
        assert_eq!(spans("ab\tc", Style::new()), [Span::raw("ab      c")]);
        let exact = Style::new().fg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::BOLD);
        assert_eq!(spans("\x1b[1;38;2;1;2;3mx", Style::new()), [Span::styled("x", exact)]);
        assert_eq!(spans("", Style::new()), []);
    }
}
