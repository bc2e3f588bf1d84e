//! Which limits of jobs a worker that is started from here can keep, and how.

use super::{Diagnosis, Finding};
use domain::settings::Settings;
use sys::cgroup;
use sys::cgroup::{Controllers, Obstacle};

const DELEGATE: &str = "run workers as a systemd service with `Delegate=yes`, or leave limits.cpu out; docs/limits.md tells more";

pub(super) fn check(diagnosis: &mut Diagnosis, settings: &Settings) {
    diagnosis.add(limits(&cgroup::can_prepare(), settings.limits.cpu.is_some()));
}

fn limits(found: &Result<Controllers, Obstacle>, wants_cpu: bool) -> Finding {
    let (controllers, why) = match found {
        Ok(controllers) => (*controllers, "without a cpu controller".to_owned()),
        Err(obstacle) => (Controllers::default(), obstacle.to_string()),
    };
    let how = |by_group: bool| if by_group { "by a cgroup" } else { "by watching" };
    let kept = format!("of jobs: memory {}, pids {}", how(controllers.memory), how(controllers.pids));
    if controllers.cpu {
        return Finding::ok("limits", format!("{kept}, cpu by a cgroup; nice and open_files always"));
    }
    let said = format!("{kept}; nice and open_files always; cpu not at all ({why})");
    if wants_cpu {
        let said = format!("{said}, and the setting `limits` asks for it: no job will start");
        return Finding::warning("limits", said).advise(DELEGATE);
    }
    Finding::ok("limits", said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn it_says_what_is_kept_and_how() {
        let all = Controllers { memory: true, cpu: true, pids: true };
        let good = limits(&Ok(all), true);
        assert_eq!(good.level, Level::Ok);
        assert!(good.said.contains("memory by a cgroup, pids by a cgroup, cpu by a cgroup"), "{}", good.said);
        let some = limits(&Ok(Controllers { cpu: false, ..all }), false);
        assert!(some.said.contains("cpu not at all (without a cpu controller)"), "{}", some.said);
        let none = limits(&Err(Obstacle::NotMounted), false);
        assert_eq!(none.level, Level::Ok);
        assert!(none.said.contains("memory by watching, pids by watching"), "{}", none.said);
        assert!(none.said.contains("(cgroup v2 is not mounted)"), "{}", none.said);
        assert_eq!(limits(&Err(Obstacle::NotMounted), true).level, Level::Warning);
    }
}
