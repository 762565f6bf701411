//! What reads blocks for the NameNode's `fsck -move`: this binary's client.

use crate::config::{self, Configuration};
use anyhow::{Context, Result};
use cairn_client::{CreateOptions, FileReader, FileSystem, FileWriter};
use cairn_namenode::fsck::salvage::{Salvage, Salvager};
use cairn_net::Boxed;
use std::ops::Range;

/// Bytes that are read at a time.
const PIECE_LEN: u64 = 4 << 20;

/// Copies parts of files as a client of their NameNode.
#[derive(Debug)]
pub struct ClientSalvager(pub Configuration);

impl Salvager for ClientSalvager {
    fn salvage(&self, salvage: Salvage) -> Boxed<'_, Result<(), String>> {
        Box::pin(async move { self.copy(salvage).await.map_err(|error| format!("{error:#}")) })
    }
}

impl ClientSalvager {
    async fn copy(&self, salvage: Salvage) -> Result<()> {
        let mut conf = self.0.clone();
        conf.set("fs.defaultFS", format!("hdfs://{}", salvage.namenode));
        let mut client = config::client::read(&conf)?;
        client.user = salvage.user;
        let fs = FileSystem::connect(client).await?;
        // What is encrypted stays so: lost+found is no place of the zone, and keys may be gone.
        let source = fs.open_stored(&salvage.source).await?;
        let mut chain: Option<FileWriter> = None;
        let mut chains = 0;
        let mut failure = None;
        for block in salvage.blocks {
            let Some(block) = block else {
                close(chain.take()).await?;
                continue;
            };
            let mut writer = match chain.take() {
                Some(writer) => writer,
                None => {
                    let path = format!("{}/{chains}", salvage.target);
                    chains += 1;
                    fs.create(&path, &CreateOptions::default()).await?
                }
            };
            match copy_block(&source, &mut writer, block.clone()).await {
                Ok(()) => chain = Some(writer),
                Err(error) => {
                    // What was read of it stays, as in Hadoop.
                    close(Some(writer)).await?;
                    let what = format!("{} at {}", salvage.source, block.start);
                    failure = Some(error.context(what));
                }
            }
        }
        close(chain).await?;
        failure.map_or(Ok(()), Err)
    }
}

async fn close(writer: Option<FileWriter>) -> Result<()> {
    if let Some(writer) = writer {
        writer.close().await?;
    }
    Ok(())
}

async fn copy_block(source: &FileReader, to: &mut FileWriter, block: Range<u64>) -> Result<()> {
    let mut at = block.start;
    while at < block.end {
        let len = PIECE_LEN.min(block.end - at);
        let mut piece = vec![0; usize::try_from(len)?];
        let read = source.read_at(at, &mut piece).await?;
        let piece = piece.get(..read).filter(|piece| !piece.is_empty());
        to.write(piece.context("the file has become shorter")?).await?;
        at += read as u64;
    }
    Ok(())
}
