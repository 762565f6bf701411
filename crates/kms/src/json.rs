//! The server's JSON: keys, versions and encrypted keys, and what it says when it refuses.
//!
//! Bytes are sent as URL-safe base64 without padding. Other servers than Hadoop's may send the other
//! alphabet or padding, and Hadoop's client takes all of them.
//!
//! Source: Hadoop 3.5.0 `KMSUtil`, `HttpExceptionUtils#validateResponse`.

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Value, json};

use crate::{EncryptedKey, KeyMaterial, KeyMetadata, KeyVersion};

/// The version that an encrypted key is said to be of itself (`KeyProviderCryptoExtension.EEK`).
const EEK: &str = "EEK";

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What is wrong with an answer.
pub type Parsed<T> = Result<T, String>;

fn text(value: &Value, field: &str) -> Parsed<String> {
    let text = value.get(field).and_then(Value::as_str).map(str::to_string);
    text.ok_or_else(|| format!("it has no {field}"))
}

fn number<T: TryFrom<i64>>(value: &Value, field: &str) -> Parsed<T> {
    let number = value.get(field).and_then(Value::as_i64).and_then(|n| T::try_from(n).ok());
    number.ok_or_else(|| format!("it has no {field}"))
}

fn bytes(value: &Value, field: &str) -> Parsed<Vec<u8>> {
    let text = text(value, field)?.replace('+', "-").replace('/', "_");
    BASE64.decode(text).map_err(|_| format!("its {field} is no base64"))
}

/// An empty object stands for a key that does not exist.
fn is_nothing(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

pub fn metadata(value: &Value) -> Parsed<Option<KeyMetadata>> {
    if is_nothing(value) {
        return Ok(None);
    }
    Ok(Some(KeyMetadata {
        cipher: text(value, "cipher")?,
        bit_length: number(value, "length")?,
        description: text(value, "description").ok(),
        created: number(value, "created")?,
        versions: number(value, "versions")?,
    }))
}

pub fn key_version(value: &Value) -> Parsed<Option<KeyVersion>> {
    if is_nothing(value) {
        return Ok(None);
    }
    let material = match value.get("material") {
        None | Some(Value::Null) => None,
        Some(_) => Some(KeyMaterial::new(bytes(value, "material")?)),
    };
    Ok(Some(KeyVersion {
        name: text(value, "name").ok(),
        version_name: text(value, "versionName")?,
        material,
    }))
}

pub fn encrypted_keys(key_name: &str, value: &Value) -> Parsed<Vec<EncryptedKey>> {
    let list = value.as_array().ok_or("it is no list")?;
    let one = |value: &Value| {
        let encrypted = value.get("encryptedKeyVersion").ok_or("it has no encryptedKeyVersion")?;
        Ok(EncryptedKey {
            key_name: key_name.to_string(),
            key_version: text(value, "versionName")?,
            iv: bytes(value, "iv")?,
            encrypted_material: bytes(encrypted, "material")?,
        })
    };
    list.iter().map(one).collect()
}

pub fn names(value: &Value) -> Parsed<Vec<String>> {
    let list = value.as_array().ok_or("it is no list")?;
    let name = |value: &Value| value.as_str().map(str::to_string).ok_or("a name is no text");
    Ok(list.iter().map(name).collect::<Result<_, _>>()?)
}

/// What `_eek` takes to decrypt a key; the version stands in the path.
pub fn to_decrypt(key: &EncryptedKey) -> Value {
    json!({
        "name": key.key_name,
        "iv": BASE64.encode(&key.iv),
        "material": BASE64.encode(&key.encrypted_material),
    })
}

/// What `_reencryptbatch` takes; the key stands in the path.
pub fn to_reencrypt(keys: &[EncryptedKey]) -> Value {
    let one = |key: &EncryptedKey| {
        json!({
            "versionName": key.key_version,
            "iv": BASE64.encode(&key.iv),
            "encryptedKeyVersion": {
                "versionName": EEK,
                "material": BASE64.encode(&key.encrypted_material),
            },
        })
    };
    keys.iter().map(one).collect()
}

/// Class and message of what the server threw. An answer that is no JSON is itself the message, as
/// far as somebody wants to read it.
pub fn exception(body: &[u8]) -> (String, String) {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    if let Some(thrown) = parsed.as_ref().and_then(|value| value.get("RemoteException")) {
        let class = text(thrown, "javaClassName").unwrap_or_default();
        return (class, text(thrown, "message").unwrap_or_default());
    }
    let start = &body[..body.len().min(200)];
    (String::new(), String::from_utf8_lossy(start).trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base64_is_taken() {
        for text in ["-_8", "-_8=", "+/8", "+/8="] {
            assert_eq!(bytes(&json!({ "iv": text }), "iv").unwrap(), [0xfb, 0xff]);
        }
        assert!(bytes(&json!({ "iv": "!" }), "iv").is_err());
        assert!(bytes(&json!({ "iv": 1 }), "iv").is_err());
    }
}
