//! Hooks: adding, testing and removing them.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::table::{Method, Route};
use crate::doors::scope::Scope;
use crate::doors::secret::random_number;
use crate::pool::Access;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::encode;
use domain::hook::{HookEvents, Secret, Target, Trigger, check_command};
use domain::values::name::QueueName;
use engine::test_hook;
use ops::OpError;
use ops::hook::{add, deliveries, find, parse_name, remove, retry, sample};
use ops::json::DeliveriesJson;
use store::{DeliveryResult, NewHook};
use sys::signal::interrupts::Interrupts;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/hooks", Scope::Read, list).about("All hooks.").answers(200, "Hook[]"),
    Route::change(Method::Post, "/api/v1/hooks", Scope::Admin, create)
        .about("Adds a hook.")
        .body("NewHook")
        .answers(201, "Hook")
        .fails(&[400, 409, 415, 422]),
    Route::get("/api/v1/hooks/{hook}", Scope::Read, show)
        .about("A hook.")
        .answers(200, "Hook")
        .fails(&[404, 422]),
    Route::change(Method::Delete, "/api/v1/hooks/{hook}", Scope::Admin, delete)
        .about("Removes a hook and its undelivered events.")
        .answers_nothing()
        .fails(&[404, 412, 422]),
    Route::get("/api/v1/hooks/{hook}/deliveries", Scope::Read, show_deliveries)
        .about("The events that wait for a hook, and the results of the last tries.")
        .answers(200, "Deliveries")
        .fails(&[404, 422]),
    Route::change(Method::Post, "/api/v1/hooks/{hook}/retry", Scope::Operate, retry_all)
        .about("Lets the workers try the events now that wait for their next try.")
        .answers(200, "HookRetry")
        .fails(&[404, 422]),
    Route::change(
        Method::Post,
        "/api/v1/hooks/{hook}/deliveries/{delivery}/retry",
        Scope::Operate,
        retry_one,
    )
    .about("Lets a worker try an event now that waits for its next try.")
    .answers(200, "HookRetry")
    .fails(&[404, 409, 422]),
    Route::change(Method::Post, "/api/v1/hooks/{hook}/test", Scope::Admin, test)
        .about("Delivers a sample event now.")
        .answers(200, "HookTest")
        .fails(&[404, 422, 502]),
];

/// How many waiting deliveries are listed.
const MAX_DELIVERIES: usize = 100;

/// The fields have the names of the flags of `hook add`; exactly one of `command` and `url` is given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewHookRequest {
    name: String,
    on: Vec<String>,
    above: Option<u64>,
    queue: Option<QueueName>,
    command: Option<String>,
    url: Option<String>,
    secret: Option<String>,
}

impl NewHookRequest {
    fn resolve(self) -> Result<NewHook, Problem> {
        let events: HookEvents = self.on.join(",").parse().map_err(OpError::from)?;
        let trigger = Trigger::new(events, self.queue, self.above).map_err(OpError::from)?;
        let secret = self.secret.map(Secret::new).transpose().map_err(OpError::from)?;
        let target = match (self.command, self.url) {
            (Some(_), None) if secret.is_some() => return Err(Problem::invalid("`secret` needs `url`")),
            (Some(line), None) => {
                let line = check_command(line).map_err(OpError::from)?;
                Target::Command { line, cwd: None, environment: None }
            }
            (None, Some(url)) => Target::Url { url: url.parse().map_err(OpError::from)?, secret },
            (Some(_), Some(_)) | (None, None) => {
                return Err(Problem::invalid("give exactly one of `command` and `url`"));
            }
        };
        Ok(NewHook { name: parse_name(&self.name)?, trigger, target })
    }
}

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&call.store()?.hooks()?)
}

fn create(call: &Call<'_>) -> Result<Answer, Problem> {
    let new = call.body::<NewHookRequest>()?.resolve()?;
    let hook = add(call.store()?, &new, call.by())?;
    let path = call.path(&format!("/hooks/{}", encode(hook.name.as_str())));
    Ok(Answer::json(&hook)?.with_status(StatusCode::CREATED).at(&path))
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&find(call.store()?, &call.name("hook")?)?)
}

fn show_deliveries(call: &Call<'_>) -> Result<Answer, Problem> {
    let found = deliveries(call.store()?, &call.name("hook")?, MAX_DELIVERIES)?;
    Answer::json(&DeliveriesJson::from(&found))
}

fn retry_all(call: &Call<'_>) -> Result<Answer, Problem> {
    retry_deliveries(call, None)
}

fn retry_one(call: &Call<'_>) -> Result<Answer, Problem> {
    retry_deliveries(call, Some(call.param("delivery")))
}

fn retry_deliveries(call: &Call<'_>, delivery: Option<&str>) -> Result<Answer, Problem> {
    let hook = call.name("hook")?;
    let retried = retry(call.store()?, &hook, delivery, call.by())?;
    Answer::json(&json!({ "hook": hook.as_str(), "retried": retried }))
}

fn delete(call: &Call<'_>) -> Result<Answer, Problem> {
    remove(call.store()?, &call.name("hook")?, call.by())?;
    Ok(Answer::empty())
}

fn test(call: &Call<'_>) -> Result<Answer, Problem> {
    let delivery = {
        // The delivery may take long, and holds no connection meanwhile.
        let store = call.server.pool.take(Access::Read, call.parts.arrived)?;
        let hook = find(store.as_ref(), &call.name("hook")?)?;
        sample(&hook, store.as_ref().now()?, random_number())
    };
    let location = &call.server.options.location;
    let system = |error: std::io::Error| Problem::from(OpError::CannotWrite { source: error });
    let interrupts = Interrupts::catch(&[]).map_err(system)?;
    let (home, variable) = (&location.home, location.store_variable());
    let sent = test_hook(&delivery, home, variable, location.environment(), &interrupts)?;
    match sent {
        Ok(DeliveryResult::Failed(why)) => Err(OpError::HookFailed { hook: delivery.hook, why }.into()),
        Ok(DeliveryResult::Delivered | DeliveryResult::GivenBack) => Answer::json(
            &json!({ "hook": delivery.hook.as_str(), "delivery": delivery.name, "delivered": true }),
        ),
        Err(_) => Err(Problem::overloaded("the server is being stopped")),
    }
}
