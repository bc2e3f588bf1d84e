//! Which limits of jobs a worker started from here can enforce, and how.

use super::{Diagnosis, Finding};
use domain::settings::Settings;
use sys::cgroup;
use sys::cgroup::{Controllers, Obstacle};

const DELEGATE: &str =
    "run workers as a systemd service with `Delegate=yes`, or do not set limits.cpu; see docs/limits.md";

pub(super) fn check(diagnosis: &mut Diagnosis, settings: &Settings) {
    diagnosis.add(limits(&cgroup::can_prepare(), settings.limits.cpu.is_some()));
}

fn limits(found: &Result<Controllers, Obstacle>, wants_cpu: bool) -> Finding {
    let (controllers, why) = match found {
        Ok(controllers) => (*controllers, "no cpu controller".to_owned()),
        Err(obstacle) => (Controllers::default(), obstacle.to_string()),
    };
    let how = |by_group: bool| if by_group { "by a cgroup" } else { "by polling" };
    let kept =
        format!("enforced for jobs: memory {}, pids {}", how(controllers.memory), how(controllers.pids));
    if controllers.cpu {
        return Finding::ok("limits", format!("{kept}, cpu by a cgroup, nice and open_files always"));
    }
    let message = format!("{kept}, nice and open_files always, but not cpu ({why})");
    if wants_cpu {
        let message = format!("{message}; the setting `limits` includes cpu, so no job will start");
        return Finding::warning("limits", message).advise(DELEGATE);
    }
    Finding::ok("limits", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn the_finding_says_which_limits_are_enforced_and_how() {
        let all = Controllers { memory: true, cpu: true, pids: true };
        let good = limits(&Ok(all), true);
        assert_eq!(good.level, Level::Ok);
        assert!(
            good.message.contains("memory by a cgroup, pids by a cgroup, cpu by a cgroup"),
            "{}",
            good.message
        );
        let some = limits(&Ok(Controllers { cpu: false, ..all }), false);
        assert!(some.message.contains("not cpu (no cpu controller)"), "{}", some.message);
        let none = limits(&Err(Obstacle::NotMounted), false);
        assert_eq!(none.level, Level::Ok);
        assert!(none.message.contains("memory by polling, pids by polling"), "{}", none.message);
        assert!(none.message.contains("(cgroup v2 is not mounted)"), "{}", none.message);
        assert_eq!(limits(&Err(Obstacle::NotMounted), true).level, Level::Warning);
    }
}
