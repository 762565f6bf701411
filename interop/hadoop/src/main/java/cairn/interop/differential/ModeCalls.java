package cairn.interop.differential;

import static cairn.interop.differential.Generator.BLOCK;
import static cairn.interop.differential.Generator.arg;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;
import org.apache.hadoop.io.EnumSetWritable;

/** Files that are made in every way there is, and calls while safe mode comes and goes. */
final class ModeCalls {
  private static final String HOLDER = "writer-1";

  private final Generator g;

  private ModeCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    ModeCalls calls = new ModeCalls(g);
    calls.creates();
    calls.safeMode();
  }

  private void creates() {
    List<String> codings =
        Arrays.asList(null, null, "", "RS-3-2-1024k", "XOR-2-1-1024k", "RS-6-3-1024k", "nothing", "replication", "rs-3-2-1024k");
    List<String> policies =
        Arrays.asList(null, null, "", "HOT", "COLD", "hot", "LAZY_PERSIST", "ALL_SSD", "PROVIDED", "ALL_NVDIMM", "nothing");
    g.add("creates", 8, "create", t -> {
      String p = g.path(t);
      List<CreateFlag> chosen = new ArrayList<>(List.of(CreateFlag.CREATE));
      for (CreateFlag flag :
          List.of(CreateFlag.OVERWRITE, CreateFlag.LAZY_PERSIST, CreateFlag.SHOULD_REPLICATE, CreateFlag.APPEND)) {
        if (g.chance(25)) {
          chosen.add(flag);
        }
      }
      EnumSet<CreateFlag> flags = arg(t, EnumSet.copyOf(chosen));
      String coding = arg(t, g.pick(codings));
      String policy = arg(t, g.pick(policies));
      short copies = arg(t, g.pick(List.of((short) 1, (short) 3)));
      long block = arg(t, g.pick(List.of(BLOCK, 2 * BLOCK)));
      FsPermission mode = FsPermission.getFileDefault();
      var versions = CryptoProtocolVersion.supported();
      return d -> {
        var all = new EnumSetWritable<>(flags);
        var s = d.name().create(d.at(p), mode, HOLDER, all, true, copies, block, versions, coding, policy);
        d.ids().put(d.at(p), s.getFileId());
        return Text.status(s);
      };
    });
  }

  private void safeMode() {
    g.add("safe-mode", 6, "setSafeMode", t -> {
      SafeModeAction action =
          arg(t, g.pick(List.of(SafeModeAction.SAFEMODE_ENTER, SafeModeAction.SAFEMODE_LEAVE, SafeModeAction.SAFEMODE_GET)));
      return d -> "" + d.name().setSafeMode(action, false);
    });
    act("getDelegationToken", d -> "" + d.name().getDelegationToken(new org.apache.hadoop.io.Text("yarn")));
    act("renewLease", d -> Call.done(() -> d.name().renewLease(HOLDER, null)));
    act("refreshNodes", d -> Call.done(() -> d.name().refreshNodes()));
    act("finalizeUpgrade", d -> Call.done(() -> d.name().finalizeUpgrade()));
    act("rollEdits", d -> "" + (d.name().rollEdits() > 0));
    act("enableErasureCodingPolicy", d -> Call.done(() -> d.name().enableErasureCodingPolicy("RS-3-2-1024k")));
    act("disableErasureCodingPolicy", d -> Call.done(() -> d.name().disableErasureCodingPolicy("RS-10-4-1024k")));
    act("removeErasureCodingPolicy", d -> Call.done(() -> d.name().removeErasureCodingPolicy("nothing")));
    act("updateBlockForPipeline", d ->
        Call.done(() -> d.name().updateBlockForPipeline(new ExtendedBlock(d.pool(), 1, 0, 1001), HOLDER)));
    g.add("safe-mode", 1, "satisfyStoragePolicy", t -> {
      String p = g.path(t);
      return d -> Call.done(() -> d.name().satisfyStoragePolicy(d.at(p)));
    });
    g.add("safe-mode", 1, "createEncryptionZone", t -> {
      String p = g.path(t);
      return d -> Call.done(() -> d.name().createEncryptionZone(d.at(p), "none"));
    });
  }

  private void act(String name, Call.Body call) {
    g.add("safe-mode", 1, name, t -> call);
  }
}
