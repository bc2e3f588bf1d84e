//! The answers that the first flight has brought, by statement and first parameter.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use tokio_postgres::Row;

use crate::Result;
use crate::rows::sql::{Columns, Params};
use crate::rows::value::{Value, malformed};
use crate::rows::verbs::enqueue;

#[derive(Default)]
pub(in crate::postgres) struct Answers {
    known: HashMap<&'static str, Answered>,
    /// Numbers for new jobs. Each is given once.
    pub(super) numbers: RefCell<VecDeque<i64>>,
}

/// The answers to one statement.
#[derive(Default)]
struct Answered {
    by_integer: HashMap<i64, Rc<[Answer]>>,
    by_text: HashMap<String, Rc<[Answer]>>,
    /// The answer for every other parameter, and for none.
    otherwise: Option<Rc<[Answer]>>,
}

/// A row of an answer.
pub(in crate::postgres) enum Answer {
    /// The columns from this one on.
    Part(Rc<Row>, usize),
    Integers(Vec<Option<i64>>),
}

/// Whole rows.
pub(super) fn parts(rows: Vec<Row>) -> Vec<Answer> {
    rows.into_iter().map(|row| Answer::Part(Rc::new(row), 0)).collect()
}

impl Columns for Answer {
    fn index(&self, name: &str) -> Result<usize> {
        let index = match self {
            Self::Part(row, from) => row.index(name)?.checked_sub(*from),
            Self::Integers(_) => None,
        };
        index.ok_or_else(|| malformed("row", format_args!("it has no column {name}")))
    }

    fn value(&self, index: usize) -> Result<Value<'_>> {
        let value = match self {
            Self::Part(row, from) => return Columns::value(&**row, from + index),
            Self::Integers(values) => {
                values.get(index).map(|value| value.map_or(Value::Null, Value::Integer))
            }
        };
        value.ok_or_else(|| malformed("row", format_args!("it has no column {index}")))
    }
}

impl Answers {
    /// The answer to a question without a parameter, or for parameters without an answer of their own.
    pub(super) fn otherwise(&mut self, sql: &'static str, rows: Vec<Answer>) {
        self.known.entry(sql).or_default().otherwise = Some(rows.into());
    }

    /// The answer to a question about a number.
    pub(super) fn of_integer(&mut self, sql: &'static str, key: i64, rows: Vec<Answer>) {
        self.known.entry(sql).or_default().by_integer.insert(key, rows.into());
    }

    /// The answer to a question about a name.
    pub(super) fn of_text(&mut self, sql: &'static str, key: String, rows: Vec<Answer>) {
        self.known.entry(sql).or_default().by_text.insert(key, rows.into());
    }

    pub(super) fn find(&self, sql: &str, key: Value<'_>) -> Option<Rc<[Answer]>> {
        if sql == enqueue::UNUSED_NUMBER.postgres {
            let number = self.numbers.borrow_mut().pop_front()?;
            return Some(Rc::new([Answer::Integers(vec![Some(number), Some(0)])]));
        }
        let answered = self.known.get(sql)?;
        let found = match key {
            Value::Integer(key) => answered.by_integer.get(&key),
            Value::Text(key) => answered.by_text.get(key),
            Value::Null | Value::Real(_) | Value::Blob(_) | Value::Path(_) => None,
        };
        found.or(answered.otherwise.as_ref()).map(Rc::clone)
    }
}

pub(super) fn first_parameter(params: Params<'_>) -> Value<'_> {
    let first = match params {
        Params::Positional(values) => values.first(),
        Params::Named(values) => values.first().map(|(_, value)| value),
    };
    first.copied().unwrap_or(Value::Null)
}
