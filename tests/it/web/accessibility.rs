//! Every page in both themes, with an empty queue and with one in which everything occurs, judged by axe-core.
//!
//! `./check` fetches axe-core. It is not in the repository: only tests use it.

use std::fs;
use std::io::Write;

use super::browser::{Site, Tab};
use super::rich::{self, Rich};
use crate::REPOSITORY;
use crate::cli::harness::Home;

const AXE: &str = "target/tools/node_modules/axe-core/axe.min.js";

/// The program of axe-core; `None`, with a line on standard error, if it was not fetched.
fn axe() -> Option<String> {
    let found = fs::read_to_string(format!("{REPOSITORY}/{AXE}")).ok();
    if found.is_none() {
        // Bypasses the capture of output, which hides it for tests that pass.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {AXE} is missing, so it checks no pages; ./check fetches it"
        );
    }
    found
}

/// What a page does wrong, one line for each rule.
fn violations(tab: &Tab<'_>, rules: &str) -> Vec<String> {
    let found = tab.eval(&format!(
        "axe.run(document, {{ resultTypes: ['violations'], preload: false, elementRef: false, {rules} }}).then((result) =>
             result.violations.map((one) => `${{one.id}} (${{one.impact}}): ${{one.help}}\\n` + one.nodes.slice(0, 3).map((node) =>
                 `    ${{node.target.join(' ')}}  ${{node.html.slice(0, 160)}}  ${{node.any.map((any) => any.message).join('; ').slice(0, 200)}}`).join('\\n')))"
    ));
    found.as_array().expect("a list").iter().map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
}

/// All rules in one theme; in the other, only those that depend on colours.
const ALL_RULES: &str = "rules: {}";
const COLOURS: &str = "runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] }";

fn check(home: Home) {
    let Some(axe) = axe() else { return };
    let is_rich = home.database().exists() && home.count() > 0;
    let site = Site::new(home);
    let rich = is_rich.then(|| Rich::of_running(&site.server));
    let plain = || {
        let pages = web::listed_routes().filter(|route| route.is_page && !route.path.contains('{'));
        pages.map(|page| page.path.to_owned()).collect()
    };
    let paths: Vec<String> = rich.as_ref().map_or_else(plain, Rich::pages);
    assert!(paths.len() > 10, "{paths:?}");
    let tab = site.tab();
    // Colours change at once.
    tab.reduced_motion();
    let mut wrong = Vec::new();
    for path in &paths {
        tab.theme("light").open(path).eval(&format!("{axe}; undefined"));
        for (theme, rules) in [("light", ALL_RULES), ("dark", COLOURS)] {
            tab.theme(theme);
            for violation in violations(&tab, rules) {
                wrong.push(format!("{path} in {theme}: {violation}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_page_of_an_empty_queue_violates_a_rule() {
    check(Home::with_queue());
}

#[test]
fn no_page_of_a_queue_with_everything_violates_a_rule() {
    check(rich::home());
}
