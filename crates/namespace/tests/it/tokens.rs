//! Delegation tokens and their keys.

use crate::support::{Fs, said, user};
use cairn_namespace::Outcome;
use cairn_namespace::ops::token::{
    AddTokenKey, CancelToken, IssueToken, RemoveEndedTokens, RenewToken,
};
use cairn_namespace::token::{self, SECRET_LEN, Secret, Token};

const LIFE_MS: u64 = 1000;
const RENEWAL_MS: u64 = 300;

fn add_key(fs: &mut Fs, byte: u8) {
    let secret = Secret([byte; SECRET_LEN]);
    assert_eq!(fs.ok(AddTokenKey { secret, lasts_ms: 2 * LIFE_MS }), Outcome::Done);
}

fn issue(fs: &mut Fs) -> Token {
    let issue = IssueToken {
        owner: "ann@R".into(),
        renewer: "yarn".into(),
        real_user: String::new(),
        lasts_ms: LIFE_MS,
        renew_ms: RENEWAL_MS,
    };
    match fs.ok(issue) {
        Outcome::Token(token) => *token,
        other => panic!("{other:?}"),
    }
}

fn invalid(error: &cairn_namespace::NamespaceError) -> bool {
    error.exception_class().ends_with("InvalidToken")
}

#[test]
fn tokens_are_issued_renewed_and_cancelled() {
    let mut fs = Fs::new();
    let issue_none = IssueToken {
        owner: "ann".into(),
        renewer: String::new(),
        real_user: String::new(),
        lasts_ms: 1,
        renew_ms: 1,
    };
    let (_, text) = said(&fs.err(issue_none));
    assert_eq!(text, "There is no key for delegation tokens yet");
    add_key(&mut fs, 1);
    let (one, two) = (issue(&mut fs), issue(&mut fs));
    assert_eq!((one.number, two.number, one.key), (1, 2, 1));
    assert_eq!(one.max_ms, one.issued_ms + LIFE_MS);
    assert_eq!(one.renew_by_ms, one.issued_ms + RENEWAL_MS);
    assert_eq!(token::token(&fs.store, 1).unwrap(), Some(one.clone()));
    // No token is renewed beyond its end.
    fs.now_ms += LIFE_MS - RENEWAL_MS / 2;
    let Outcome::Token(renewed) = fs.ok(RenewToken { number: 1, renew_ms: RENEWAL_MS }) else {
        panic!("no token")
    };
    assert_eq!(renewed.renew_by_ms, one.max_ms);
    assert_eq!(token::token(&fs.store, 1).unwrap(), Some(*renewed));
    fs.now_ms += LIFE_MS;
    assert!(invalid(&fs.err(RenewToken { number: 1, renew_ms: RENEWAL_MS })));
    fs.ok(CancelToken { number: 1 });
    assert_eq!(token::token(&fs.store, 1).unwrap(), None);
    assert!(invalid(&fs.err(CancelToken { number: 1 })));
    assert!(invalid(&fs.err(RenewToken { number: 1, renew_ms: RENEWAL_MS })));
    assert_eq!(issue(&mut fs).number, 3, "no number comes again");
}

#[test]
fn what_has_ended_is_removed() {
    let mut fs = Fs::new();
    add_key(&mut fs, 1);
    for _ in 0..token::PAGE + 5 {
        issue(&mut fs);
    }
    fs.now_ms += RENEWAL_MS + 1;
    let last = issue(&mut fs);
    let next = token::PAGE as u32 + 1;
    assert_eq!(fs.ok(RemoveEndedTokens { from: 0 }), Outcome::TokensRemoved(Some(next)));
    assert_eq!(token::tokens_from(&fs.store, 0, 9).unwrap()[0].number, next);
    assert_eq!(fs.ok(RemoveEndedTokens { from: next }), Outcome::TokensRemoved(None));
    assert_eq!(token::tokens_from(&fs.store, 0, 9).unwrap(), [last]);
    add_key(&mut fs, 2);
    let numbers = |fs: &Fs| -> Vec<u32> {
        token::keys(&fs.store).unwrap().iter().map(|key| key.number).collect()
    };
    assert_eq!(numbers(&fs), [1, 2]);
    assert_eq!(issue(&mut fs).key, 2, "the newest key proves");
    fs.now_ms += LIFE_MS;
    add_key(&mut fs, 3);
    assert_eq!(numbers(&fs), [2, 3]);
}

#[test]
fn keys_are_the_namenodes_and_are_shown_to_nobody() {
    let mut fs = Fs::new();
    let add = AddTokenKey { secret: Secret([7; SECRET_LEN]), lasts_ms: 1 };
    assert!(!format!("{add:?}").contains('7'), "{add:?}");
    fs.run(user("ann"), add).unwrap_err();
    fs.run(user("ann"), RemoveEndedTokens { from: 0 }).unwrap_err();
}
