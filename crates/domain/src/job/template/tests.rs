//! Filling in words, columns and lines for the shell.

use super::*;

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn filled(command: &str, line: &str) -> String {
    Template::for_lines(&words(command)).expect(command).fill(7, &[line])
}

#[test]
fn a_line_becomes_part_of_one_word() {
    for (command, line, expected) in [
        ("convert {} out/{}.jpg", "a b", "convert 'a b' 'out/a b.jpg'"),
        ("echo", "x; rm -rf /", "echo 'x; rm -rf /'"),
        ("echo {}", "it's", r"echo 'it'\''s'"),
        ("echo {}", "$(reboot)", "echo '$(reboot)'"),
        ("{} --version", "a=b", "'a=b' --version"),
        ("echo {{}} {}", "x", "echo '{}' x"),
        ("awk {print} }{", "x", "awk '{print}' '}{' x"),
        ("echo {}{}", "ab", "echo abab"),
        ("echo {}", "{}", "echo '{}'"),
        ("echo -- {}", "-n", "echo -- -n"),
    ] {
        assert_eq!(filled(command, line), expected, "{command} with {line}");
    }
}

#[test]
fn the_placeholders_of_gnu_parallel_are_filled_in() {
    for (command, expected) in [
        ("ffmpeg -i {} {.}.mp4", "ffmpeg -i 'd/a b.mkv' 'd/a b.mp4'"),
        ("echo {/} {//} {/.}", "echo 'a b.mkv' d 'a b'"),
        ("echo {#}-{/.}", "echo '7-a b'"),
        ("mkdir {#}", "mkdir 7"),
        ("echo {.}", "echo 'd/a b'"),
    ] {
        assert_eq!(filled(command, "d/a b.mkv"), expected, "{command}");
    }
}

#[test]
fn braces_of_shells_json_and_other_tools_stay() {
    for (command, expected) in [
        ("sh -c ${x}", "sh -c '${x}' v"),
        ("sh -c ${#}", "sh -c '${#}' v"),
        (r#"curl -d {"a":1}"#, r#"curl -d '{"a":1}' v"#),
        ("echo {a,b} {1..3}", "echo '{a,b}' '{1..3}' v"),
        ("grep -E [0-9]{4}-[0-9]{2} {}", "grep -E '[0-9]{4}-[0-9]{2}' v"),
        ("docker inspect --format {{.Name}} {}", "docker inspect --format '{{.Name}}' v"),
        ("find {} -exec touch {{}} +", "find v -exec touch '{}' +"),
        ("echo {{.}} {{#}} {{1}}", "echo '{.}' '{#}' '{1}' v"),
        ("echo {{{.}}}", "echo '{{.}}' v"),
    ] {
        assert_eq!(filled(command, "v"), expected, "{command}");
    }
}

#[test]
fn an_unknown_placeholder_is_refused_with_the_known_ones() {
    for command in ["echo {..}", "echo {1}", "echo x/{2.}", "echo {%}", "echo {} {+/}"] {
        let error = Template::for_lines(&words(command)).expect_err(command);
        assert!(error.to_string().contains("{}, {.}, {/}, {//}, {/.} and {#}"), "{command}: {error}");
    }
    let error = Template::for_lines(&words("echo {..}")).expect_err("unknown");
    assert!(error.to_string().contains("`{{..}}` is a literal `{..}`"), "{error}");
}

#[test]
fn columns_are_named_by_header_or_by_number() {
    let columns = ["name", "address of", "3"];
    let fields = ["Ann", "1 Long St", "x"];
    for (command, expected) in [
        ("mail {name} {2}", "mail Ann '1 Long St'"),
        ("mail {1}@{3}", "mail Ann@x"),
        ("echo {{name}} {name}", "echo '{name}' Ann"),
        ("echo {#} {name}", "echo 2 Ann"),
    ] {
        let template = Template::for_columns(&words(command), &columns).expect(command);
        assert_eq!(template.fill(2, &fields), expected, "{command}");
    }
    let spaced = Template::for_columns(&["{address of}".to_owned()], &columns).expect("a column");
    assert_eq!(spaced.fill(1, &fields), "'1 Long St'");
}

#[test]
fn an_invalid_column_is_refused() {
    for (command, message) in [
        ("mail {nmae}", "did you mean `name`?"),
        ("mail {address}", "the columns are name, 3"),
        ("mail {4}", "unknown column `4`"),
        ("mail {0}", "unknown column `0`"),
        ("mail {}", "does not name a column"),
        ("mail {name", "unmatched brace"),
        ("mail name}", "unmatched brace"),
        ("mail name", "does not use any column"),
        ("mail {#}", "does not use any column"),
    ] {
        let error = Template::for_columns(&words(command), &["name", "3"]).expect_err(command);
        assert!(error.to_string().contains(message), "{command}: {error}");
    }
}

#[test]
fn in_a_shell_line_every_value_is_quoted() {
    for (line, expected) in [
        ("gzip < {} > {}.gz && rm {}", "gzip < 'a b' > 'a b'.gz && rm 'a b'"),
        ("echo \"to {} from\" '{}'", "echo \"to \"'a b'\" from\" '''a b'''"),
        ("x=$(basename {} .mkv); echo \"$x\"", "x=$(basename 'a b' .mkv); echo \"$x\""),
        ("echo ${HOME} ${x%.y} {}", "echo ${HOME} ${x%.y} 'a b'"),
        ("awk '{print $1}' {}", "awk '{print $1}' 'a b'"),
        ("make && make test", "make && make test 'a b'"),
        (r"echo \{} {{}} {}", r"echo \{} {} 'a b'"),
        ("echo {#} {/.}", "echo 7 'a b'"),
        ("echo x#{}", "echo x#'a b'"),
        ("echo \"${x}\" {}", "echo \"${x}\" 'a b'"),
    ] {
        let template = Template::for_shell_line(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(template.fill(7, &["a b"]), expected, "{line}");
    }
}

#[test]
fn a_shell_line_that_could_run_a_value_is_refused() {
    for (line, message) in [
        ("echo \"$(basename {})\"", "as an argument"),
        ("echo \"$(basename \"{}\")\"", "as an argument"),
        ("echo `basename {}`", "as an argument"),
        ("cat <<END\n{}\nEND", "as an argument"),
        ("echo $(( {} + 1 ))", "as an argument"),
        ("echo \"${x:-\"{}\"}\"", "as an argument"),
        (r"echo $'it\'s {}'", "as an argument"),
        ("echo # {}", "in a comment"),
        ("echo 'x", "not closed"),
        ("echo # x", "ends with a comment"),
        ("echo \"$(date)\"", "at the end safely"),
        ("echo {..}", "unknown placeholder"),
    ] {
        let error = Template::for_shell_line(line).expect_err(line);
        assert!(error.to_string().contains(message), "{line}: {error}");
    }
}
