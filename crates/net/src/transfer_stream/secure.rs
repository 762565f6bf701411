//! Both sides show each other who they are before the first operation, and agree on what is around all that follows.
//!
//! What is said is in `cairn_security::transfer`.

use std::io;

use cairn_security::cipher::StreamCipher;
use cairn_security::digest_md5::NONCE_LEN;
use cairn_security::transfer::{
    Channel, IV_LEN, MAGIC, ServerRandom, ServerStep, Shown, TransferClient, TransferPolicy,
    TransferServer, TransferStep, Unknown, User,
};
use cairn_wire::proto::hdfs::DataTransferEncryptorMessageProto;

use super::TransferStream;
use super::options::TransferError;

const WHAT: &str = "a message of the handshake";

/// Random bytes.
fn random<const N: usize>() -> Result<[u8; N], TransferError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

impl TransferStream {
    /// Lets a client in that shows who it is: `find` says what a user's password is. Who does not is told so, as far as it
    /// begins as it should.
    ///
    /// Source: Hadoop 3.5.0 `SaslDataTransferServer#doSaslHandshake`.
    pub async fn admit(
        &mut self,
        policy: TransferPolicy,
        find: impl Fn(&User) -> Result<Vec<u8>, Unknown>,
    ) -> Result<(), TransferError> {
        let magic = self.reader.read_number("the magic number of a handshake").await?;
        if magic != MAGIC {
            let text = "a client begins without the handshake that is asked for";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text).into());
        }
        let random = ServerRandom {
            nonce: random::<NONCE_LEN>()?,
            keys: [random::<32>()?, random::<32>()?],
            ivs: [random::<IV_LEN>()?, random::<IV_LEN>()?],
        };
        let mut server = TransferServer::new(policy, random);
        loop {
            let message: DataTransferEncryptorMessageProto = self.reader.read_message(WHAT).await?;
            match server.take(&message, &find) {
                Ok(ServerStep::Reply(reply)) => self.writer.send_message(&reply).await?,
                Ok(ServerStep::Done(reply, channel)) => {
                    self.writer.send_message(&reply).await?;
                    return self.enclose(channel);
                }
                Err(unknown) => {
                    self.writer.send_message(&unknown.message()).await?;
                    return Err(TransferError::Unknown(unknown));
                }
            }
        }
    }

    /// Shows a DataNode who this is, and has it show the same.
    ///
    /// Source: Hadoop 3.5.0 `SaslDataTransferClient#doSaslHandshake`.
    pub async fn introduce(
        &mut self,
        policy: &TransferPolicy,
        shown: &Shown,
    ) -> Result<(), TransferError> {
        let (mut client, first) = TransferClient::begin(policy, shown, random()?);
        self.writer.hold_bytes(&MAGIC.to_be_bytes());
        self.writer.send_message(&first).await?;
        loop {
            let message: DataTransferEncryptorMessageProto = self.reader.read_message(WHAT).await?;
            match client.take(&message) {
                Ok(TransferStep::Send(message)) => self.writer.send_message(&message).await?,
                Ok(TransferStep::Done(channel)) => return self.enclose(channel),
                Err(unknown) => return Err(TransferError::Unknown(unknown)),
            }
        }
    }

    /// Nothing may have come that is not enclosed.
    fn enclose(&mut self, channel: Channel) -> Result<(), TransferError> {
        if self.reader.has_more() {
            let text = "a peer has gone on before the handshake was over";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text).into());
        }
        match channel {
            Channel::Plain => {}
            Channel::Enclosed(layer) => {
                self.reader.enclose(layer.open);
                self.writer.enclose(layer.seal);
            }
            Channel::Aes { seal, open } => {
                let key = |key| {
                    StreamCipher::new(key).map_err(|error| io::Error::other(error.to_string()))
                };
                self.reader.encrypt(key(&open)?);
                self.writer.encrypt(key(&seal)?);
            }
        }
        Ok(())
    }
}
