use super::*;
use ReplicaState::*;
use cairn_stripe::BlockId;

fn check(answers: &[(ReplicaState, u64, u64)], want: RecoveryPlan) {
    let answers: Vec<Candidate> = answers
        .iter()
        .enumerate()
        .map(|(node, &(original, gs, len))| Candidate {
            node,
            info: RecoveryInfo { id: BlockId(7), gs: GenerationStamp(gs), len, original },
        })
        .collect();
    assert_eq!(plan_replicated(&answers, GenerationStamp(10)), want, "{answers:?}");
}

fn truncate(nodes: &[usize], len: u64) -> RecoveryPlan {
    RecoveryPlan::Truncate { nodes: nodes.to_vec(), len }
}

#[test]
fn the_best_state_and_its_shortest_replica_decide() {
    check(&[(Rbw, 10, 100), (Rbw, 10, 70), (Rwr, 10, 50)], truncate(&[0, 1], 70));
    check(&[(Rwr, 10, 100), (Rwr, 11, 70)], truncate(&[0, 1], 70));
    check(
        &[(Finalized, 10, 80), (Rbw, 10, 80), (Rbw, 10, 60), (Rwr, 10, 80)],
        truncate(&[0, 1], 80),
    );
}

#[test]
fn stale_empty_and_temporary_replicas_do_not_count() {
    check(&[(Rbw, 9, 100), (Rbw, 10, 70)], truncate(&[1], 70));
    check(&[(Rbw, 9, 100), (Rbw, 10, 0)], RecoveryPlan::Delete);
    check(&[], RecoveryPlan::Delete);
    check(&[(Temporary, 10, 5)], RecoveryPlan::Impossible("no replica is in RWR or better state"));
}

#[test]
fn finalized_replicas_must_agree() {
    let want = RecoveryPlan::Impossible("Inconsistent size of finalized replicas");
    check(&[(Finalized, 10, 80), (Finalized, 10, 81)], want);
}
