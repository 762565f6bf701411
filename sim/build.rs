//! Tells the tests how well they are optimised, and so how many seeds they can afford.

fn main() {
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=CAIRN_SIM_OPT_LEVEL={level}");
    println!("cargo::rerun-if-changed=build.rs");
}
