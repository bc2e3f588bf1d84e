//! `queuectl store grant`

use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use ops::home::location::StoreAddress;
use store::postgres::grant::{Part, grant};

/// Print the SQL that gives a PostgreSQL role its rights in the queue
///
/// The statements replace the rights that the role had there. Run them as the owner of the schema; `CREATE ROLE` is up to
/// you. Run them again after `queuectl store migrate`.
///
/// A role that enqueues jobs runs commands as the account of the worker.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl store grant web --as enqueuer --store postgres://owner@db.example.com/jobs
  queuectl store grant runner --as worker | psql -h db.example.com -U owner jobs")]
pub(super) struct Args {
    /// The role
    #[arg(value_name = "ROLE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    role: String,
    /// Its part: enqueuer (adds jobs, reads none), worker (everything but migrations), reader (changes nothing), admin (as
    /// the owner of the schema)
    #[arg(long = "as", value_name = "PART", value_parser = parse_part)]
    part: Part,
}

#[derive(Serialize)]
struct GrantJson<'a> {
    role: &'a str,
    part: Part,
    schema: &'a str,
    sql: &'a str,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let location = context.location()?;
    let address = match &location.store {
        StoreAddress::Postgres(address) => address,
        StoreAddress::Sqlite(_) => {
            return Err(Failure::usage("only a queue in PostgreSQL has roles")
                .with_hint("name it with --store postgres://USER@HOST/DATABASE or in QUEUECTL_STORE"));
        }
    };
    let sql = grant(address, &args.role, args.part);
    let json = GrantJson { role: &args.role, part: args.part, schema: &address.schema, sql: &sql };
    context.print(&json, |out| out.write_all(sql.as_bytes()))
}

fn parse_part(text: &str) -> Result<Part, String> {
    let names = Part::ALL.map(Part::name);
    Part::from_name(text).ok_or_else(|| {
        let nearest = domain::text::nearest::nearest(text, names);
        let known = format!("the parts are {}", names.join(", "));
        nearest.map_or(known, |nearest| format!("did you mean `{nearest}`?"))
    })
}
