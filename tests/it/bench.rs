//! Output of the benchmarks: tables, plots, and the measured part of a document. The benchmarks themselves have no test
//! harness, so their pure parts are compiled into this one too.

#[path = "../../bench/output/document.rs"]
mod document;
#[path = "../../bench/output/figure.rs"]
mod figure;
#[path = "../../bench/output/plot.rs"]
mod plot;
#[path = "../../bench/output/table.rs"]
mod table;

mod document_tests;
mod plot_tests;
mod table_tests;
