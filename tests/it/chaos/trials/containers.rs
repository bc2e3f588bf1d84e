//! Containers that share the home of a trial: pools in their own mount and pid namespaces, some with their own boot id,
//! which are later killed with all their processes.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::Sandbox;

use super::harness::Trials;

const MAX_CONTAINERS: usize = 2;
const REAP_WAIT_LIMIT: Duration = Duration::from_secs(30);
const ANOTHER_BOOT: &str = "cat /proc/sys/kernel/random/uuid > boot-id
mount --bind boot-id /proc/sys/kernel/random/boot_id\n";

#[derive(Default)]
struct Containers {
    running: Vec<Child>,
}

impl Containers {
    fn start(&mut self, sandbox: &Sandbox, has_own_boot: bool) {
        let setup = if has_own_boot { ANOTHER_BOOT } else { "" };
        let inside = sandbox.command(["-q", "worker", "run"]);
        let mut command = Command::new("unshare");
        command.args(["-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-e", "-c"]);
        command.arg(format!("{setup}exec \"$0\" \"$@\"")).arg(inside.get_program()).args(inside.get_args());
        command.current_dir(sandbox.folder()).env_clear();
        command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.running.push(command.spawn().expect("a container starts"));
    }

    /// Kills a container with all its processes.
    fn kill(&mut self, at: usize) {
        let mut container = self.running.swap_remove(at);
        let _ = container.kill();
        let _ = container.wait();
    }
}

impl Nemesis for Containers {
    fn name(&self) -> &'static str {
        "containers"
    }

    fn description(&self) -> &'static str {
        "containers start, share the home, and are killed"
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        if self.running.len() < MAX_CONTAINERS && random.u32(0..3) > 0 {
            self.start(sandbox, random.bool());
        } else if !self.running.is_empty() {
            self.kill(random.usize(0..self.running.len()));
        }
        Ok(true)
    }

    /// The workers of a killed container are declared dead only after a lease without heartbeats. Wait for that while other
    /// workers are there to notice.
    fn heal(&mut self, sandbox: &Sandbox) {
        while !self.running.is_empty() {
            self.kill(0);
        }
        sandbox.wait(REAP_WAIT_LIMIT, || {
            let registered = sandbox.store().workers().map_or(0, |workers| workers.len());
            sandbox.workers().is_ok_and(|live| live.len() == registered)
        });
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        while !self.running.is_empty() {
            self.kill(0);
        }
    }
}

#[test]
fn fault_38_chaos_containers() {
    let can = Command::new("unshare").args(["-m", "-p", "-f", "--mount-proc", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        println!("skipped: creating a container requires root");
        return;
    }
    Trials::of("fault_38_chaos_containers", |_| Box::new(Containers::default())).assert_all_hold();
}
