//! Files in encryption zones: what is written comes back, what is stored is something else.

use crate::cluster::*;
use crate::key_server::KeyServer;
use cairn_client::{
    CipherSuite, ClientConfig, ClientError, CreateOptions, FileSystem, Reencryption,
    ReencryptionState,
};
use cairn_namenode::NameNodeConfig;
use std::time::{Duration, Instant};

async fn start(keys: &KeyServer, datanodes: usize) -> Cluster {
    let tune = |namenode: &mut NameNodeConfig, _: &mut _| {
        namenode.encryption.key_provider = Some(keys.provider.parse().unwrap());
        namenode.encryption.listed_zones_max = 2;
        namenode.encryption.listed_reencryptions_max = 1;
        namenode.encryption.reencryption_interval = Duration::from_millis(100);
    };
    Cluster::start_tuned(datanodes, tune, |_| {}).await
}

async fn zone(fs: &FileSystem, path: &str, key: &str) {
    fs.mkdirs(path, 0o777).await.unwrap();
    fs.create_encryption_zone(path, key).await.unwrap();
}

async fn stored(fs: &FileSystem, path: &str) -> Vec<u8> {
    let mut reader = fs.open_stored(path).await.unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        all.extend_from_slice(&chunk);
    }
    all
}

/// Reads a file in every way that there is.
async fn compare(fs: &FileSystem, path: &str, data: &[u8]) {
    assert_same(&get(fs, path).await.unwrap(), data, path);
    let mut reader = fs.open(path).await.unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = reader.next_chunk_up_to(70_001).await.unwrap() {
        all.extend_from_slice(&chunk);
    }
    assert_same(&all, data, path);
    for start in [0, 1, 17, data.len() / 3, data.len().saturating_sub(5)] {
        reader.seek(start as u64);
        let mut buf = vec![0; 40_003];
        let mut got = 0;
        while got < buf.len() {
            match reader.read(&mut buf[got..]).await.unwrap() {
                0 => break,
                count => got += count,
            }
        }
        let want = &data[start.min(data.len())..(start + buf.len()).min(data.len())];
        assert_same(&buf[..got], want, &format!("{path} from {start}"));
        for len in [1, 31, 100_000, data.len()] {
            let mut buf = vec![0; len];
            let got = reader.another().read_at(start as u64, &mut buf).await.unwrap();
            let want = &data[start.min(data.len())..(start + len).min(data.len())];
            assert_same(&buf[..got], want, &format!("{path} at {start} {len}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn encrypted_files_come_back() {
    let keys = KeyServer::start().await;
    let cluster = start(&keys, 5).await;
    let fs = &cluster.fs;
    for policy in [None, Some("RS-3-2-1024k"), Some("XOR-2-1-1024k")] {
        if let Some(policy) = policy {
            fs.enable_policy(policy).await.unwrap();
        }
        for key in ["k128", "k192", "k256"] {
            let root = format!("/{}-{key}", policy.unwrap_or("3x"));
            zone(fs, &root, key).await;
            let options = CreateOptions {
                policy: policy.map(str::to_string),
                block_size: Some(2 << 20),
                ..CreateOptions::default()
            };
            for len in [0, 1, 16, 513, 1_048_577, (7 << 20) + 5] {
                let (path, data) = (format!("{root}/{len}"), bytes(len as u64 + 9, len));
                put(fs, &path, &data, &options).await.unwrap();
                compare(fs, &path, &data).await;
                let status = fs.require(&path).await.unwrap();
                assert_eq!((status.len, status.is_encrypted), (len as u64, true));
                let encryption = status.encryption.unwrap();
                assert_eq!(
                    (encryption.suite, encryption.protocol_version),
                    (CipherSuite::AesCtr, 2)
                );
                assert_eq!((encryption.key_name.as_str(), encryption.iv.len()), (key, 16));
                let kept = stored(fs, &path).await;
                assert_eq!(kept.len(), len);
                assert!(len < 16 || kept != data, "{path} is stored as it is");
                let raw = format!("/.reserved/raw{path}");
                assert_same(&get(fs, &raw).await.unwrap(), &kept, &raw);
                // The same bytes at another place of the file are stored as others.
                assert!(len < 1 << 20 || kept[..16] != kept[16..32]);
            }
        }
    }
    let before = keys.decrypted();
    put(fs, "/plain", b"plain", &CreateOptions::default()).await.unwrap();
    assert_eq!(get(fs, "/plain").await.unwrap(), stored(fs, "/plain").await);
    assert_eq!(keys.decrypted(), before, "nobody asks for the key of a file that has none");
    fs.copy_file("/3x-k128/1048577", fs, "/copy", &CreateOptions::default()).await.unwrap();
    fs.copy_file("/copy", fs, "/3x-k256/copy", &CreateOptions::default()).await.unwrap();
    let data = bytes(1_048_577 + 9, 1_048_577);
    assert_same(&stored(fs, "/copy").await, &data, "/copy");
    compare(fs, "/3x-k256/copy", &data).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushes_and_appends_go_on_where_the_cipher_is() {
    let keys = KeyServer::start().await;
    let cluster = start(&keys, 3).await;
    let fs = &cluster.fs;
    zone(fs, "/z", "k256").await;
    let data = bytes(5, 3_000_000);
    let options = CreateOptions { block_size: Some(1 << 20), ..CreateOptions::default() };
    let mut writer = fs.create("/z/f", &options).await.unwrap();
    let mut done = 0;
    for len in [1, 5, 511, 512, 700, 300_000, 3, 800_000] {
        writer.write(&data[done..done + len]).await.unwrap();
        done += len;
        writer.hflush().await.unwrap();
        let seen = get(fs, "/z/f").await.unwrap();
        assert_same(&seen, &data[..done], "while it is written");
    }
    writer.close().await.unwrap();
    for len in [1, 14, 1000, 900_000] {
        let mut writer = fs.append("/z/f").await.unwrap();
        for piece in data[done..done + len].chunks(333) {
            writer.write(piece).await.unwrap();
        }
        done += len;
        writer.close().await.unwrap();
        assert_same(&get(fs, "/z/f").await.unwrap(), &data[..done], "after an append");
    }
    compare(fs, "/z/f", &data[..done]).await;
    let cut = 1_000_001;
    while !fs.truncate("/z/f", cut as u64).await.unwrap() {
        let waited = Instant::now();
        while !fs.recover_lease("/z/f").await.unwrap() {
            assert!(waited.elapsed() < Duration::from_secs(20), "the cut takes too long");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let mut writer = fs.append("/z/f").await.unwrap();
    writer.write(&data[cut..cut + 77]).await.unwrap();
    writer.close().await.unwrap();
    compare(fs, "/z/f", &data[..cut + 77]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_units_are_decoded_before_they_are_decrypted() {
    let keys = KeyServer::start().await;
    let mut cluster = start(&keys, 5).await;
    cluster.fs.enable_policy("RS-3-2-1024k").await.unwrap();
    zone(&cluster.fs, "/z", "k128").await;
    let data = bytes(6, 5 << 20);
    put(&cluster.fs, "/z/f", &data, &striped("RS-3-2-1024k", 2 << 20)).await.unwrap();
    cluster.kill_units("/z/f", &[0, 2]).await;
    compare(&cluster.fs, "/z/f", &data).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gets_no_key_gets_no_bytes() {
    let keys = KeyServer::start().await;
    let cluster = start(&keys, 3).await;
    let fs = &cluster.fs;
    zone(fs, "/z", "k128").await;
    fs.set_permission("/z", 0o777).await.unwrap();
    put(fs, "/z/f", b"secret", &CreateOptions::default()).await.unwrap();
    let with = |change: fn(&mut ClientConfig)| {
        let mut config = fs.config().clone();
        change(&mut config);
        FileSystem::new(config).unwrap()
    };
    let mallory = with(|config| config.user = "mallory".to_string());
    let refused = mallory.open("/z/f").await.err().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied, "{refused}");
    assert!(mallory.create("/z/g", &CreateOptions::default()).await.is_err());
    let left = fs.block_locations("/z/g", 0, 1).await.unwrap();
    assert_eq!((left.len, left.under_construction), (0, false), "closed, as by Hadoop");
    put(fs, "/plain", b"open", &CreateOptions::default()).await.unwrap();
    let copied = mallory.copy_file("/plain", &mallory, "/z/h", &CreateOptions::default()).await;
    assert!(matches!(copied, Err(ClientError::Key { .. })), "{copied:?}");
    assert!(fs.file_info("/z/h").await.unwrap().is_none(), "nothing empty is left of a copy");

    let nobody = with(|config| config.ignore_server_key_provider = true);
    let error = nobody.open("/z/f").await.err().unwrap();
    assert!(matches!(error, ClientError::NoKeyProvider { .. }), "{error}");
    let other = with(|config| {
        config.ignore_server_key_provider = true;
        config.key_provider = Some("jceks://file/keys".to_string());
    });
    let error = other.open("/z/f").await.err().unwrap();
    assert!(matches!(error, ClientError::KeyProvider(_)), "{error}");
    assert_ne!(stored(&mallory, "/z/f").await, b"secret");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zones_are_made_listed_and_given_new_keys() {
    let keys = KeyServer::start().await;
    let cluster = start(&keys, 3).await;
    let fs = &cluster.fs;
    for i in 0..5 {
        zone(fs, &format!("/z{i}"), "k128").await;
    }
    let zones = fs.encryption_zones().await.unwrap();
    let paths: Vec<&str> = zones.iter().map(|zone| zone.path.as_str()).collect();
    assert_eq!(paths, ["/z0", "/z1", "/z2", "/z3", "/z4"]);
    assert!(zones.iter().all(|zone| zone.key_name == "k128" && zone.suite == CipherSuite::AesCtr));
    fs.mkdirs("/z0/a/b", 0o755).await.unwrap();
    assert_eq!(fs.encryption_zone_of("/z0/a/b").await.unwrap().as_ref(), Some(&zones[0]));
    assert_eq!(fs.encryption_zone_of("/").await.unwrap(), None);
    fs.provision_trash("/z0/").await.unwrap();
    let trash = fs.require("/z0/.Trash").await.unwrap();
    assert_eq!((trash.permission, trash.is_encrypted), (0o1777, true));
    assert!(fs.provision_trash("/z0").await.is_err());
    assert!(fs.provision_trash("/z0/a").await.is_err());
    fs.mkdirs("/other", 0o755).await.unwrap();
    assert!(fs.create_encryption_zone("/other", "nobody knows it").await.is_err());

    let data = bytes(8, 100_000);
    put(fs, "/z1/f", &data, &CreateOptions::default()).await.unwrap();
    put(fs, "/z2/f", &data, &CreateOptions::default()).await.unwrap();
    let before = fs.open("/z1/f").await.unwrap();
    let kept = stored(fs, "/z1/f").await;
    keys.roll();
    for zone in ["/z1", "/z2"] {
        fs.reencrypt_zone(zone, Reencryption::Start).await.unwrap();
    }
    let began = Instant::now();
    let statuses = loop {
        let statuses = fs.reencryption_statuses().await.unwrap();
        if statuses.iter().all(|status| status.state == ReencryptionState::Completed) {
            break statuses;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{statuses:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let told: Vec<_> = statuses.iter().map(|s| (s.path.as_str(), s.reencrypted)).collect();
    assert_eq!(told, [("/z1", 1), ("/z2", 1)]);
    let encryption = fs.require("/z1/f").await.unwrap().encryption.unwrap();
    assert_eq!(encryption.key_version, "k128@1");
    assert_same(&get(fs, "/z1/f").await.unwrap(), &data, "with its key encrypted anew");
    assert_same(&stored(fs, "/z1/f").await, &kept, "its bytes are not touched");
    let mut buf = vec![0; 1000];
    assert_eq!(before.read_at(5000, &mut buf).await.unwrap(), 1000);
    assert_same(&buf, &data[5000..6000], "opened before");
}
