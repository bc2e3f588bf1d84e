//! FAULTS 28: power cuts.

mod checker;
mod controls;
mod cut;
mod disk;
mod durability;
mod file;
mod folder;
mod migration;
mod promise;
mod record;
mod recording;
mod trial;
mod workload;
