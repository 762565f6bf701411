package cairn.interop.differential;

import java.net.URI;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;

/** The calls of {@link Differential} on one file system alone, for what they leave there. */
public final class Seeded {
  private static final Set<String> FAMILIES =
      Set.of("tree", "acls", "files", "attributes", "ec", "quotas", "quota-types", "snapshots");

  private Seeded() {}

  /** Makes {@code n} calls drawn from {@code seed} in a folder of their own; whatever they are answered. */
  public static void run(String address, Configuration conf, long seed, int n) throws Exception {
    try (Side side = new Side(URI.create(address), conf, null, Generator.USERS, false, () -> {})) {
      for (String policy : List.of("RS-3-2-1024k", "XOR-2-1-1024k")) {
        side.superuser().enableErasureCodingPolicy(policy);
      }
      side.begin("/seed" + seed);
      Generator generator = new Generator(seed, FAMILIES);
      for (int i = 0; i < n; i++) {
        side.answer(generator.next());
      }
    }
  }
}
