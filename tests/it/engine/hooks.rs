//! Deliveries to hooks by real workers.

use std::fs;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use rustix::process::Signal;
use serde_json::Value;
use sha2::Sha256;

use super::harness::{Home, Pool, UNTIL_GO, is_alive, wait_until};
use super::receiver::{AUTHORITY, Receiver, Response};

impl Home {
    #[track_caller]
    fn hook(&self, name: &str, event: &str, command: &str) {
        self.run(["hook", "add", name, "--on", event, "--command", command]).ok();
    }

    #[track_caller]
    fn hook_to(&self, name: &str, event: &str, receiver: &Receiver) {
        self.run(["hook", "add", name, "--on", event, "--url", &receiver.url()]).ok();
    }

    #[track_caller]
    fn shown_hook(&self, name: &str) -> Value {
        self.run(["hook", "show", name, "--json"]).ok().json()
    }

    #[track_caller]
    fn wait_until_delivered(&self, name: &str) {
        wait_until("the events are delivered", || self.shown_hook(name)["pending"] == 0);
    }
}

#[test]
fn commands_get_exactly_their_events() {
    let home = Home::new();
    home.set("retry_delay", "10ms");
    for event in ["success", "failure", "dead"] {
        home.hook(event, event, &format!("cat >> {event}; echo $QUEUECTL_HOOK $PWD >> where"));
    }
    home.enqueue("good", "true");
    home.enqueue_with("poor", "false", "--max-retries 2");
    home.enqueue("bad", "exit 7");
    Pool::drain(&home, "--concurrency 2");
    let ids = |event: &str| -> Vec<String> {
        let lines = home.read(event);
        let mut ids: Vec<String> = lines
            .lines()
            .map(|line| {
                let payload: Value = serde_json::from_str(line).expect("one event per line");
                assert_eq!(payload["event"], event);
                payload["job"]["id"].as_str().expect("an id").to_owned()
            })
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(ids("success"), ["good"]);
    assert_eq!(ids("failure"), ["poor", "poor"]);
    assert_eq!(ids("dead"), ["bad", "poor"]);
    let here = home.folder().canonicalize().expect("a path");
    assert!(home.read("where").lines().all(|line| line.ends_with(&here.display().to_string())));
    assert_eq!(home.read("where").lines().count(), 5);
}

#[test]
fn one_hook_gets_several_events_as_variables() {
    let home = Home::new();
    home.hook("ends", "success,dead", "echo \"$QUEUECTL_EVENT|$QUEUECTL_JOB_ID|$QUEUECTL_JOB_NUMBER|$QUEUECTL_JOB_STATE|\
$QUEUECTL_JOB_QUEUE|$QUEUECTL_JOB_EXIT_CODE|$QUEUECTL_JOB_ERROR|$QUEUECTL_JOB_REASON|${QUEUECTL_BATCH-unset}\" >> ends");
    assert_eq!(home.shown_hook("ends")["event"], "success,dead");
    home.enqueue("good", "true");
    home.enqueue_with("bad", "echo 'it is `broken`' >&2; exit 7", "--max-retries 0");
    Pool::drain(&home, "");
    home.wait_until_delivered("ends");
    let mut ends: Vec<String> = home.read("ends").lines().map(str::to_owned).collect();
    ends.sort();
    assert_eq!(
        ends,
        [
            "dead|bad|2|dead|default|7|exit code 7: it is `broken`|retries_exhausted|unset",
            "success|good|1|completed|default|0|||unset",
        ]
    );
}

#[test]
fn a_url_gets_signed_json() {
    let (home, receiver) = (Home::new(), Receiver::new(&[]));
    home.file("key", "keep-it-secret\n");
    home.run(["hook", "add", "h", "--on", "success", "--url", &receiver.url(), "--secret-file", "key"]).ok();
    home.enqueue("a", "true");
    Pool::drain(&home, "");
    let requests = receiver.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let request = &requests[0];
    assert_eq!(request.line, "POST /events?from=test HTTP/1.1");
    assert_eq!(request.header("content-type"), "application/json");
    assert_eq!(request.header("x-queuectl-event"), "success");
    assert_eq!(request.json()["job"]["id"], "a");
    assert_eq!(request.json()["delivery"], request.header("x-queuectl-delivery"));
    let mut mac = Hmac::<Sha256>::new_from_slice(b"keep-it-secret").expect("a key");
    mac.update(format!("{}.{}", request.header("x-queuectl-timestamp"), request.body).as_bytes());
    let signature = request.header("x-queuectl-signature").strip_prefix("sha256=").expect("its kind");
    let pair = |at: usize| u8::from_str_radix(&signature[2 * at..2 * at + 2], 16).expect("hex");
    assert_eq!(signature.len(), 64);
    assert_eq!((0..32).map(pair).collect::<Vec<_>>(), mac.finalize().into_bytes().to_vec());
    assert_eq!(home.shown_hook("h")["pending"], 0);
    assert!(!home.journal().contains("keep-it"));
}

#[test]
fn a_hook_without_a_secret_sends_no_signature() {
    let (home, receiver) = (Home::new(), Receiver::new(&[]));
    home.hook_to("h", "success", &receiver);
    home.enqueue("a", "true");
    Pool::drain(&home, "");
    assert_eq!(receiver.requests()[0].header("x-queuectl-signature"), "");
}

#[test]
fn a_failed_delivery_is_retried_with_the_same_body() {
    let (home, receiver) = (Home::new(), Receiver::new(&[Response::With(500), Response::Close]));
    home.hook_to("h", "success", &receiver);
    let pool = Pool::run(&home, "");
    home.enqueue("a", "true");
    wait_until("the first try fails", || home.shown_hook("h")["error"].is_string());
    assert_eq!(home.shown_hook("h")["error"], "the receiver answered 500: not today");
    home.wait_until_delivered("h");
    let requests = receiver.requests();
    assert_eq!(requests.len(), 3, "{requests:?}");
    for request in &requests {
        assert_eq!(request.body, requests[0].body, "byte for byte");
        assert_eq!(request.header("x-queuectl-delivery"), requests[0].header("x-queuectl-delivery"));
    }
    let shown = home.shown_hook("h");
    assert_eq!((&shown["failing_since"], &shown["gave_up"]), (&Value::Null, &Value::from(0)));
    drop(pool);
}

#[test]
fn a_redirect_is_not_followed() {
    let (home, receiver) = (Home::new(), Receiver::new(&[Response::With(302)]));
    home.hook_to("h", "success", &receiver);
    home.run(["hook", "test", "h"]).fails(1).says("the receiver answered 302");
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn an_https_receiver_gets_events_if_its_authority_is_trusted() {
    let (home, receiver) = (Home::new(), Receiver::by_https(&[]));
    home.hook_to("h", "success", &receiver);
    home.run(["hook", "test", "h"]).fails(1).says("could not be reached");
    assert!(receiver.requests().is_empty(), "an unknown authority is not trusted");
    let authority = home.file("authority.pem", AUTHORITY);
    home.enqueue("a", "true");
    let drain = home.call(["worker", "run", "--until-empty"]).env("SSL_CERT_FILE", authority);
    Pool::spawn(&home, drain.interruptible().into_command()).ends_well();
    let requests = receiver.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!(requests[0].json()["job"]["id"], "a");
}

#[test]
fn the_error_names_an_unusable_certificate_file() {
    let (home, receiver, plain) = (Home::new(), Receiver::by_https(&[]), Receiver::new(&[]));
    home.hook_to("h", "success", &receiver);
    home.hook_to("plain", "success", &plain);
    home.file("empty.pem", "");
    let test = |hook: &str, file: &str| home.call(["hook", "test", hook]).env("SSL_CERT_FILE", file).run();
    test("h", "nowhere.pem").fails(1).says("failed to read `nowhere.pem`, named by SSL_CERT_FILE");
    let empty = home.folder().join("empty.pem");
    test("h", &empty.display().to_string()).fails(1).says("contains no certificate in PEM format");
    test("plain", "nowhere.pem").ok();
    assert!(receiver.requests().is_empty());
}

#[test]
fn a_receiver_on_this_machine_is_reached_without_a_proxy() {
    let (home, receiver, proxy) = (Home::new(), Receiver::new(&[]), Receiver::new(&[]));
    home.hook_to("h", "success", &receiver);
    home.enqueue("a", "true");
    let drain = home.call(["worker", "run", "--until-empty"]).env("http_proxy", proxy.as_proxy());
    let drain = drain.env("ALL_PROXY", proxy.as_proxy());
    Pool::spawn(&home, drain.interruptible().into_command()).ends_well();
    assert_eq!(receiver.requests().len(), 1);
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
}

#[test]
fn an_outside_receiver_is_reached_through_the_proxy_of_the_environment() {
    let (home, proxy) = (Home::new(), Receiver::new(&[Response::With(403), Response::With(403)]));
    home.run(["hook", "add", "h", "--on", "success", "--url", "https://receiver.invalid/x"]).ok();
    let test = || home.call(["hook", "test", "h"]).env("https_proxy", proxy.as_proxy());
    let ran = test().run().fails(1);
    ran.says(&proxy.as_proxy().replace("http://", "could not be reached through the proxy "));
    let requests = proxy.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert!(requests[0].line.starts_with("CONNECT receiver.invalid:443 "), "{requests:?}");
    test().env("no_proxy", "receiver.invalid").run().fails(1).says("could not be reached: ");
    assert_eq!(proxy.requests().len(), 1, "an exception is reached directly");
}

#[test]
fn a_hanging_receiver_delays_neither_jobs_nor_a_stop() {
    let (home, receiver) = (Home::new(), Receiver::new(&[Response::Hang; 10]));
    home.hook_to("h", "success", &receiver);
    home.hook("other", "success", "cat >> other");
    let _pool = Pool::start(&home, "");
    home.enqueue("a", "true");
    wait_until("the receiver has it", || !receiver.requests().is_empty());
    home.enqueue("b", "true");
    home.wait_for("b", "completed");
    wait_until("the other hook gets both events", || home.read("other").lines().count() == 2);
    let began = Instant::now();
    home.run(["worker", "stop"]).ok();
    assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
    let shown = home.shown_hook("h");
    assert_eq!(shown["pending"], 2, "nothing is lost: {shown}");
}

#[test]
fn a_hook_command_is_killed_when_its_worker_dies() {
    let home = Home::new();
    home.hook("h", "success", "echo $$ > hooked; exec sleep 600");
    let pool = Pool::run(&home, "");
    home.enqueue("a", "true");
    let hooked = home.wait_for_pid("hooked");
    let worker = home.workers()[0].pid;
    super::harness::send(worker, Signal::KILL);
    wait_until("it is dead", || !is_alive(hooked));
    drop(pool);
}

#[test]
fn a_running_hook_command_is_not_taken_for_an_orphan_of_a_job() {
    let home = Home::new();
    home.hook("h", "failure", &format!("{UNTIL_GO}; echo done > hooked"));
    let _pool = Pool::run(&home, "");
    home.enqueue_with("first", "false", "--max-retries 1");
    let running = home.wait_for_pid("running");
    // Slots kill the orphans of their jobs.
    for id in ["a", "b"] {
        home.enqueue(id, "sleep 600 & true");
        home.wait_for(id, "completed");
    }
    assert!(is_alive(running), "it still runs");
    home.file("go", "");
    assert_eq!(home.wait_for_file("hooked"), "done");
}

#[test]
fn the_orphans_of_a_hook_command_are_killed_and_those_of_a_running_job_are_not() {
    let home = Home::new();
    home.hook("h", "success", "setsid sleep 600 & echo $! > daemon; sleep 600 & echo $! > background");
    let _pool = Pool::run(&home, "--concurrency 2");
    home.enqueue("job", &format!("setsid sleep 600 & echo $! > own; {UNTIL_GO}"));
    let (own, _) = (home.wait_for_pid("own"), home.wait_for_pid("running"));
    home.enqueue("a", "true");
    home.wait_until_delivered("h");
    for name in ["daemon", "background"] {
        let left = home.wait_for_pid(name);
        wait_until("the orphan is dead", || !is_alive(left));
    }
    assert!(is_alive(own), "it belongs to a running job");
    home.file("go", "");
    home.wait_for("job", "completed");
    wait_until("it ends with its job", || !is_alive(own));
}

#[test]
fn a_hook_command_can_read_an_event_larger_than_a_pipe() {
    let home = Home::new();
    home.hook("h", "success", "sleep 0.05; cat > event");
    home.enqueue("a", &format!("true {}", "x".repeat(120_000)));
    Pool::drain(&home, "");
    let payload: Value = serde_json::from_str(&home.read("event")).expect("the whole event");
    assert_eq!(payload["job"]["command"].as_str().map(str::len), Some(120_005));
}

#[test]
fn a_failing_hook_does_not_keep_a_worker_from_ending() {
    let home = Home::new();
    home.hook("h", "success", "echo no luck >&2; exit 3");
    home.enqueue("a", "true");
    Pool::drain(&home, "");
    let shown = home.shown_hook("h");
    assert_eq!((&shown["pending"], &shown["error"]), (&Value::from(1), &Value::from("exit code 3: no luck")));
    assert!(home.journal().contains("hook h failed: exit code 3: no luck"));
}

#[test]
fn the_error_of_a_hook_names_its_missing_folder() {
    let home = Home::new();
    let folder = home.folder().join("gone");
    fs::create_dir(&folder).expect("a folder");
    home.call(["hook", "add", "h", "--on", "success", "--", "true"]).at(&folder).run().ok();
    fs::remove_dir(&folder).expect("it is removed");
    home.run(["hook", "test", "h"]).fails(1).says("could not be started: cwd ").says("does not exist");
}

#[test]
fn a_crashed_worker_fires_a_hook() {
    let home = Home::new();
    home.hook("h", "worker-crashed", "cat > crash");
    let pool = Pool::run(&home, "");
    home.enqueue("a", "until [ -e go ]; do sleep 0.02; done");
    home.wait_for("a", "processing");
    let worker = home.workers().remove(0);
    super::harness::send(worker.pid, Signal::KILL);
    wait_until("the event is delivered", || home.read("crash").ends_with('\n'));
    let payload: Value = serde_json::from_str(&home.read("crash")).expect("JSON");
    assert_eq!(payload["worker"]["id"], worker.id.as_str());
    drop(pool);
}
