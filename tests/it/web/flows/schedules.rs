//! Schedules: run now, the form with its preview, and a week in which the clock changes.

use serde_json::json;

use crate::cli::harness::Home;
use crate::web::browser::Site;

fn home() -> Home {
    let home = Home::with_queue();
    home.run(["schedule", "add", "nightly", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--", "true"])
        .ok();
    home.run(["schedule", "add", "sync", "--every", "15m", "--", "true"]).ok();
    home
}

#[test]
fn a_schedule_runs_now_pauses_and_shows_its_results() {
    let site = Site::new(home());
    let tab = site.open_live("/schedules");
    tab.wait_for_text("at 02:30").click_on("#s-nightly button[data-path$='/run']");
    tab.wait_for("#s-nightly .tick.s-pending");
    site.server.home.run(["worker", "run", "--until-empty"]).ok();
    tab.wait_for("#s-nightly .tick.s-completed").click_on("#s-nightly button[data-path$='/pause']");
    tab.wait_for("#s-nightly button[data-path$='/resume']");
    assert_eq!(site.server.get("/api/v1/schedules/nightly")["paused"], true);
    tab.click("link", "nightly").wait_for_path("/schedules/nightly").wait_for_text("started by hand");
    tab.click("button", "remove").click_on("dialog button[value=yes]");
    tab.wait_for_path("/schedules").wait_for_text("1 schedule");
}

#[test]
fn a_schedule_is_paused_with_a_reason_that_everyone_sees() {
    let site = Site::new(home());
    let tab = site.open_live("/schedules/sync");
    tab.fill("textbox", "why (the others see it)", "the disk is full");
    tab.wait_for_text("queuectl schedule pause sync --reason 'the disk is full'");
    assert!(tab.text_of("#pause [data-shows=curl]").contains("/api/v1/schedules/sync/pause"));
    tab.click("button", "pause").wait_for_role("button", "resume").wait_for_text("the disk is full");
    assert_eq!(site.server.get("/api/v1/schedules/sync")["pause_reason"], "the disk is full");
    tab.open("/schedules").wait_for_text("the disk is full");
    site.server.home.run(["schedule", "list"]).ok().shows("(the disk is full)");
    tab.open("/schedules/sync").click("button", "resume").wait_for_role("button", "pause");
    assert_eq!(site.server.get("/api/v1/schedules/sync")["paused"], false);
}

#[test]
fn the_form_shows_the_next_times_and_adds_the_schedule() {
    let site = Site::new(home());
    let tab = site.open_live("/schedules");
    tab.click_on("#add summary").fill("textbox", "name", "report");
    tab.fill("textbox", "cron expression", "0 25 * * *").wait_for_text("out of range");
    tab.fill("textbox", "cron expression", "0 9 * * 1-5").fill("textbox", "its time zone", "Asia/Tokyo");
    tab.wait_for_text("at 09:00, Mon–Fri").wait_for_text("JST");
    assert_eq!(tab.count("#add .preview li"), 5);
    tab.fill("textbox", "command", "./report --week");
    tab.wait_for_text(
        "queuectl schedule add report --cron '0 9 * * 1-5' --tz Asia/Tokyo --command './report --week'",
    );
    tab.click("button", "Add the schedule").wait_for_path("/schedules/report").wait_for_text("Asia/Tokyo");
    let added = site.server.get("/api/v1/schedules/report");
    assert_eq!(
        (&added["time_zone"], &added["job"]["command"]),
        (&json!("Asia/Tokyo"), &json!("./report --week"))
    );
}

#[test]
fn a_week_has_each_run_at_its_time_and_marks_the_change_of_the_clock() {
    let site = Site::new(home());
    let tab = site.open_live("/schedules?view=week&week=2027-03-28&tz=Europe%2FBerlin");
    tab.wait_for_text("02:00–03:00 does not exist");
    let text = tab.text_of("#week table");
    assert!(text.contains("Mon 22 Mar") && text.contains("Sun 28 Mar"), "{text}");
    assert!(text.contains("02:30 does not exist on this day, so it runs at 03:00"), "{text}");
    assert_eq!(tab.count("#week .entry"), 7, "{text}");
    assert!(tab.text().contains("every 15m (96 a day)"), "{}", tab.text());
    tab.open("/schedules?view=week&week=2027-10-31&tz=Europe%2FBerlin")
        .wait_for_text("02:00–03:00 happens twice");
    tab.wait_for_text("02:30 happens twice on this day");
    tab.open("/schedules?view=week&week=2027-03-28&tz=America%2FNew_York");
    let text = tab.text_of("#week table");
    assert!(
        text.contains("Tue 02:30 CET") && !text.contains("does not exist on this day, so it runs at 21"),
        "{text}"
    );
    tab.wait_for_text("Europe/Berlin: on Sun 28 Mar 02:00–03:00 does not exist");
    tab.fill("combobox", "time zone", "UTC").click("button", "show");
    tab.wait(
        "the week is shown in another zone",
        "location.search.includes('tz=UTC') && document.querySelector('#week table')?.innerText.includes('01:30')",
    );
    site.expect_fault("422");
    tab.open("/schedules?view=week&tz=Europe%2FBerlinn").wait_for_text("Europe/Berlin");
}
