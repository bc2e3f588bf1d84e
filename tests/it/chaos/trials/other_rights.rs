//! Commands with other privileges than their workers, like sudo and setuid programs. No worker may signal them, and each
//! runs until it ends by itself, even after its worker has died.
//!
//! Root may signal every process, so the test starts itself again as another user, which runs the trials.

use std::collections::HashSet;
use std::fs::{File, remove_file};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::{KillBoth, KillSupervisor, KillWorker, Nemesis, Storm};
use proof::plan::{Escapes, Plan, Request};
use proof::sandbox::Sandbox;

use super::harness::Trials;
use crate::cli::harness::{UNPRIVILEGED, copy_program};
use crate::engine::attempts::other_user::{BECOME_ROOT, home_of_unprivileged_user};

const TEST: &str = "fault_42_chaos_other_rights";
/// Passes the folder to the test process that runs as the other user.
const FOLDER: &str = "QUEUECTL_CHAOS_OTHER_RIGHTS";

/// Uses all the ways in which a worker can stop or die.
struct WorkerExits([Box<dyn Nemesis>; 4]);

impl Nemesis for WorkerExits {
    fn name(&self) -> &'static str {
        "other-rights"
    }

    fn description(&self) -> &'static str {
        "workers exit, but cannot kill their commands"
    }

    /// As for the nemesis that kills a worker and its supervisor at once.
    fn escapes(&self) -> Escapes {
        Escapes::Findable
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let at = random.usize(0..self.0.len());
        self.0[at].strike(sandbox, random)
    }
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Makes every second job run as root. Jobs that are cancelled are excluded, and escapes and timeouts removed: a worker would
/// replace the slot of such a job, and its processes would outlive the trial.
fn run_every_second_job_as_root(plan: &mut Plan) {
    let become_root = folder().map(|folder| folder.join(BECOME_ROOT));
    let actions = plan.clients.iter().flatten();
    let cancelled: HashSet<String> = actions
        .filter_map(|action| match &action.request {
            Request::Cancel(id) => Some(id.clone()),
            Request::Enqueue(_) | Request::Retry(_) => None,
        })
        .collect();
    let mut count = 0;
    plan.each_job(|job| {
        count += 1;
        if count % 2 == 0 && !cancelled.contains(&job.id) {
            job.runs_through.clone_from(&become_root);
            job.escapes.clear();
            job.timeout = None;
        }
    });
}

fn run_trials(folder: &Path) {
    let create = |sandbox: &mut Sandbox| -> Box<dyn Nemesis> {
        // Other commands could not write to a ledger created by root.
        File::create(sandbox.ledger()).expect("a ledger");
        let exits: [Box<dyn Nemesis>; 4] =
            [Box::new(KillWorker), Box::new(KillSupervisor), Box::new(KillBoth), Box::new(Storm)];
        Box::new(WorkerExits(exits))
    };
    let trials = Trials::of(TEST, create).with_plans(run_every_second_job_as_root);
    trials.with_program(folder.join("queuectl")).assert_all_hold();
}

#[test]
fn fault_42_chaos_other_rights() {
    if let Some(folder) = folder() {
        return run_trials(&folder);
    }
    let Some(mut home) = home_of_unprivileged_user() else { return };
    copy_program(home.folder());
    // The other user may not have access to the folder of this program, but it can execute /proc/self/exe.
    let mut again = Command::new("/proc/self/exe");
    again.args([TEST, "--nocapture"]).uid(UNPRIVILEGED).gid(UNPRIVILEGED).current_dir(home.folder());
    let output =
        again.env(FOLDER, home.folder()).env("TMPDIR", home.folder()).output().expect("the test starts");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}{}", String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        remove_file(home.folder().join(BECOME_ROOT)).expect("the helper exists");
        home.keep();
    }
    assert!(output.status.success() && said.contains("1 passed"), "{}", output.status);
}
