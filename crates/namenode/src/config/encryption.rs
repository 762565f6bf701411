//! What encryption zones need, and the keys that say so.

use std::time::Duration;

use cairn_keys::{MILLIS, keys, number, positive};
use cairn_kms::{KmsOptions, ProviderPath, QueueOptions};

keys! {
    /// Key servers of encryption zones, and how they are asked.
    #[derive(Clone, Debug)]
    pub struct EncryptionConfig {
        /// How long after the start keys for new files are fetched.
        warm_up_delay: Duration, "dfs.namenode.edekcacheloader.initial.delay.ms" = "3000" as MILLIS;
        /// How long after fetching them failed it is tried again.
        warm_up_interval: Duration, "dfs.namenode.edekcacheloader.interval.ms" = "1000" as MILLIS;
        /// How often it is tried to fetch keys for new files.
        warm_up_tries: u32, "dfs.namenode.edekcacheloader.max-retries" = "10" as number();
        /// Encryption zones on a page of their list.
        listed_zones_max: usize, "dfs.namenode.list.encryption.zones.num.responses" = "100" as number();
        /// Re-encryptions on a page of their list.
        listed_reencryptions_max: usize,
        "dfs.namenode.list.reencryption.status.num.responses" = "100" as number();
        /// Files whose keys are encrypted anew at a time.
        reencryption_batch: usize, "dfs.namenode.reencrypt.batch.size" = "1000" as positive();
        /// How often encryption zones are looked for that wait to be encrypted anew.
        reencryption_interval: Duration, "dfs.namenode.reencrypt.sleep.interval" = "1m" as MILLIS;
    }
    parts {
        /// Encrypted keys that are kept ready of each key.
        "hadoop.security.kms.client.encrypted.key.cache.size" = "500" as number::<usize>() => ready.size;
        /// The part of the keys that are kept ready below which more are fetched.
        "hadoop.security.kms.client.encrypted.key.cache.low-watermark" = "0.3" as number::<f32>()
        => ready.low_watermark;
        /// What is kept ready of a key goes when nobody has asked for so long.
        "hadoop.security.kms.client.encrypted.key.cache.expiry" = "43200000" as MILLIS => ready.expiry;
    }
    by_hand {
        /// The key servers; no encryption zones without them.
        "hadoop.security.key.provider.path" = "" as "kms://http@host;host:port/kms";
        /// How long a key server may take for a connection, and as long again for an answer; 0 for any time.
        "hadoop.security.kms.client.timeout" = "60" as "time, in s";
        /// How often a question is sent again when a key server cannot be reached.
        "hadoop.security.kms.client.failover.max.retries" = "as often as there are servers" as "number";
        /// The wait after all key servers were tried, doubled with each try.
        "hadoop.security.kms.client.failover.sleep.base.millis" = "100" as "time, in ms";
        /// The longest wait after all key servers were tried.
        "hadoop.security.kms.client.failover.sleep.max.millis" = "2000" as "time, in ms";
    }
    others {
        /// The key servers; none for no zones: `hadoop.security.key.provider.path`.
        key_provider: Option<ProviderPath> = None;
        /// How patient the NameNode is with them: `hadoop.security.kms.client.*`.
        kms: KmsOptions = KmsOptions::default();
        /// Keys that are kept ready for new files.
        ready: QueueOptions = QueueOptions::default();
    }
}
