//! How much memory a role may count on.

use std::fs;

/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes of memory of this machine, or of this process's control group if that has less; 0 if nothing tells.
pub fn available() -> u64 {
    let read = |path: String| fs::read_to_string(path).ok();
    let group =
        read("/proc/self/cgroup".into()).and_then(|text| group_of(&text).map(str::to_string));
    let limits = [
        read("/proc/meminfo".into()).and_then(|text| total(&text)),
        group.and_then(|group| limit(&read(format!("{GROUPS}{group}/memory.max"))?)),
        // What a container sees as the root is its own group; the last is that of older systems.
        read(format!("{GROUPS}/memory.max")).and_then(|text| limit(&text)),
        read(format!("{GROUPS}/memory/memory.limit_in_bytes")).and_then(|text| limit(&text)),
    ];
    limits.into_iter().flatten().min().unwrap_or(0)
}

/// Of `/proc/meminfo`, which counts in KiB.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The group in the one hierarchy of version 2.
fn group_of(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::")).filter(|group| *group != "/")
}

/// `max`, for no limit, is no number.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        assert_eq!(total("MemTotal:       24684136 kB\nMemFree: 1 kB\n"), Some(24_684_136 << 10));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert_eq!(
            group_of("0::/system.slice/cairn.service\n"),
            Some("/system.slice/cairn.service")
        );
        assert_eq!(group_of("12:memory:/x\n0::/\n"), None);
        assert_eq!((limit("max\n"), limit("1073741824\n")), (None, Some(1 << 30)));
        assert!(available() > 0);
    }
}
