//! Wrong calls are refused with the reason, and write nothing.

use cairn_codec::{Codec, CodecError, CodecKind, Engine, MAX_UNITS};

fn code() -> Codec {
    Codec::new(CodecKind::Rs, 2, 2).expect("a small code")
}

#[test]
fn schemas_out_of_bounds() {
    for (kind, k, m) in [
        (CodecKind::Rs, 0, 1),
        (CodecKind::Rs, 1, 0),
        (CodecKind::Rs, 200, 56),
        (CodecKind::RsLegacy, 255, 1),
        (CodecKind::RsLegacy, usize::MAX, 2),
        (CodecKind::Xor, 2, 2),
    ] {
        let error = Codec::new(kind, k, m).expect_err("no such code");
        assert_eq!(error, CodecError::UnsupportedSchema { kind, data_count: k, parity_count: m },);
    }
    for kind in [CodecKind::Rs, CodecKind::RsLegacy, CodecKind::Xor] {
        assert!(Codec::new(kind, MAX_UNITS - 1, 1).is_ok(), "{kind}");
        assert!(Codec::new(kind, 1, 1).is_ok(), "{kind}");
    }
}

#[test]
fn engines_of_other_processors() {
    let foreign: Vec<Engine> =
        Engine::ALL.into_iter().filter(|engine| !engine.is_available()).collect();
    assert!(!foreign.is_empty(), "no processor has both NEON and SSSE3");
    for engine in foreign {
        let error = Codec::with_engine(CodecKind::Rs, 2, 1, engine).expect_err("not here");
        assert_eq!(error, CodecError::EngineUnavailable { engine });
    }
}

#[test]
fn wrong_numbers_of_buffers() {
    let (mut a, mut b) = ([7; 4], [7; 4]);
    let data = [0; 4];
    let result = code().encode(&[&data], &mut [&mut a, &mut b]);
    let expected = CodecError::BufferCount { what: "data units", expected: 2, actual: 1 };
    assert_eq!(result, Err(expected));

    let result = code().encode(&[&data, &data], &mut [&mut a]);
    let expected = CodecError::BufferCount { what: "parity units", expected: 2, actual: 1 };
    assert_eq!(result, Err(expected));

    let result = code().decode(&[Some(data.as_slice()); 3], &[3], &mut [&mut a]);
    let expected = CodecError::BufferCount { what: "units", expected: 4, actual: 3 };
    assert_eq!(result, Err(expected));

    let result = code().decode(&[Some(&data), Some(&data), None, None], &[2, 3], &mut [&mut a]);
    let expected = CodecError::BufferCount { what: "outputs", expected: 2, actual: 1 };
    assert_eq!(result, Err(expected));
    assert_eq!((a, b), ([7; 4], [7; 4]), "nothing was written");
}

#[test]
fn wrong_lengths() {
    let (mut a, mut b, mut short) = ([7; 4], [7; 4], [7; 3]);
    let (data, long) = ([0; 4], [0; 5]);
    let length =
        |what, index, actual| Err(CodecError::BufferLength { what, index, expected: 4, actual });
    let result = code().encode(&[&data, &long], &mut [&mut a, &mut b]);
    assert_eq!(result, length("data unit", 1, 5));
    let result = code().encode(&[&data, &data], &mut [&mut a, &mut short]);
    assert_eq!(result, length("parity unit", 1, 3));
    let result = code().decode(&[Some(&data), None, None, Some(&long)], &[1], &mut [&mut a]);
    assert_eq!(result, length("unit", 3, 5));
    let result = code().decode(&[Some(&data), None, None, Some(&data)], &[1], &mut [&mut short]);
    assert_eq!(result, length("output", 0, 3));
    assert_eq!((a, b, short), ([7; 4], [7; 4], [7; 3]), "nothing was written");
}

#[test]
fn wrong_names_of_lost_units() {
    let mut out = [7; 4];
    let data = [0; 4];
    let units = [Some(data.as_slice()), None, Some(&data), None];
    let result = code().decode(&units, &[4], &mut [&mut out]);
    assert_eq!(result, Err(CodecError::NoSuchUnit { unit: 4, unit_count: 4 }));
    let result = code().decode(&units, &[2], &mut [&mut out]);
    assert_eq!(result, Err(CodecError::NotLost { unit: 2 }));
    let mut twice = [7; 4];
    let result = code().decode(&units, &[1, 1], &mut [&mut out, &mut twice]);
    assert_eq!(result, Err(CodecError::NotLost { unit: 1 }));
    assert_eq!((out, twice), ([7; 4], [7; 4]), "nothing was written");
}

#[test]
fn messages_name_the_numbers() {
    let error = CodecError::TooFewUnits { needed: 6, present: 5 };
    assert_eq!(error.to_string(), "5 units present, 6 needed");
    let error = CodecError::BufferLength { what: "unit", index: 3, expected: 4, actual: 5 };
    assert_eq!(error.to_string(), "unit 3 has 5 bytes, the first buffer has 4");
}
