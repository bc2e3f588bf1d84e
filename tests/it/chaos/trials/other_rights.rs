//! Commands with other rights than their workers, as sudo and setuid programs have: no worker may signal them, and each
//! runs until it ends by itself, also when its worker has gone.
//!
//! Root may signal every process. So the test starts itself again as another user, and that one holds the trials.

use std::collections::HashSet;
use std::fs::{File, remove_file};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::{KillBoth, KillSupervisor, KillWorker, Nemesis, Storm};
use proof::plan::{Escapes, Plan, Wish};
use proof::sandbox::Field;

use super::harness::Trials;
use crate::cli::harness::{NOBODY, copy_program};
use crate::engine::other_rights::{BECOME_ROOT, home_of_nobody};

const TEST: &str = "fault_42_chaos_other_rights";
/// Names the folder of the other user to the test that runs as that user.
const FOLDER: &str = "QUEUECTL_CHAOS_OTHER_RIGHTS";

/// Takes turns with all the ways in which a worker can go.
struct Goodbyes([Box<dyn Nemesis>; 4]);

impl Nemesis for Goodbyes {
    fn name(&self) -> &'static str {
        "other-rights"
    }

    fn does(&self) -> &'static str {
        "workers go, and their commands cannot be killed"
    }

    /// As for the nemesis that kills a worker and its supervisor at once.
    fn escapes(&self) -> Escapes {
        Escapes::Findable
    }

    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let at = random.usize(0..self.0.len());
        self.0[at].strike(field, random)
    }
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Every second job runs as root. A cancel or a timeout of such a job would let a worker replace its slot, and what the
/// job leaves behind would outlive the trial: those are left out.
fn run_every_second_job_as_root(plan: &mut Plan) {
    let become_root = folder().map(|folder| folder.join(BECOME_ROOT));
    let deeds = plan.clients.iter().flatten();
    let cancelled: HashSet<String> = deeds
        .filter_map(|deed| match &deed.what {
            Wish::Cancel(id) => Some(id.clone()),
            Wish::Enqueue(_) | Wish::Retry(_) => None,
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

fn hold_trials(folder: &Path) {
    let summon = |field: &mut Field| -> Box<dyn Nemesis> {
        // A ledger that root makes is closed to the other commands.
        File::create(field.ledger()).expect("a ledger");
        let goodbyes: [Box<dyn Nemesis>; 4] =
            [Box::new(KillWorker), Box::new(KillSupervisor), Box::new(KillBoth), Box::new(Storm)];
        Box::new(Goodbyes(goodbyes))
    };
    let trials = Trials::of(TEST, summon).with_plans(run_every_second_job_as_root);
    trials.with_program(folder.join("queuectl")).all_hold();
}

#[test]
fn fault_42_chaos_other_rights() {
    if let Some(folder) = folder() {
        return hold_trials(&folder);
    }
    let Some(mut home) = home_of_nobody() else { return };
    copy_program(home.folder());
    // The other user may not be able to enter the folder of this program, but it can start what it was forked from.
    let mut again = Command::new("/proc/self/exe");
    again.args([TEST, "--nocapture"]).uid(NOBODY).gid(NOBODY).current_dir(home.folder());
    let output = again.env(FOLDER, home.folder()).env("TMPDIR", home.folder()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}{}", String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        remove_file(home.folder().join(BECOME_ROOT)).expect("it was there");
        home.keep();
    }
    assert!(output.status.success() && said.contains("1 passed"), "{}", output.status);
}
