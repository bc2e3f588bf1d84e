//! Output of the benchmarks: tables, plots, and the measured part of a document. The benchmarks themselves have no test
//! harness, so their pure parts are compiled into this one too.

#[path = "../../bench/document.rs"]
mod document;
#[path = "../../bench/figure.rs"]
mod figure;
#[path = "../../bench/plot.rs"]
mod plot;
#[path = "../../bench/table.rs"]
mod table;

mod document_tests;
mod plot_tests;
mod table_tests;
