//! Many seeds without a fault, known bugs that seeds must find, and what they come down to.

mod bugs;
mod group_bugs;
mod pack_bugs;
mod seeds;
mod shorter;
