//! Parsing and formatting of limits.

use crate::job::limits::*;

fn parse(text: &str) -> Result<Limits, LimitsError> {
    text.parse()
}

fn all() -> Limits {
    Limits {
        memory: Some(512 << 20),
        cpu: Some(Cpu { millis: 1_500 }),
        pids: Some(100),
        nice: Some(10),
        open_files: Some(1024),
    }
}

#[test]
fn json_and_pairs_give_the_same_limits() {
    let json = r#"{"memory":"512M","cpu":1.5,"pids":100,"nice":10,"open_files":1024}"#;
    let pairs = "memory=512M,cpu=1.5,pids=100,nice=10,open_files=1024";
    assert_eq!(parse(json), Ok(all()));
    assert_eq!(parse(pairs), Ok(all()));
    assert_eq!(all().to_string(), pairs);
    assert_eq!(serde_json::to_string(&all()).expect("JSON"), json);
    assert_eq!(
        parse(" nice = -5 , open-files=64"),
        Ok(Limits { nice: Some(-5), open_files: Some(64), ..Limits::default() })
    );
    assert_eq!(parse(r#"{"memory":1048576}"#), parse("memory=1M"), "a number is bytes");
    assert_eq!(parse("cpu=0.0104").map(|limits| limits.to_string()), Ok("cpu=0.01".to_owned()));
    assert_eq!(parse("{}"), Ok(Limits::default()));
    assert_eq!(Limits::default().to_string(), "none");
    assert_eq!(serde_json::to_string(&Limits::default()).expect("JSON"), "{}");
}

#[test]
fn an_invalid_limit_is_refused_with_the_reason() {
    for (text, message) in [
        ("", "not a valid limit: ``"),
        ("none", "not a valid limit: `none`"),
        ("512M", "memory=512M,pids=100"),
        ("memory", "not a valid limit: `memory`"),
        ("memroy=1G", "did you mean `memory`?"),
        ("colour=red", "the limits are memory, cpu, pids, nice, open_files"),
        ("pids=1,pids=2", "`pids` is given twice"),
        ("open-files=9,open_files=9", "`open_files` is given twice"),
        ("memory=much", "not a valid size: `much`"),
        ("memory=512", "write 512M"),
        ("memory=-1", "not a valid size"),
        ("memory=99999999999G", "too large"),
        ("cpu=0", "from 0.01 to 10000"),
        ("cpu=NaN", "from 0.01 to 10000"),
        ("cpu=inf", "from 0.01 to 10000"),
        ("cpu=-1", "from 0.01 to 10000"),
        ("cpu=two", "not `two`"),
        ("pids=0", "from 1 to 4194304"),
        ("pids=1.5", "from 1 to 4194304"),
        ("pids=9223372036854775808", "from 1 to 4194304"),
        ("nice=20", "from -20 to 19"),
        ("nice=-21", "from -20 to 19"),
        ("open_files=3", "from 4 to"),
        (r#"{"memory":"512"}"#, "write 512M"),
        (r#"{"memory":1.5}"#, "a size such as"),
        (r#"{"memory":-1}"#, "a size such as"),
        (r#"{"cpu":"1"}"#, "`cpu`"),
        (r#"{"cpu":0}"#, "from 0.01 to 10000"),
        (r#"{"cpu":1e400}"#, "out of range"),
        (r#"{"pids":0}"#, "from 1 to 4194304"),
        (r#"{"nice":0.5}"#, "from -20 to 19"),
        (r#"{"open_files":3}"#, "from 4 to"),
        (r#"{"pid":3}"#, "did you mean `pids`?"),
        (r#"{"pids":3,"pids":3}"#, "given twice"),
        (r#"{"pids":3"#, "EOF"),
        (r#"{"pids":3} x"#, "trailing"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn the_first_limits_that_set_a_field_win() {
    let job = Limits { memory: Some(1 << 30), ..Limits::default() };
    let queue = Limits { memory: Some(2 << 30), pids: Some(7), ..Limits::default() };
    let merged = job.or(&queue).or(&all());
    assert_eq!(merged, Limits { memory: Some(1 << 30), pids: Some(7), ..all() });
    assert!(Limits::default().or(&Limits::default()).is_none());
}
