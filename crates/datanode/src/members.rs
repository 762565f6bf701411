//! One of something for each NameNode of the nameservice: a DataNode talks to all of them, to each in a task of its own,
//! so that one that is gone holds up none of the others.

use std::ops::Index;
use tokio::sync::Notify;

/// A NameNode's number, in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member(usize);

impl Member {
    /// All of `count`.
    pub(crate) fn all(count: usize) -> impl Iterator<Item = Member> {
        (0..count).map(Member)
    }

    /// Its number.
    pub(crate) fn number(self) -> usize {
        self.0
    }
}

/// One of something for each of them.
pub(crate) struct PerMember<T>(Box<[T]>);

impl<T> PerMember<T> {
    /// What `make` makes for each of `count`.
    pub(crate) fn new(count: usize, make: impl Fn(Member) -> T) -> PerMember<T> {
        PerMember(Member::all(count).map(make).collect())
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

impl<T> Index<Member> for PerMember<T> {
    type Output = T;

    fn index(&self, member: Member) -> &T {
        &self.0[member.0]
    }
}

/// Wakes who talks to the NameNodes.
pub(crate) struct Wakes(PerMember<Notify>);

impl Wakes {
    /// For who talks to `count` of them.
    pub(crate) fn new(count: usize) -> Wakes {
        Wakes(PerMember::new(count, |_| Notify::new()))
    }

    /// Wakes all.
    pub(crate) fn all(&self) {
        self.0.iter().for_each(Notify::notify_one);
    }

    /// Wakes who talks to this one.
    pub(crate) fn one(&self, member: Member) {
        self.0[member].notify_one();
    }

    /// Completes when who talks to `member` is, or was, to wake.
    pub(crate) async fn wait(&self, member: Member) {
        self.0[member].notified().await;
    }
}
