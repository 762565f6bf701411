use super::*;
use crate::census::SNAPSHOTS;
use std::io::Cursor;

const PLAIN: &[u8] = include_bytes!("../../../fsimage/tests/golden/hadoop-3.5.0.fsimage");
const ZLIB: &[u8] = include_bytes!("../../../fsimage/tests/golden/hadoop-3.5.0-zlib.fsimage");

fn found(bytes: &[u8], asked: Asked) -> (crate::census::Found, Counts) {
    let mut image = Image::open(Cursor::new(bytes)).unwrap();
    let (census, counts) = read(&mut image, asked).unwrap();
    (census.end(), counts)
}

#[test]
fn what_hadoop_has_written_is_found_in_its_rows() {
    for bytes in [PLAIN, ZLIB] {
        let (found, counts) = found(bytes, Asked::new(1_800_000_000_000));
        let of = |path: &str| {
            let row = found.rows.iter().find(|row| row.path == path);
            row.unwrap_or_else(|| panic!("{path} is not in {:?}", found.rows)).tally.clone()
        };
        // 0, 300, 2 MiB + 17 in two copies, 5 in one, 7000 that came from elsewhere, and one that is open.
        let plain = of("/plain");
        assert_eq!((plain.files, plain.open), (6, 1));
        assert_eq!(plain.bytes, 300 + (2 << 20) + 17 + 5 + 7000 + (1 << 20) + 100);
        assert_eq!(
            plain.now.bytes,
            900 + 2 * ((2 << 20) + 17) + 5 + 21_000 + 3 * ((1 << 20) + 100)
        );
        assert_eq!(plain.unsafe_bytes, 5);
        // One cell with three parities; stripes of six.
        let wide = of("/striped/wide");
        assert_eq!((wide.files, wide.striped), (2, 2));
        // Two groups of one stripe, and one of a cell and five bytes.
        assert_eq!(wide.now.bytes, 4000 + 2 * (9 << 20) + (4 << 20) + 5);
        assert_eq!(of("/striped/narrow").now.bytes, 2 * (5 << 20) + (3 << 20));
        // "gone" and what was in "dir" is there for snapshots only.
        assert_eq!(of(SNAPSHOTS).bytes, 6000 + 8000);
        assert_eq!(found.total.files, 16);
        assert_eq!((counts.directories, counts.links), (11, 0));
        assert_eq!(counts.inodes, 27);
    }
}

#[test]
fn a_depth_of_none_has_one_row() {
    let asked = Asked { depth: 0, ..Asked::new(0) };
    let (found, _) = found(PLAIN, asked);
    let paths: Vec<&str> = found.rows.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(paths, ["/", SNAPSHOTS]);
}
