//! Workers over RPC: two calls that Cairn adds to `ReconfigurationProtocol`, for superusers as all of it.

use cairn_net::rpc_server::{Call, respond};
use cairn_wire::RemoteException;
use cairn_wire::proto::hdfs as pb;

use super::{NotPaused, Pause, Told, Workers};

/// The calls.
pub const METHODS: [&str; 2] = ["listWorkers", "pauseWorkers"];

impl Workers {
    /// Answers a call, if it is about workers.
    pub fn call(&self, call: &Call) -> Option<Result<Vec<u8>, RemoteException>> {
        match call.method.as_str() {
            "listWorkers" => Some(self.list()),
            "pauseWorkers" => Some(call.decode().and_then(|request| self.pause_all(&request))),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Result<Vec<u8>, RemoteException> {
        let workers = self.told().into_iter().map(proto).collect();
        respond(&pb::ListWorkersResponseProto { workers })
    }

    /// Pauses or resumes all that are named, or none of them.
    pub(super) fn pause_all(
        &self,
        request: &pb::PauseWorkersRequestProto,
    ) -> Result<Vec<u8>, RemoteException> {
        for name in &request.names {
            self.may_pause(name).map_err(|why| refusal(name, &why))?;
        }
        for name in &request.names {
            self.pause(name, request.pause).map_err(|why| refusal(name, &why))?;
        }
        self.list()
    }
}

fn refusal(name: &str, why: &NotPaused) -> RemoteException {
    RemoteException::io(match why {
        NotPaused::Unknown => format!("There is no worker {name:?}"),
        NotPaused::Unsafe => format!("It is not safe to pause the worker {name}"),
        NotPaused::By(command) => format!("The worker {name} is paused by `{command}`"),
    })
}

fn proto(told: Told) -> pb::WorkerProto {
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let progress = told.progress;
    pb::WorkerProto {
        name: told.kind.name.to_string(),
        of: told.of,
        does: told.kind.does.to_string(),
        state: told.state.word().to_string(),
        since_ms: millis(told.since),
        paused: told.is_paused,
        pausable: told.kind.pause == Pause::Safe,
        rounds: told.rounds,
        busy_ms: millis(told.busy),
        done: progress.map(|progress| progress.done),
        done_of: progress.and_then(|progress| progress.of),
        done_what: progress.map(|progress| progress.what.to_string()),
        bytes_per_second: told.bytes_per_second,
        failures: told.failures,
        last_failure: told.last_failure,
    }
}
