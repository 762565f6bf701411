//! Tests of the codes and CRCs through the public interface.

mod cauchy_good;
mod crc;
mod engines;
mod erasures;
mod errors;
mod golden;
mod hitchhiker;
mod input;
mod shapes;
