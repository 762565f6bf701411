//! Tests of the codes and CRCs through the public interface.

mod crc;
mod engines;
mod erasures;
mod errors;
mod golden;
mod input;
mod shapes;
