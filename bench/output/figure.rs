//! Numbers formatted for people.

/// With a comma between thousands, and `digits` digits after the point.
pub(crate) fn grouped(value: f64, digits: usize) -> String {
    if value == f64::INFINITY {
        return "∞".to_owned();
    }
    let plain = format!("{value:.digits$}");
    let (sign, plain) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("-", rest));
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut text = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// A count, with a comma between thousands.
pub(crate) fn count(number: u32) -> String {
    grouped(f64::from(number), 0)
}
