//! Batches: how far each is, failed ones first, and cancelling the rest.

use crate::cli::harness::Home;
use crate::web::browser::Site;

#[test]
fn a_batch_shows_its_states_and_is_cancelled_once_its_number_is_typed() {
    let home = Home::with_queue();
    for (id, command) in [("ok", "true"), ("bad", "exit 3")] {
        home.run(["enqueue", "--id", id, "--batch", "import", "--max-retries", "0", "--command", command])
            .ok();
    }
    home.run(["worker", "run", "--until-empty"]).ok();
    for id in ["w1", "w2"] {
        home.run(["enqueue", "--id", id, "--batch", "import", "--", "true"]).ok();
    }
    let site = Site::new(home);
    let tab = site.open_live("/batches");
    tab.wait_for_text("2/4").wait_for_text("dead 1").click("link", "import").wait_for_path("/batches/import");
    assert_eq!(tab.count(".bar-of-states rect"), 3);
    let first = tab.text_of("#jobs-of-batch tbody tr");
    assert!(first.contains("dead"), "failed ones come first: {first}");
    tab.click("button", "cancel").wait_for_text("Cancel the 2 unfinished jobs").type_text("2");
    tab.click_on("dialog button[value=yes]").wait_for_text("cancelled 2").wait_for_no_text("unfinished");
    site.expect_fault("404");
    tab.open("/batches/nowhere").wait_for_text("nowhere");
}
