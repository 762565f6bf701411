//! Many seeds without a fault, and known bugs that seeds must find.

mod bugs;
mod seeds;
