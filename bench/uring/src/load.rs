//! The files of a measurement, and its clients.

use crate::{Load, Work, cpu};
use anyhow::{Context, Result};
use rustix::time::ClockId;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

/// A file for each connection, with all its bytes in the page cache unless these are to be received.
pub fn files(folder: &Path, load: &Load) -> Result<Vec<File>> {
    // What is there already is somebody's, and would be deleted in the end.
    std::fs::create_dir(folder).with_context(|| folder.display().to_string())?;
    (0..load.connections)
        .map(|i| {
            let path = folder.join(i.to_string());
            let mut file =
                File::options().read(true).write(true).create(true).truncate(true).open(path)?;
            if load.work != Work::Receive {
                let piece = vec![7; 1 << 20];
                for _ in 0..load.file_len() >> 20 {
                    file.write_all(&piece)?;
                }
            }
            Ok(file)
        })
        .collect()
}

/// The thread at a client's end, which gives back its processor time.
pub type Client = JoinHandle<Result<f64>>;

/// The server's ends of all connections, and their clients.
pub fn clients(load: &Load) -> Result<(Vec<TcpStream>, Vec<Client>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (mut sockets, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..load.connections {
        let client = TcpStream::connect(listener.local_addr()?)?;
        client.set_nodelay(true)?;
        let (server, _) = listener.accept()?;
        server.set_nodelay(true)?;
        sockets.push(server);
        let load = *load;
        threads.push(std::thread::spawn(move || {
            run(client, &load)?;
            Ok(cpu(ClockId::ThreadCPUTime))
        }));
    }
    Ok((sockets, threads))
}

fn run(mut socket: TcpStream, load: &Load) -> Result<()> {
    let mut packet = vec![1; load.packet];
    for number in 0..load.packets {
        match load.work {
            Work::Receive => socket.write_all(&packet)?,
            Work::Send => socket.read_exact(&mut packet)?,
            Work::Ask => {
                socket.write_all(&load.place(number).to_le_bytes())?;
                socket.read_exact(&mut packet)?;
            }
        }
    }
    Ok(())
}
