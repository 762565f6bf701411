use super::*;
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    pub enabled: bool,
}

/// What `level` takes.
const LEVEL: Kind<u8> = Kind::new("low or high", |text| match text {
    "low" => Ok(1),
    "high" => Ok(2),
    _ => Err("it takes low or high".into()),
});

keys! {
    /// Settings of a test.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings, live Live {
        /// How long it
        /// takes.
        time: Duration, "a.time" = "3" as SECONDS, live Time;
        /// How high it is.
        level: u8, "a.level" = "low" as LEVEL;
        /// As much as there is.
        room: u64 = 99, "a.room" = "an eighth of the memory" as BYTES;
    }
    parts {
        /// Whether it is.
        "a.part.enabled" = "false" as BOOLEAN => part.enabled, live Enabled;
    }
    by_hand {
        /// Where it is.
        "a.addr" = "here" as "host:port";
    }
    others {
        /// No key.
        plain: u8 = 7;
        /// What stands elsewhere.
        part: Part = Part::default();
        /// Listens here.
        addr: String = "here".to_string();
    }
}

#[test]
fn a_line_makes_a_field_its_default_its_reader_and_its_row() {
    let mut settings = Settings::default();
    let before = Settings {
        plain: 7,
        time: Duration::from_secs(3),
        level: 1,
        room: 99,
        part: Part { enabled: false },
        addr: "here".into(),
    };
    assert_eq!(settings, before);
    let key = |name: &str| Settings::KEYS.iter().find(|key| key.name == name).unwrap();
    let mut set = |name: &str, text: &str| key(name).set.unwrap()(&mut settings, text);
    set("a.time", "5m").unwrap();
    set("a.part.enabled", "TRUE").unwrap();
    set("a.room", "1k").unwrap();
    assert_eq!(set("a.level", "middle").unwrap_err().to_string(), "it takes low or high");
    let part = Part { enabled: true };
    assert_eq!(settings, Settings { time: Duration::from_secs(300), room: 1024, part, ..before });
    let row = key("a.time");
    assert_eq!((row.takes, row.default), ("time, in s", "3"));
    assert_eq!(row.meaning, " How long it takes.");
    assert!(key("a.addr").set.is_none());
}

#[test]
fn keys_that_can_change_are_the_cases_of_one_enumeration() {
    assert_eq!(live(Settings::KEYS), [("a.time", "3"), ("a.part.enabled", "false")]);
    assert_eq!(
        (Live::of("a.time"), Live::of("a.part.enabled")),
        (Some(Live::Time), Some(Live::Enabled))
    );
    assert_eq!(Live::of("a.level"), None);
}

#[test]
fn numbers_are_bounded() {
    assert_eq!((number::<i32>().parse("-3"), positive::<u64>().parse("3")), (Ok(-3), Ok(3)));
    for text in ["0", "-1", "x", ""] {
        assert!(positive::<u64>().parse(text).is_err(), "{text}");
    }
    assert!(number::<u16>().parse("65536").is_err());
}

#[test]
fn an_empty_text_is_none() {
    assert_eq!(OPTIONAL_TEXT.parse(""), Ok(None));
    assert_eq!(OPTIONAL_ADDRESS.parse(""), Ok(None));
    assert_eq!(OPTIONAL_ADDRESS.parse("127.0.0.1:1"), Ok(Some(([127, 0, 0, 1], 1).into())));
}
