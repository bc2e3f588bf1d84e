//! How the server starts and ends.

use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::client::Server;
use crate::cli::harness::Home;
use crate::cli::harness::background::Background;

#[test]
fn a_signal_ends_streams_with_bye_and_the_server_soon_after() {
    let mut server = Server::new();
    let mut stream = server.call("GET", "/api/v1/stream").open();
    let mut idle = server.connect();
    server.request("GET", "/healthz").send().expects(200);
    let link_file = server.home.path().join("dashboard.json");
    assert!(link_file.exists());
    let process = server.process.take().expect("it runs");
    let began = Instant::now();
    process.signal(Signal::TERM);
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the stream ends");
    assert!(text.contains("event: status") && text.contains("event: bye"), "{text}");
    assert!(process.end().0.success());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(idle.read(&mut [0]).unwrap_or(0), 0, "an idle connection is closed");
    assert!(!link_file.exists(), "no link is made for a server that has ended");
    server.home.run(["dashboard", "link"]).fails(3);
}

#[test]
fn one_line_is_printed_and_a_taken_port_is_an_error() {
    let home = Home::new();
    let process = Background::start(home.call(["serve", "--port", "0"]));
    let line = process.prints();
    assert!(line.starts_with("Dashboard at http://127.0.0.1:") && line.contains("/login#"), "{line}");
    let port = line.split(&[':', ' '][..]).nth(4).expect("a port").to_owned();
    home.run(["dashboard", "--port", &port]).fails(5).says("failed to listen");
    process.signal(Signal::INT);
    assert!(process.end().0.success());
}

#[test]
fn sockets_of_the_service_manager_are_used() {
    let home = Home::with_queue();
    let script = "import os,socket,sys
s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()
os.dup2(s.fileno(),3); os.set_inheritable(3,True)
os.environ['LISTEN_PID']=str(os.getpid()); os.environ['LISTEN_FDS']='1'
os.execv(sys.argv[1],sys.argv[1:])";
    let mut python = std::process::Command::new("python3");
    python.args(["-c", script, crate::cli::harness::PROGRAM]);
    let mut child = home.call(["dashboard", "--json"]).through(python).spawn();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    std::io::BufRead::read_line(&mut out, &mut line).expect("a line");
    let ready: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let url = ready["url"].as_str().expect("a URL").to_owned();
    assert!(url.starts_with("http://127.0.0.1:") && !url.ends_with(":7878"), "{url}");
    let address = url.strip_prefix("http://").expect("HTTP").to_owned();
    let mut stream = std::net::TcpStream::connect(&address).expect("connected");
    std::io::Write::write_all(
        &mut stream,
        format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM)
        .expect("it gets the signal");
    assert!(child.wait().expect("it ends").success());
}
