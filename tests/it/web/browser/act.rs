//! A reader's hands: elements are found by their accessible role and name, and get real clicks and keys.

use serde_json::{Value, json};

use super::tab::Tab;

/// Scrolls an element into view. Answers with its middle, or with what covers it there.
const MIDDLE: &str = "function () {
    this.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    const box = [...this.getClientRects()].find((one) => one.width > 0 && one.height > 0);
    if (!box) return { covered: 'it has no area' };
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const hit = document.elementFromPoint(x, y);
    const isHit = hit && (this.contains(hit) || hit.contains(this) || hit.closest('label')?.control === this);
    return isHit ? { x, y } : { covered: `${hit?.outerHTML.slice(0, 80)} covers it` };
}";

const ALT: u8 = 1;
const CTRL: u8 = 2;
const META: u8 = 4;
const SHIFT: u8 = 8;

struct Key {
    name: String,
    code: String,
    number: u32,
    text: Option<String>,
}

impl Tab<'_> {
    /// Clicks the one element that has this role and name, as soon as it is there and nothing covers it.
    #[track_caller]
    pub(crate) fn click(&self, role: &str, name: &str) -> &Self {
        self.click_when_ready(&format!("{role} {name:?} can be clicked"), || {
            let found = self.find(role, name);
            assert!(found.len() < 2, "{} elements are {role} {name:?}", found.len());
            found.into_iter().next()
        })
    }

    /// Clicks the first element that matches a selector.
    #[track_caller]
    pub(crate) fn click_on(&self, selector: &str) -> &Self {
        self.click_when_ready(&format!("{selector} can be clicked"), || {
            let params = json!({ "expression": format!("document.querySelector({})", json!(selector)) });
            let answer = self.protocol.try_call(Some(&self.session), "Runtime.evaluate", &params).ok()?;
            answer["result"]["objectId"].as_str().map(str::to_owned)
        })
    }

    #[track_caller]
    fn click_when_ready(&self, what: &str, find: impl Fn() -> Option<String>) -> &Self {
        self.until(what, || {
            let Some(object) = find() else { return false };
            let params = json!({ "objectId": object, "functionDeclaration": MIDDLE, "returnByValue": true });
            let Ok(answer) = self.protocol.try_call(Some(&self.session), "Runtime.callFunctionOn", &params)
            else {
                return false;
            };
            let middle = &answer["result"]["value"];
            let (Some(x), Some(y)) = (middle["x"].as_f64(), middle["y"].as_f64()) else { return false };
            self.click_at(x, y);
            true
        });
        self
    }

    #[track_caller]
    pub(crate) fn click_at(&self, x: f64, y: f64) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Whether an element that assistive technology can reach has this role and name.
    #[track_caller]
    pub(crate) fn has(&self, role: &str, name: &str) -> bool {
        !self.find(role, name).is_empty()
    }

    #[track_caller]
    pub(crate) fn wait_for_role(&self, role: &str, name: &str) -> &Self {
        self.until(&format!("the page has {role} {name:?}"), || self.has(role, name));
        self
    }

    /// The elements with this role and name. None while the page is being replaced.
    fn find(&self, role: &str, name: &str) -> Vec<String> {
        let ask = |method: &str, params: Value| self.protocol.try_call(Some(&self.session), method, &params);
        let find = || {
            let document = ask("Runtime.evaluate", json!({ "expression": "document" }))?;
            let root = &document["result"]["objectId"];
            ask(
                "Accessibility.queryAXTree",
                json!({ "objectId": root, "role": role, "accessibleName": name }),
            )
        };
        let found = find().unwrap_or_default();
        let nodes = found["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let reachable = nodes.iter().filter(|node| node["ignored"] == false);
        let objects = reachable.filter_map(|node| {
            let node = ask("DOM.resolveNode", json!({ "backendNodeId": node["backendDOMNodeId"] })).ok()?;
            node["object"]["objectId"].as_str().map(str::to_owned)
        });
        objects.collect()
    }

    /// The role and the name of the focused element, as in `button "Retry"`.
    #[track_caller]
    pub(crate) fn focus(&self) -> String {
        let focused = self.call("Runtime.evaluate", &json!({ "expression": "document.activeElement" }));
        let params = json!({ "objectId": focused["result"]["objectId"], "fetchRelatives": false });
        let tree = self.call("Accessibility.getPartialAXTree", &params);
        let node = &tree["nodes"][0];
        format!("{} {}", node["role"]["value"].as_str().unwrap_or_default(), node["name"]["value"])
    }

    /// Types a text into the focused element.
    #[track_caller]
    pub(crate) fn type_text(&self, text: &str) -> &Self {
        self.call("Input.insertText", &json!({ "text": text }));
        self
    }

    /// Clicks a field and replaces its content.
    #[track_caller]
    pub(crate) fn fill(&self, role: &str, name: &str, text: &str) -> &Self {
        self.click(role, name).press("Ctrl+a").type_text(text)
    }

    /// Presses a key, as `j`, `?`, `Enter`, `Ctrl+k` or `Shift+Tab`.
    #[track_caller]
    pub(crate) fn press(&self, keys: &str) -> &Self {
        let (modifiers, key) =
            keys.rsplit_once('+').filter(|(held, _)| !held.is_empty()).unwrap_or(("", keys));
        let held = modifiers.split('+').map(|held| match held {
            "Alt" => ALT,
            "Ctrl" => CTRL,
            "Meta" => META,
            "Shift" => SHIFT,
            _ => 0,
        });
        let held = held.sum::<u8>();
        let key = key_named(key);
        let text = key.text.filter(|_| held & (ALT | CTRL | META) == 0);
        let mut event = json!({
            "type": if text.is_some() { "keyDown" } else { "rawKeyDown" },
            "key": key.name,
            "code": key.code,
            "windowsVirtualKeyCode": key.number,
            "modifiers": held,
        });
        if let Some(text) = text {
            event["text"] = text.into();
        }
        if held == CTRL && key.name == "a" {
            event["commands"] = json!(["selectAll"]);
        }
        self.call("Input.dispatchKeyEvent", &event);
        event["type"] = "keyUp".into();
        self.call("Input.dispatchKeyEvent", &event);
        self
    }
}

fn key_named(name: &str) -> Key {
    let named = [
        ("Enter", 13, Some("\r")),
        ("Tab", 9, None),
        ("Escape", 27, None),
        ("Space", 32, Some(" ")),
        ("Backspace", 8, None),
        ("Delete", 46, None),
        ("Home", 36, None),
        ("End", 35, None),
        ("PageUp", 33, None),
        ("PageDown", 34, None),
        ("ArrowLeft", 37, None),
        ("ArrowUp", 38, None),
        ("ArrowRight", 39, None),
        ("ArrowDown", 40, None),
    ];
    if let Some((_, number, text)) = named.iter().find(|(known, ..)| *known == name) {
        let key = if name == "Space" { " " } else { name };
        let text = text.map(str::to_owned);
        return Key { name: key.to_owned(), code: name.to_owned(), number: *number, text };
    }
    let character = name.chars().next().expect("a key");
    assert_eq!(name.chars().count(), 1, "`{name}` is not a key that is known here");
    let upper = character.to_ascii_uppercase();
    let (code, number) = match character {
        'a'..='z' | 'A'..='Z' => (format!("Key{upper}"), u32::from(upper)),
        '0'..='9' => (format!("Digit{character}"), u32::from(character)),
        _ => (String::new(), 0),
    };
    Key { name: name.to_owned(), code, number, text: Some(name.to_owned()) }
}
