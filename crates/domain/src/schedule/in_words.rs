//! A cron line in words, short as people write times: `every 5 minutes, 09:00–17:59, Mon–Fri`.

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// The usual shapes: a time of day or a step of minutes, on days of the week. Other lines have none here.
pub(super) fn in_words(line: &str) -> Option<String> {
    let fields: Vec<&str> = line.split(' ').collect();
    let [minute, hour, "*", "*", day] = fields[..] else { return None };
    let times = times(minute, hour)?;
    Some(if day == "*" { times } else { format!("{times}, {}", days(day)?) })
}

fn times(minute: &str, hour: &str) -> Option<String> {
    let step = match minute.strip_prefix("*/") {
        _ if minute == "*" => Some("every minute".to_owned()),
        // Other steps restart at the full hour, so they are not regular.
        Some(step) if number(step, 60).is_some_and(|step| step > 1 && 60 % step == 0) => {
            Some(format!("every {step} minutes"))
        }
        _ => None,
    };
    if let Some(step) = step {
        if hour == "*" {
            return Some(step);
        }
        let (first, last) = hour.split_once('-').unwrap_or((hour, hour));
        return Some(format!("{step}, {:02}:00–{:02}:59", number(first, 24)?, number(last, 24)?));
    }
    let minute = number(minute, 60)?;
    if hour == "*" {
        return Some(format!("every hour at :{minute:02}"));
    }
    let times = hour.split(',').map(|hour| Some(format!("{:02}:{minute:02}", number(hour, 24)?)));
    Some(format!("at {}", times.collect::<Option<Vec<_>>>()?.join(", ")))
}

fn days(field: &str) -> Option<String> {
    let name = |typed: &str| {
        let known = DAYS.into_iter().find(|day| day.eq_ignore_ascii_case(typed));
        known.or_else(|| Some(DAYS[number(typed, 8)? % DAYS.len()]))
    };
    let part = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(format!("{}–{}", name(first)?, name(last)?)),
        None => name(part).map(str::to_owned),
    };
    Some(field.split(',').map(part).collect::<Option<Vec<_>>>()?.join(", "))
}

fn number(text: &str, below: usize) -> Option<usize> {
    text.parse().ok().filter(|number| *number < below)
}
