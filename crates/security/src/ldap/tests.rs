use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A message that a server might send, with that operation.
fn sent(id: u32, tag: u8, content: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    message(id, |out| put_with(out, tag, content))
}

fn found() -> Vec<u8> {
    sent(2, FOUND, |out| {
        put(out, OCTETS, b"cn=a,dc=x");
        put_with(out, SEQUENCE, |out| {
            put_with(out, SEQUENCE, |out| {
                put(out, OCTETS, b"cn");
                put_with(out, SET, |out| {
                    put(out, OCTETS, b"a");
                    put(out, OCTETS, b"b");
                    put(out, OCTETS, &[0xff]);
                });
            });
        });
    })
}

fn ended(tag: u8, code: u32) -> Vec<u8> {
    sent(3, tag, |out| {
        put_number(out, ENUMERATED, code);
        put(out, OCTETS, b"dc=x");
        put(out, OCTETS, b"why");
    })
}

#[test]
fn requests_are_those_of_the_standard() {
    // As OpenLDAP's client sends them.
    assert_eq!(hex(&bind(1, "", "")), "300c020101600702010304008000");
    assert_eq!(hex(&bind(1, "cn=a", "pw")), "3012020101600d0201030404636e3d6180027077");
    assert_eq!(hex(&unbind(3)), "30050201034200");
    let filter = encode_filter("(objectClass=*)").unwrap();
    let wanted = Search {
        base: "dc=x",
        filter: &filter,
        attributes: &["cn"],
        entries_max: 1,
        seconds_max: 10,
    };
    assert_eq!(
        hex(&search(2, &wanted)),
        "302d0201026328040464633d780a01020a010302010102010a010100870b6f626a656374436c61737330040402636e"
    );
}

#[test]
fn answers_are_read() {
    let (id, said) = read(&found()).unwrap();
    let values = vec!["a".to_owned(), "b".to_owned()];
    let entry = Entry { name: "cn=a,dc=x".to_owned(), attributes: vec![("cn".to_owned(), values)] };
    assert_eq!(entry.values("CN").collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(entry.values("sn").count(), 0);
    assert_eq!((id, said), (2, Said::Found(entry)));
    assert_eq!(read(&ended(BOUND, 0)), Ok((3, Said::Bound)));
    assert_eq!(read(&ended(FOUND_ALL, 0)), Ok((3, Said::FoundAll)));
    assert_eq!(read(&ended(FOUND_ALL, SIZE_LIMIT_EXCEEDED)), Ok((3, Said::FoundAll)));
    assert_eq!(read(&sent(2, ELSEWHERE, |_| ())), Ok((2, Said::Other)));
    assert_eq!(read(&sent(0, 0x78, |_| ())), Ok((0, Said::Other)), "a notice");
    let refused = LdapError::Refused { code: 49, message: "why".to_owned() };
    assert_eq!(read(&ended(BOUND, 49)), Err(refused));
    assert_eq!(read(&sent(2, 0x78, |_| ())), Err(LdapError::Malformed));
}

#[test]
fn no_answer_that_is_cut_or_changed_does_harm() {
    for whole in [found(), ended(FOUND_ALL, 1), ended(BOUND, 0)] {
        assert_eq!(message_len(&whole), Ok(Some(whole.len())));
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
            assert!(message_len(&whole[..cut]).unwrap().is_none_or(|len| len == whole.len()));
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                let _ = (read(&changed), message_len(&changed));
            }
        }
    }
    let huge = [SEQUENCE, 0x84, 0x7f, 0xff, 0xff, 0xff];
    assert_eq!(message_len(&huge), Err(LdapError::Malformed));
    assert_eq!(message_len(b"HTTP/1.1"), Err(LdapError::Malformed));
}
