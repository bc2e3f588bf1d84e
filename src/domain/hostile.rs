//! Text that would steer a terminal, or show something else than it says.

/// Control characters, and characters that are invisible or turn the order of text around.
pub fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
