use super::plot::{Axis, BarChart, Kind, LineChart, Mark, Series};

fn lines(series: Vec<Series>) -> String {
    LineChart {
        title: "a < b & c".to_owned(),
        across: Axis::new("slots", Kind::Marked(vec![1.0, 4.0, 16.0])),
        upwards: Axis::new("jobs", Kind::Linear),
        series,
    }
    .svg()
}

/// The x and y of every dot.
fn dots(svg: &str) -> Vec<(f64, f64)> {
    let value = |line: &str, name: &str| -> f64 {
        let (_, rest) = line.split_once(name).expect("an attribute");
        rest.split('"').nth(1).expect("a value").parse().expect("a number")
    };
    let dots = svg.lines().filter(|line| line.starts_with("<circle"));
    dots.map(|line| (value(line, " cx="), value(line, " cy="))).collect()
}

#[test]
fn text_is_escaped_and_every_element_is_closed() {
    let svg = lines(vec![Series::new("\"x\" > y", vec![(1.0, 2.0)])]);
    assert!(svg.contains("<title>a &lt; b &amp; c</title>"), "{svg}");
    assert!(svg.contains("&quot;x&quot; &gt; y"), "{svg}");
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

#[test]
fn a_chart_has_its_own_background() {
    assert!(lines(Vec::new()).contains("fill=\"#ffffff\""));
}

#[test]
fn a_logarithmic_axis_spaces_factors_evenly_and_values_grow_upwards() {
    let svg = lines(vec![Series::new("true", vec![(1.0, 10.0), (4.0, 20.0), (16.0, 40.0)])]);
    let [(x1, y1), (x2, y2), (x3, y3)] = dots(&svg)[..] else {
        panic!("three dots in {svg}");
    };
    assert!((x2 - x1 - (x3 - x2)).abs() < 0.2, "{x1} {x2} {x3}");
    assert!(y1 > y2 && y2 > y3, "{y1} {y2} {y3}");
}

#[test]
fn points_that_are_not_finite_are_left_out() {
    let svg = lines(vec![Series::new("true", vec![(1.0, f64::NAN), (4.0, f64::INFINITY), (16.0, 1.0)])]);
    assert_eq!(dots(&svg).len(), 1);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn an_axis_ends_at_a_round_number_above_every_value() {
    for (highest, last) in [(1_701.0, ">2,000<"), (0.93, ">1<"), (7.0, ">7<"), (0.0, ">1<")] {
        let svg = lines(vec![Series::new("true", vec![(1.0, highest)])]);
        assert!(svg.contains(last), "{highest}: {svg}");
    }
}

#[test]
fn a_point_beyond_the_end_of_an_axis_is_drawn_at_its_edge() {
    let chart = LineChart {
        title: String::new(),
        across: Axis::new("", Kind::LinearTo(10.0)),
        upwards: Axis::new("", Kind::LinearTo(100.0)),
        series: vec![Series::new("", vec![(10.0, 100.0), (30.0, 100.0)]).dashed()],
    };
    let svg = chart.svg();
    let dots = dots(&svg);
    assert_eq!(dots[0], dots[1]);
    assert!(svg.contains("stroke-dasharray"));
}

#[test]
fn every_group_has_a_bar_for_each_series_and_a_line_marks_the_target() {
    let svg = BarChart {
        title: "ratios".to_owned(),
        upwards: "ratio".to_owned(),
        groups: vec!["1 slot".to_owned(), "4 slots".to_owned()],
        series: vec![("true".to_owned(), vec![0.5, 0.9]), ("echo".to_owned(), vec![0.4, f64::NAN])],
        mark: Some(Mark { name: "target".to_owned(), value: 0.9 }),
    }
    .svg();
    let (background, bars, keys) = (1, 3, 2);
    assert_eq!(svg.matches("<rect").count(), background + bars + keys, "{svg}");
    for text in [">1 slot<", ">4 slots<", ">target<"] {
        assert!(svg.contains(text), "{text} in {svg}");
    }
}
